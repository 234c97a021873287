package cpu

import "golang.org/x/sys/unix"

// huge asks for large pages where the system has them to give: rows of matrices lie in pages of
// their own, and looking those up is a tenth of a training step.
func huge(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }
