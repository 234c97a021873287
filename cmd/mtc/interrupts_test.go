//go:build unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestSignalsDuringABench: a measurement that is interrupted ends with its program, and leaves nothing behind.
func TestSignalsDuringABench(t *testing.T) {
	w := newWorkFolder(t)
	// A toolchain whose programs measure until they are asked to end.
	w.write("go", `#!/bin/sh
while [ "$1" != -o ]; do shift || exit 1; done
cat >"$2" <<'END'
#!/bin/sh
trap 'touch "$TMPDIR/ended"; exit 1' TERM
touch "$TMPDIR/started"
while :; do sleep 0.05; done
END
chmod +x "$2"
`)
	if err := os.Chmod(filepath.Join(w.dir, "go"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		signal syscall.Signal
		code   int
	}{{syscall.SIGINT, 130}, {syscall.SIGTERM, 143}, {syscall.SIGHUP, 129}} {
		tmp := t.TempDir()
		cmd := w.command(".", "bench")
		cmd.Env = append(os.Environ(), "PATH="+w.dir+string(filepath.ListSeparator)+os.Getenv("PATH"), "TMPDIR="+tmp, "XDG_CONFIG_HOME="+tmp, "HOME="+tmp)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		for !exists(filepath.Join(tmp, "started")) {
			time.Sleep(10 * time.Millisecond)
		}
		if err := cmd.Process.Signal(c.signal); err != nil {
			t.Fatal(err)
		}
		if code := exitCodeOf(t, cmd.Wait()); code != c.code {
			t.Errorf("%v: exit %d, want %d", c.signal, code, c.code)
		}
		if !exists(filepath.Join(tmp, "ended")) {
			t.Errorf("%v: the program that measures was not asked to end", c.signal)
		}
		if left, _ := filepath.Glob(filepath.Join(tmp, benchPrefix+"*")); len(left) > 0 {
			t.Errorf("%v: it left %v", c.signal, left)
		}
	}
}
