// Package aside makes the folders that results are written into before they are moved to their
// place. Their maker holds a lock on each, so that the next one in the same parent tells what a
// process that was killed left behind from what is still being written, and removes it.
package aside

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Folder is a folder that is being written.
type Folder struct {
	Path string
	lock *os.File
}

// Make makes a folder in parent, which must be there; its name begins with prefix. Folders of
// that prefix that nobody writes any more are removed first, where the system has locks.
func Make(parent, prefix string) (*Folder, error) {
	sweep(parent, prefix)
	for n := 0; ; n++ {
		path := filepath.Join(parent, fmt.Sprintf("%s%d-%d", prefix, os.Getpid(), n))
		err := os.Mkdir(path, 0o777)
		if os.IsExist(err) && n < 10000 {
			continue
		}
		if err != nil {
			return nil, err
		}
		f := &Folder{Path: path}
		f.enter()
		if f.lock, err = os.Open(path); err == nil {
			tryLock(f.lock) // nobody else has it: it was made just now
		}
		return f, nil
	}
}

// Move moves the folder to its place, which must not be there.
func (f *Folder) Move(place string) error {
	f.leave()
	if err := os.Rename(f.Path, place); err != nil {
		return err
	}
	f.Path = ""
	f.release()
	return nil
}

// Remove removes the folder, unless it has been moved.
func (f *Folder) Remove() {
	f.leave()
	if f.Path != "" {
		os.RemoveAll(f.Path)
	}
	f.release()
}

func (f *Folder) release() {
	if f.lock != nil {
		f.lock.Close()
		f.lock = nil
	}
}

// sweep removes the folders in parent whose makers have ended. An empty one stays: it may be
// one that is not locked yet.
func sweep(parent, prefix string) {
	all, _ := os.ReadDir(parent) // a parent that cannot be read has nothing to find
	for _, e := range all {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		path := filepath.Join(parent, e.Name())
		list, err := os.ReadDir(path)
		if err != nil || len(list) == 0 {
			continue
		}
		if f, err := os.Open(path); err == nil {
			if tryLock(f) {
				os.RemoveAll(path)
			}
			f.Close()
		}
	}
}
