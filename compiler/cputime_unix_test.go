//go:build unix

package compiler

import (
	"syscall"
	"time"
)

// cpuTime is what this process has computed so far: bounds on it hold on a busy machine too.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
