//go:build unix && !solaris && !illumos && !aix

package aside

import (
	"os"
	"syscall"
)

// ends are signals of this system alone that ask a process to end.
var ends = []os.Signal{syscall.SIGXCPU}

// tryLock takes the lock without waiting, and says whether it has it: not where another process
// does, nor where the file system has no locks. The system frees it when the process ends.
func tryLock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
