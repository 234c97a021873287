//go:build unix && !solaris && !illumos && !aix

package hostmem

import (
	"math"
	"syscall"
)

// OpenFiles is how many files this process may have open at once.
func OpenFiles() int64 { return rlimit(syscall.RLIMIT_NOFILE) }

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
