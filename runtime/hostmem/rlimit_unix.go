//go:build unix && !solaris && !illumos && !aix

package hostmem

import (
	"math"
	"syscall"
)

// OpenFiles is how many files this process may have open at once.
func OpenFiles() int64 { return rlimit(syscall.RLIMIT_NOFILE) }

// leastFiles is how many files more a process needs open at once: those of the Go runtime, which ends a process that cannot
// have them with a trace of its own, and one to read.
const leastFiles = 3

// FewFiles is the error of a process that cannot have as many files open as one needs to begin.
func FewFiles() (err error) {
	for i := 0; i < leastFiles && err == nil; i++ {
		var fd int
		if fd, err = syscall.Open(".", syscall.O_RDONLY|syscall.O_CLOEXEC, 0); err == nil {
			defer syscall.Close(fd)
		}
	}
	if err == syscall.EMFILE {
		return err
	}
	return nil // what else is wrong with the folder shows where it matters
}

// rlimit is a limit of this process, MaxInt64 where it has none.
func rlimit(of int) int64 {
	var r syscall.Rlimit
	if syscall.Getrlimit(of, &r) != nil {
		return math.MaxInt64
	}
	return int64(min(uint64(r.Cur), math.MaxInt64))
}

// addressSpace is how much a process may map, in bytes; tests replace it.
var addressSpace = func() int64 { return rlimit(syscall.RLIMIT_AS) }
