//go:build unix

package cputime

import (
	"syscall"
	"time"
)

// spent is what this process has computed so far, in user and system mode.
func spent() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
