package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// No output takes the place of what is no earlier one of its kind, however the path is written; what it
// stands beside is the reason for a name that is a part of a build or a run.
func TestOutputsKeepWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	put := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	build, err := os.ReadFile("/dev/null")
	if err != nil {
		t.Skip("no /dev/null here:", err)
	}
	put("b/schedule.json", `{"model": "m"}`)
	put("b/nano", "\x7fELF")
	put("m.mt", "model m() {}")
	put("machine.json", "{\n \"name\": \"mine\"")
	put("page.html", "<!doctype html>\n")
	put("trace.json", `{"displayTimeUnit":"ms"`)
	put("empty", string(build))
	for link, to := range map[string]string{"soft": "b/schedule.json", "soft.html": "page.html", "far.json": "b/profile.json"} {
		if err := os.Symlink(to, link); err != nil {
			t.Skip("no links here:", err)
		}
	}
	if err := os.Link("m.mt", "hard"); err != nil {
		t.Skip("no links here:", err)
	}
	kinds := map[string]outKind{"page": outPage, "trace": outTrace, "profile": outProfile, "program": outProgram}
	for _, c := range []struct{ path, may string }{
		{"b/schedule.json", ""}, {"./b/../b/schedule.json", ""}, {filepath.Join(dir, "b/schedule.json"), ""}, {"soft", ""},
		{"b/nano", ""}, {"m.mt", ""}, {"hard", ""},
		{"b/profile.json", ""}, {"far.json", ""}, {"b/build.json", ""}, {"b/moe.jsonl", ""}, {"b/more.go", ""}, {"b/x.mt", ""},
		{"page.html", "page"}, {"soft.html", "page"}, {"trace.json", "trace"}, {"machine.json", "profile"},
		{"empty", "page trace profile program"}, {"new", "page trace profile program"}, {"profile.json", "page trace profile program"},
		{"b/step.html", "page trace profile program"}, {"/dev/null", "page trace profile program"},
	} {
		for name, kind := range kinds {
			err := kind.mayReplace(c.path)
			if may := strings.Contains(c.may, name); may != (err == nil) {
				t.Errorf("%s as a %s: %v", c.path, name, err)
			}
		}
	}
}

// Where its results cannot be written, no verb and no help ends as if they had been.
func TestNoVerbLosesItsOutput(t *testing.T) {
	lines := [][]string{{}, {"help"}, {"--help"}, {"--version"}, {"completion", "bash"}, {"completion", "zsh"}, {"__complete", "pl"},
		{"data", "pack", "--help"}, {"data", "show", "--help"}, {"explain"}, {"explain", "MT0001"}, {"ops"}, {"ops", "linear"}, {"doctor"}}
	for _, v := range verbs {
		name := v(&env{}).Name()
		lines = append(lines, []string{name, "--help"}, []string{"help", name})
	}
	for _, args := range lines {
		var errw strings.Builder
		code := run(args, strings.NewReader(""), full{}, &errw)
		if code != exitMachine || !strings.Contains(errw.String(), "the output cannot be written: no space left on device") {
			t.Errorf("mtc %s: exit %d, %s", strings.Join(args, " "), code, errw.String())
		}
	}
}

// full is a device without space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }
