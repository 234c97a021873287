package bench

import (
	"os"

	"golang.org/x/sys/unix"
)

// forget asks the system to drop a file's pages from its cache.
func forget(f *os.File) { _ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) }
