//go:build unix

package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
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

// TestASignalLeavesNoHalfOutput: the process that the signal ends is this test again, which writes a page that never ends.
func TestASignalLeavesNoHalfOutput(t *testing.T) {
	if path := os.Getenv("MTC_TEST_OUTPUT"); path != "" {
		writeOut(path, func(w io.Writer) error {
			for {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return err
				}
				time.Sleep(time.Millisecond)
			}
		})
		return
	}
	for sig, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0], "-test.run=^TestASignalLeavesNoHalfOutput$")
		cmd.Env = append(os.Environ(), "MTC_TEST_OUTPUT="+filepath.Join(dir, "page.html"))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			cmd.Wait()
		}()
		for begun := false; !begun; {
			files, _ := filepath.Glob(filepath.Join(dir, ".mtc-*"))
			for _, f := range files {
				info, err := os.Stat(f)
				begun = begun || err == nil && info.Size() > 0
			}
			select {
			case <-ended:
				t.Fatalf("it ended by itself: %v", cmd.ProcessState)
			case <-time.After(time.Millisecond):
			}
		}
		cmd.Process.Signal(sig)
		<-ended
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Errorf("%v: ends with %d, wanted %d", sig, got, code)
		}
		if list, err := os.ReadDir(dir); err != nil || len(list) != 0 {
			t.Errorf("%v: left %v, %v", sig, list, err)
		}
	}
}

// TestOutputsKeepToTheUmask: a file that is new is for those whom the umask lets, one that is replaced for those of before.
func TestOutputsKeepToTheUmask(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	path := filepath.Join(t.TempDir(), strings.Repeat("n", 255))
	for _, c := range []struct{ set, want os.FileMode }{{0, 0o600}, {0o640, 0o640}} {
		if c.set != 0 {
			if err := os.Chmod(path, c.set); err != nil {
				t.Fatal(err)
			}
		}
		if err := writeOut(path, func(w io.Writer) error { _, err := io.WriteString(w, "x"); return err }); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != c.want {
			t.Errorf("mode %v, %v; wanted %v", info.Mode(), err, c.want)
		}
	}
}
