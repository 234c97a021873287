package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"sync/atomic"

	"github.com/megatrain/mtc/runtime/aside"
)

// writeOut writes a file that the user named. A regular file is there whole or as it was, and
// keeps its mode; a link stays one, and what it points to is written. A device, a pipe or a
// socket is written into.
func writeOut(path string, write func(io.Writer) error) error { return writeMode(path, 0o666, write) }

// writeMode is writeOut with a mode for a file that is new, less what the umask takes from it.
func writeMode(path string, mode fs.FileMode, write func(io.Writer) error) error {
	info, err := os.Stat(path)
	if err == nil && isStdout(info) {
		return flushed(os.Stdout, write)
	}
	if err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(flushed(f, write), f.Close())
	}
	if path, err = linkEnd(path); err != nil {
		return err
	}
	var half atomic.Pointer[os.File]
	defer onSignal(func() {
		if f := half.Load(); f != nil {
			os.Remove(f.Name())
		}
	})()
	f, err := beside(path, mode)
	if err != nil {
		return err
	}
	half.Store(f)
	err = flushed(f, write)
	if err == nil && info != nil {
		err = f.Chmod(info.Mode().Perm())
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// onSignal puts something away when a signal ends this process, until stop is called.
func onSignal(away func()) (stop func()) {
	caught := make(chan os.Signal, 1)
	aside.Catch(caught)
	go func() {
		if sig, ok := <-caught; ok {
			away()
			os.Exit(aside.Code(sig))
		}
	}()
	return func() {
		signal.Stop(caught)
		close(caught)
	}
}

// beside makes a new file in the folder of path.
func beside(path string, mode fs.FileMode) (*os.File, error) {
	for n := 0; ; n++ { // a short name: path's own may be as long as names get
		name := filepath.Join(filepath.Dir(path), fmt.Sprintf(".mtc-%d-%d", os.Getpid(), n))
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}

func flushed(f *os.File, write func(io.Writer) error) error {
	w := bufio.NewWriterSize(f, 1<<20)
	if err := write(w); err != nil {
		return err
	}
	return w.Flush()
}

// writeKind is writeOut for what kind says may be replaced.
func writeKind(path string, kind outKind, write func(io.Writer) error) error {
	if err := kind.mayReplace(path); err != nil {
		return err
	}
	return writeOut(path, write)
}

// canWriteOut says why writeKind would fail, before the work for it begins.
func canWriteOut(path string, kind outKind) error {
	if path == "-" {
		return errDash
	}
	if err := kind.mayReplace(path); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return errors.New("it is a folder")
	}
	if err == nil && !info.Mode().IsRegular() {
		return nil // the opening of a pipe waits for its reader
	}
	if path, err = linkEnd(path); err != nil {
		return err
	}
	f, err := beside(path, 0o666)
	if err != nil {
		return err
	}
	f.Close()
	return os.Remove(f.Name())
}

// linkEnd is what a chain of links points to, there or not; path itself where it is no link.
func linkEnd(path string) (string, error) {
	for range 40 {
		to, err := os.Readlink(path)
		if err != nil {
			return path, nil // no link, or nothing at all
		}
		if !filepath.IsAbs(to) {
			// A folder on the way may be a link itself, and `..` leads out of where it points to.
			dir, err := filepath.EvalSymlinks(filepath.Dir(path))
			if err != nil {
				return "", err
			}
			to = filepath.Join(dir, to)
		}
		path = to
	}
	return "", errors.New("its links lead in a circle")
}

// isStdout says whether a file is this program's output, as /dev/stdout is.
func isStdout(info fs.FileInfo) bool {
	out, err := os.Stdout.Stat()
	return err == nil && os.SameFile(info, out)
}

// errDash refuses a name that other programs take for their output, and that a file can have.
var errDash = errors.New("it is `-`")

// outError words what writeKind or canWriteOut returned.
func outError(path string, err error) error {
	if errors.Is(err, errDash) {
		return usageErrorf("`-` is no name of an output").hint("`/dev/stdout` is the standard output, and `./-` a file of that name")
	}
	var kept *keptError
	if errors.As(err, &kept) {
		return inputErrorf("%s is not written: %s", path, kept.why).hint("give another file, or move that one away first")
	}
	return machineErrorf("%s cannot be written: %v", path, reasonOf(err)).hint("give a file in a folder that can be written")
}
