//go:build unix

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// What is at the place of an output stays what it is: a link, a pipe, a device.
func TestWriteOutKeepsWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	put := func(text string) func(io.Writer) error {
		return func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
	}
	holds := func(name, want string) {
		t.Helper()
		if got, err := os.ReadFile(in(name)); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v; wanted %q", name, got, err, want)
		}
	}
	isA := func(path string, kind os.FileMode) {
		t.Helper()
		if info, err := os.Lstat(path); err != nil || info.Mode().Type() != kind {
			t.Errorf("%s: %v, %v; wanted %v", path, info, err, kind)
		}
	}
	if err := os.Mkdir(in("far"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(in("far/there"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"link": "far/there", "dangling": "far/new", "circle": "circle"} {
		if err := os.Symlink(to, in(link)); err != nil {
			t.Fatal(err)
		}
	}
	for link, file := range map[string]string{"link": "far/there", "dangling": "far/new", "plain": "plain"} {
		if err := writeOut(in(link), put("text of "+link)); err != nil {
			t.Fatal(err)
		}
		holds(file, "text of "+link)
	}
	isA(in("link"), os.ModeSymlink)
	isA(in("dangling"), os.ModeSymlink)
	if info, err := os.Stat(in("far/there")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode became %v, %v", info.Mode(), err)
	}
	if writeOut(in("circle"), put("x")) == nil || canWriteOut(in("circle"), outKind{}) == nil {
		t.Error("a circle of links was written")
	}

	if err := syscall.Mkfifo(in("pipe"), 0o600); err != nil {
		t.Skip("no pipes here:", err)
	}
	read := make(chan string)
	go func() {
		text, _ := os.ReadFile(in("pipe"))
		read <- string(text)
	}()
	if err := writeOut(in("pipe"), put("through")); err != nil {
		t.Fatal(err)
	}
	if got := <-read; got != "through" {
		t.Errorf("the pipe gave %q", got)
	}
	isA(in("pipe"), os.ModeNamedPipe)

	// A link to a device, so that not even a wrong writer can replace the device.
	for link, to := range map[string]string{"null": "/dev/null", "full": "/dev/full"} {
		if _, err := os.Stat(to); err != nil {
			continue
		}
		if err := os.Symlink(to, in(link)); err != nil {
			t.Fatal(err)
		}
		err := writeOut(in(link), put("away"))
		if link == "null" && err != nil || link == "full" && (err == nil || !strings.Contains(err.Error(), "no space")) {
			t.Errorf("%s: %v", to, err)
		}
		isA(in(link), os.ModeSymlink)
	}
	left, err := filepath.Glob(in(".*"))
	more, _ := filepath.Glob(in("far/.*"))
	if err != nil || len(left)+len(more) > 0 {
		t.Errorf("left behind: %v %v", left, more)
	}
}
