package libs

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
)

// Find returns where the library lies, "" when it is in none of the folders that are looked
// in. It opens nothing, so what it finds may still not load.
func (l Lib) Find() string {
	for _, dir := range append(loaderDirs("/"), Dirs()...) {
		for _, so := range l.Names() {
			if path := filepath.Join(dir, so); isFile(path) {
				return path
			}
		}
	}
	return ""
}

// loaderDirs are the dynamic loader's folders: LD_LIBRARY_PATH, those of ld.so.conf below root,
// the system's, and those where containers put the driver.
func loaderDirs(root string) []string {
	out := filepath.SplitList(os.Getenv("LD_LIBRARY_PATH"))
	files, _ := filepath.Glob(filepath.Join(root, "etc/ld.so.conf.d/*.conf"))
	for _, name := range append(files, filepath.Join(root, "etc/ld.so.conf")) {
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		for s := bufio.NewScanner(f); s.Scan(); {
			if line := strings.TrimSpace(s.Text()); filepath.IsAbs(line) {
				out = append(out, filepath.Join(root, line))
			}
		}
		f.Close()
	}
	for _, dir := range []string{"usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib",
		"lib/x86_64-linux-gnu", "lib64", "lib", "usr/local/nvidia/lib64", "usr/local/nvidia/lib", "usr/lib/wsl/lib"} {
		out = append(out, filepath.Join(root, dir))
	}
	return out
}
