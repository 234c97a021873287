package codegen

import (
	"context"
	"errors"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

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
	for _, c := range []struct{ name, value, hint string }{
		{"GOTMPDIR", filepath.Join(dir, "nowhere"), "GOTMPDIR"},
		{"TMPDIR", filepath.Join(dir, "nowhere"), "TMPDIR"},
		{"GOFLAGS", "-nonsense", "go env"},
		{"GOARCH", "abacus", "go env"},
		{"GOCACHE", "/dev/null/x", "set HOME, or GOCACHE"},
		{"GO111MODULE", "off", "GO111MODULE"},
		{"PATH", fakeGo(t), "another program is called `go`"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(c.name, c.value)
			_, err := Build(t.Context(), dir, "nano")
			var e *BuildError
			if !errors.As(err, &e) || !e.Machine || !strings.Contains(e.Hint, c.hint) {
				t.Errorf("%v\nhelp: %s", err, e.Hint)
			}
		})
	}
}

// TestWhatStopsTheToolchain: the words of the toolchain lead to what mends it.
func TestWhatStopsTheToolchain(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the fake `go` is a script of a shell")
	}
	dir := t.TempDir()
	for _, c := range []struct{ says, hint string }{
		{"echo 'open /tmp/b008/importcfg: too many open files'; exit 1", "ulimit -n"},
		{"echo 'link: mapping output file failed: file too large'; exit 1", "ulimit -f"},
		{"echo 'write out/tiny: no space left on device'; exit 1", "(-o)"},
		{"echo 'fork/exec compile: resource temporarily unavailable'; exit 1", "ulimit -u"},
		{"echo 'runtime: failed to create new OS thread (have 5 already; errno=11)'; exit 2", "ulimit -u"},
		{"echo 'fatal error: failed to reserve page summary memory'; exit 2", "ulimit -v"},
		{"echo 'compile: signal: killed'; exit 1", "memory"},
		{"kill -9 $$", "memory"},
	} {
		tools := t.TempDir()
		if err := os.WriteFile(filepath.Join(tools, "go"), []byte("#!/bin/sh\n"+c.says+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", tools)
		_, err := Build(t.Context(), dir, "nano")
		var e *BuildError
		if !errors.As(err, &e) || !e.Machine || !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%s: %v\nhelp: %s", c.says, err, e.Hint)
		}
	}
}

// TestAnInterruptedBuildLeavesNothing: the toolchain does not remove its temporary files then.
func TestAnInterruptedBuildLeavesNothing(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the fake `go` is a script of a shell")
	}
	tools, tmp := t.TempDir(), t.TempDir()
	script := "#!/bin/sh\nmkdir -p \"$TMPDIR/go-build1/b001\"\necho x >\"$TMPDIR/go-build1/b001/a.out\"\n: >" + filepath.Join(tools, "began") + "\nexec sleep 600\n"
	if err := os.WriteFile(filepath.Join(tools, "go"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", tools+string(filepath.ListSeparator)+os.Getenv("PATH"))
	t.Setenv("GOTMPDIR", "")
	t.Setenv("TMPDIR", tmp)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for {
			if _, err := os.Stat(filepath.Join(tools, "began")); err == nil || t.Context().Err() != nil {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	if _, err := Build(ctx, t.TempDir(), "nano"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// fakeGo is a folder with a `go` that does nothing.
func fakeGo(t *testing.T) string {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestFoldersThatGoDoesNotBuildIn are refused before the toolchain takes them for something else.
func TestFoldersThatGoDoesNotBuildIn(t *testing.T) {
	for _, name := range []string{"a\nb", `a\b`, "a\x7f", "a\xff"} {
		_, err := Build(t.Context(), filepath.Join(t.TempDir(), name), "nano")
		var e *BuildError
		if !errors.As(err, &e) || !e.Machine || !strings.Contains(e.Message, "builds nothing in") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestNamesInComments: a file may be called anything; what is generated from it stays Go.
func TestNamesInComments(t *testing.T) {
	text, err := os.ReadFile("testdata/window.mt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"new\nline.mt", "bad\xff.mt", "*/.mt", "tab\t.mt", "a // b.mt"} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Skip(err)
		}
		for file, text := range generate(t, compile(t, compiler.Options{Path: path})) {
			if !strings.HasSuffix(file, ".go") {
				continue
			}
			if _, err := parser.ParseFile(token.NewFileSet(), file, text, parser.AllErrors); err != nil {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
}
