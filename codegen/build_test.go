package codegen

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/megatrain/mtc/compiler"
)

// TestBuildInAnyFolder builds a program outside of the checkout, without a network, and runs
// the executable.
func TestBuildInAnyFolder(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command")
	}
	t.Setenv("GOPROXY", "off")
	t.Setenv("MTC_SOURCE", "")
	m, err := FindModule("")
	if err != nil {
		t.Fatal(err)
	}
	in := compile(t, compiler.Options{Path: "testdata/window.mt"})
	in.Module = m
	dir := filepath.Join(t.TempDir(), "a folder")
	write(t, dir, generate(t, in))
	binary, err := Build(t.Context(), dir, "window")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(binary, "info").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "window") {
		t.Errorf("info: %v\n%s", err, out)
	}
}

func write(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBuildWithoutGo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Build(t.Context(), t.TempDir(), "nano")
	var e *BuildError
	if !errors.As(err, &e) || !e.Machine || !strings.Contains(e.Hint, "install Go") {
		t.Errorf("%v", err)
	}
}

func TestBuildOfBrokenSource(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command")
	}
	dir := t.TempDir()
	write(t, dir, map[string][]byte{"go.mod": []byte("module x\n\ngo 1.26.0\n"), "main.go": []byte("package main\n\nfunc main() { nowhere() }\n")})
	_, err := Build(t.Context(), dir, "nano")
	var e *BuildError
	if !errors.As(err, &e) || e.Machine || !strings.Contains(e.Output, "undefined: nowhere") {
		t.Errorf("%v", err)
	}
}

// TestBuildInABadEnvironment: what is wrong around a program is no fault of mtc.
func TestBuildInABadEnvironment(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command")
	}
	dir := t.TempDir()
	write(t, dir, map[string][]byte{"go.mod": []byte("module x\n\ngo 1.26.0\n"), "main.go": []byte("package main\n\nfunc main() {}\n")})
	for name, value := range map[string]string{
		"GOTMPDIR": filepath.Join(dir, "nowhere"), "GOFLAGS": "-nonsense", "GOARCH": "abacus", "GOCACHE": "relative",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			_, err := Build(t.Context(), dir, "nano")
			var e *BuildError
			if !errors.As(err, &e) || !e.Machine || !strings.Contains(e.Hint, "go env") {
				t.Errorf("%v", err)
			}
		})
	}
}
