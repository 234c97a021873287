// Package aside makes the folders that results are written into before they are moved to their
// place. Their maker holds a lock on each, so that the next one in the same parent tells what a
// process that was killed left behind from what is still being written, and removes it.
package aside

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ErrTaken is the error of a place where something is that is no empty folder.
var ErrTaken = errors.New("there is something there already")

// Place is where a folder named dir goes: there, or where a link of that name leads to.
func Place(dir string) (string, error) {
	dir = filepath.Clean(dir)
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	if info, err := os.Lstat(dir); err != nil {
		return dir, nil // nothing is there, or its making fails with a better message
	} else if !info.IsDir() {
		return dir, ErrTaken
	}
	list, err := os.ReadDir(dir)
	if len(list) > 0 {
		err = ErrTaken
	}
	return dir, err
}

// MakeAll is os.MkdirAll with words for what else has the name.
func MakeAll(dir string) error {
	err := os.MkdirAll(dir, 0o777)
	if os.IsExist(err) {
		return errors.New("a link of that name leads nowhere")
	}
	return err
}

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

// Move moves the folder to its place, where nothing is or an empty folder; a file that came there meanwhile stays.
func (f *Folder) Move(place string) error {
	f.leave()
	if info, err := os.Lstat(place); err == nil && info.IsDir() {
		os.Remove(place) // what it cannot remove the next line tells
	}
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
