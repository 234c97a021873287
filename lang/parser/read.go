package parser

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// errNotRegular is why devices, pipes and sockets are not read: some never end, others wait
// for a writer that never comes.
var errNotRegular = errors.New("is not a regular file")

// ReadFile reads a .mt file, at most one byte more than Parse takes: that byte says as much as
// all the others. What is not a regular file is an error (fs.PathError), before it is opened.
func ReadFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("is a folder")}
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errNotRegular}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(f)
}

// Read reads a text from r, at most one byte more than Parse takes.
func Read(r io.Reader) ([]byte, error) { return io.ReadAll(io.LimitReader(r, MaxBytes+1)) }
