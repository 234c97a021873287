package main

import (
	"os"
	"syscall"
	"testing"
)

// TestMachineFaultsOfInput: a file that the machine does not read is not a wrong one.
func TestMachineFaultsOfInput(t *testing.T) {
	for err, want := range map[syscall.Errno]int{
		syscall.EMFILE: exitMachine, syscall.EIO: exitMachine, syscall.ENOSPC: exitMachine, syscall.ENOENT: exitInput, syscall.EACCES: exitInput,
	} {
		wrapped := &os.PathError{Op: "open", Path: "f", Err: err}
		if got := inputErrorf("%s cannot be read: %v", "f", wrapped); got.code != want {
			t.Errorf("%v: exit code %d, want %d", err, got.code, want)
		}
	}
}
