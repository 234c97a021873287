package aside

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What is being written stays, what was left is removed, and nothing else is touched.
func TestOnlyWhatNobodyWritesIsRemoved(t *testing.T) {
	dir := t.TempDir()
	put := func(path string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	put(filepath.Join(dir, ".half-1-0", "x"))
	put(filepath.Join(dir, ".other-1-0", "x"))
	a, err := Make(dir, ".half-")
	if err != nil {
		t.Fatal(err)
	}
	put(filepath.Join(a.Path, "x"))
	b, err := Make(dir, ".half-")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{".half-1-0": false, ".other-1-0/x": true, filepath.Base(a.Path) + "/x": true, filepath.Base(b.Path): true} {
		if _, err := os.Stat(filepath.Join(dir, path)); (err == nil) != want {
			t.Errorf("%s: %v, wanted there %t", path, err, want)
		}
	}
	if err := a.Move(filepath.Join(dir, "place")); err != nil {
		t.Fatal(err)
	}
	a.Remove()
	b.Remove()
	if list, err := os.ReadDir(dir); err != nil || len(list) != 2 {
		t.Errorf("%v, %v", list, err)
	}
}

// A signal removes what is being written. The process that it ends is this test again.
func TestASignalLeavesNothing(t *testing.T) {
	if dir := os.Getenv("MTC_ASIDE_DIR"); dir != "" {
		OnSignal()
		f, err := Make(dir, ".half-")
		if err != nil {
			t.Fatal(err)
		}
		os.WriteFile(filepath.Join(f.Path, "x"), nil, 0o666)
		time.Sleep(time.Minute)
		return
	}
	if runtime.GOOS == "windows" {
		t.Skip("no signals are sent there")
	}
	codes := map[os.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143}
	for _, sig := range ends {
		codes[sig] = 128 + int(sig.(syscall.Signal))
	}
	for sig, code := range codes {
		dir := t.TempDir()
		c := exec.Command(os.Args[0], "-test.run=^TestASignalLeavesNothing$")
		c.Env = append(os.Environ(), "MTC_ASIDE_DIR="+dir)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		for i := 0; i < 2000; i++ {
			if l, _ := filepath.Glob(filepath.Join(dir, ".half-*", "x")); len(l) == 1 {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		c.Process.Signal(sig)
		c.Wait()
		if got := c.ProcessState.ExitCode(); got != code {
			t.Errorf("%v: ends with %d, wanted %d", sig, got, code)
		}
		if list, err := os.ReadDir(dir); err != nil || len(list) != 0 {
			t.Errorf("%v: left %v, %v", sig, list, err)
		}
	}
}

// TestMakeAllSaysWhatIsThere: "file exists" is no word for a link to nowhere.
func TestMakeAllSaysWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink("nowhere", link); err != nil {
		t.Skip(err)
	}
	for path, want := range map[string]string{filepath.Join(dir, "a", "b"): "", link: "leads nowhere", filepath.Join(link, "x"): "leads nowhere"} {
		if err := MakeAll(path); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, wanted %q", path, err, want)
		}
	}
}
