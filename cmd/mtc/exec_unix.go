//go:build unix

package main

import (
	"os"
	"syscall"
)

// replaceProcess becomes another program; it returns only when it fails.
func replaceProcess(path string, argv []string) error {
	return syscall.Exec(path, argv, os.Environ())
}
