//go:build unix

package bench

import (
	"time"

	"golang.org/x/sys/unix"
)

// processorTime is what this process has used of the processors.
func processorTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err) // cannot fail for oneself
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
