package main

import "runtime/debug"

// version is that of the module when mtc was installed as one, else "devel".
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" && !isPseudo(info.Main.Version) {
		return info.Main.Version
	}
	return "devel"
}

// isPseudo says whether a version was made up from a commit of a checkout: it would change
// with every commit, and generated files with it.
func isPseudo(v string) bool {
	for _, c := range v {
		if c == '+' {
			return true
		}
	}
	return len(v) > 20 && v[:7] == "v0.0.0-"
}
