package fault

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
)

func TestRendering(t *testing.T) {
	cause := errors.New("permission denied")
	for _, c := range []struct {
		err        error
		line, text string
		exit       int
	}{
		{New("MT0602", "a.bin", "cannot be read").At(12).Wrap(cause).Help("try %s", "this"),
			"MT0602: a.bin: byte 12: cannot be read: permission denied",
			"error[MT0602]: cannot be read: permission denied\n  --> a.bin: byte 12\n  help: try this\n", 1},
		{New("MT0623", "", "the disk is full").OnMachine(),
			"MT0623: the disk is full", "error[MT0623]: the disk is full\n", 3},
		{New("MT0623", "", "not written").Wrap(fmt.Errorf("x: %w", syscall.ENOSPC)),
			"MT0623: not written: x: no space left on device", "error[MT0623]: not written: x: no space left on device\n", 3},
		{New("MT0623", "", "not written").Wrap(fmt.Errorf("x: %w", syscall.EMFILE)).Help("give another folder"),
			"MT0623: not written: x: too many open files", "error[MT0623]: not written: x: too many open files\n  help: raise the limit of open files: `ulimit -n 1024`\n", 3},
		{New("MT0602", "", "not read").Help("give another file").Wrap(syscall.EFBIG),
			"MT0602: not read: file too large", "error[MT0602]: not read: file too large\n  help: raise the limit of a file's size: `ulimit -f unlimited`, or take a file system that has such files\n", 3},
		{New("MT0623", "", "not written").Wrap(syscall.EACCES),
			"MT0623: not written: permission denied", "error[MT0623]: not written: permission denied\n", 1},
		{New("MT0663", "d\x1b[2J", "a\tb of\n    é日\u202e").Help("\a"),
			"MT0663: d\x1b[2J: a\tb of\n    é日\u202e",
			"error[MT0663]: a\tb of\n    é日\\u202e\n  --> d\\x1b[2J\n  help: \\a\n", 1},
		{fmt.Errorf("while saving: %w", New("MT0601", "d", "no files")),
			"while saving: MT0601: d: no files", "error[MT0601]: no files\n  --> d\n", 1},
	} {
		if c.err.Error() != c.line || Text(c.err) != c.text {
			t.Errorf("got\n%s\n%swanted\n%s\n%s", c.err, Text(c.err), c.line, c.text)
		}
		var f *Error
		if !errors.As(c.err, &f) || f.ExitCode() != c.exit {
			t.Errorf("%v: exit code", c.err)
		}
	}
	if !errors.Is(New("MT0602", "", "x").Wrap(cause), cause) {
		t.Error("the cause is lost")
	}
	if got := Text(cause); got != "error: permission denied\n" {
		t.Errorf("got %q", got)
	}
}

func TestMachineFaults(t *testing.T) {
	for err, want := range map[syscall.Errno]int{
		syscall.ENOSPC: 3, syscall.EDQUOT: 3, syscall.EIO: 3, syscall.EROFS: 3, syscall.EMFILE: 3, syscall.ENFILE: 3, syscall.EFBIG: 3,
		syscall.ENOENT: 1, syscall.EACCES: 1, syscall.EISDIR: 1,
	} {
		if got := New("MT0623", "p", "cannot be written").Wrap(fmt.Errorf("write p: %w", err)).ExitCode(); got != want {
			t.Errorf("%v: exit code %d, want %d", err, got, want)
		}
	}
}
