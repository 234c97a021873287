//go:build unix && !solaris && !illumos && !aix

package checkpoint

import (
	"errors"
	"os"
	"syscall"
)

// tryLock takes the lock without waiting; the system frees it when the process ends.
func tryLock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, syscall.EWOULDBLOCK):
		return false, nil
	case errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOLCK), errors.Is(err, syscall.EBADF):
		return true, nil // some network file systems have no locks, or none of folders
	}
	return false, err
}
