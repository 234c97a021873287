package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestProgramsThatDoNotStart: each says why, and what to do.
func TestProgramsThatDoNotStart(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("programs there are told by their names")
	}
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct{ path, hint string }{
		{file("other", "\x7fELF of another processor", 0o755), "compile the model again here"},
		{file("mode", "#!/bin/sh\n", 0o644), "noexec"},
		{filepath.Join(dir, "nowhere"), "holds its program no more"},
		{file("killed", "#!/bin/sh\nkill -9 $$\n", 0o755), "where memory is short"},
	} {
		err := childError(c.path, exec.Command(c.path).Run())
		if e, ok := err.(*cliError); !ok || e.code != exitMachine || !strings.Contains(strings.Join(e.help, "\n"), c.hint) {
			t.Errorf("%s: %v", c.path, err)
		}
	}
}

// TestPlainArg: a folder whose name looks like a flag reaches a program as a folder.
func TestPlainArg(t *testing.T) {
	for given, want := range map[string]string{"./-out": "./-out", "-out": "./-out", "a/../-b/": "./-b", "runs/x": "runs/x", "/-a": "/-a", ".": "."} {
		if got := filepath.ToSlash(plainArg(given)); got != want {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
}
