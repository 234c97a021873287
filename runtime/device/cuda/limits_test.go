//go:build cuda

package cuda

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/megatrain/mtc/runtime/device/cuda/libs"
	"github.com/megatrain/mtc/runtime/fault"
)

// TestLimitsAreNamed: where a process may have few files open, that is what is said to mend, whatever failed of it:
// the loader, a library and the driver word it in their own ways, or not at all.
func TestLimitsAreNamed(t *testing.T) {
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	errs := func() map[string]error {
		err := errors.New("a result")
		return map[string]error{
			"driver":  cannotUse("the GPU", err),
			"library": missing(libs.NVRTC, err),
			"kernel":  (&Device{}).unloadable("add", "its machine code does not load", err),
		}
	}
	check := func(want bool) {
		for name, err := range errs() {
			var f *fault.Error
			if !errors.As(err, &f) || strings.Contains(f.Hint, "ulimit -n") != want {
				t.Errorf("%s: %v, help names the limit: wanted %t", name, err, want)
			}
		}
	}
	if was.Cur >= wantedFiles {
		check(false)
	}
	few := was
	few.Cur = wantedFiles - 1
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	check(true)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
}
