//go:build !unix || solaris || illumos || aix

package hostmem

import "math"

// OpenFiles is how many files this process may have open at once: nobody says.
func OpenFiles() int64 { return math.MaxInt64 }

// FewFiles is nil: nobody says.
func FewFiles() error { return nil }

var addressSpace = func() int64 { return math.MaxInt64 }
