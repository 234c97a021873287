package main

import (
	"os"
	"strings"
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

// TestHelpFollowsFromTheCause: another folder is no help where a process may have no more files open, and space is
// help where a disk is full.
func TestHelpFollowsFromTheCause(t *testing.T) {
	for err, want := range map[syscall.Errno]string{
		syscall.EMFILE: "raise the limit of open files: `ulimit -n 1024`",
		syscall.EFBIG:  "raise the limit of a file's size: `ulimit -f unlimited`, or take a file system that has such files",
		syscall.ENOSPC: "free some space, or give another folder with `-o DIR`",
		syscall.EDQUOT: "free some space, or give another folder with `-o DIR`",
		syscall.EROFS:  "give another folder with `-o DIR`",
	} {
		e, ok := cannotWrite("out", &os.PathError{Op: "write", Path: "out/f", Err: err}).(*cliError)
		if !ok || e.code != exitMachine || strings.Join(e.help, "; ") != want {
			t.Errorf("%v: %v, help %q, want %q", err, e, e.help, want)
		}
	}
}
