//go:build unix && !solaris && !illumos && !aix

package hostmem

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// TestFewFiles: a process that cannot open what it needs to begin says so, where the runtime would end it.
func TestFewFiles(t *testing.T) {
	if n := os.Getenv("MTC_FILES"); n != "" {
		limit := syscall.Rlimit{Cur: uint64(n[0] - '0'), Max: uint64(n[0] - '0')}
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			os.Exit(3)
		}
		if errors.Is(FewFiles(), syscall.EMFILE) {
			os.Exit(7)
		}
		os.Exit(0)
	}
	if err := FewFiles(); err != nil {
		t.Errorf("here: %v", err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"3", "4", "5"} {
		c := exec.Command(exe, "-test.run=^TestFewFiles$")
		c.Env = append(os.Environ(), "MTC_FILES="+n)
		var x *exec.ExitError
		if err := c.Run(); !errors.As(err, &x) || x.ExitCode() != 7 {
			t.Errorf("with %s files: %v", n, err)
		}
	}
}
