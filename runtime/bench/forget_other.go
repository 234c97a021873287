//go:build !linux

package bench

import "os"

// forget would ask the system to drop a file's pages from its cache; there is no call for it.
func forget(*os.File) {}
