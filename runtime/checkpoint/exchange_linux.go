package checkpoint

import (
	"os"

	"golang.org/x/sys/unix"
)

// exchange swaps the names of two folders at once. Some file systems cannot, and say so.
func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

// flush begins to write a part of a file to the disk, and does not wait for it.
func flush(f *os.File, off, n int64) {
	_ = unix.SyncFileRange(int(f.Fd()), off, n, unix.SYNC_FILE_RANGE_WRITE) // only a hint: Sync follows
}
