package checkpoint

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/megatrain/mtc/runtime/aside"
	"github.com/megatrain/mtc/runtime/fault"
)

// lockFile is held by the process that trains into a run folder.
const lockFile = ".lock"

// Folder is a run folder that this process has for itself until Unlock or its end.
type Folder struct {
	dir  string
	self *os.File // the folder: as long as it is open no other one is taken for it
	file *os.File
}

// Lock makes the run folder if need be and takes it; a second training run in it is refused.
// Systems without file locks do not refuse.
func Lock(dir string) (*Folder, error) {
	if err := aside.MakeAll(dir); err != nil {
		return nil, fault.New("MT0623", dir, "the run folder cannot be made").Wrap(cause(err)).Help("give a folder that can be written with --out")
	}
	f := &Folder{dir: dir}
	var err error
	if f.self, err = os.Open(dir); err == nil {
		f.file, err = os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o666)
	}
	if err != nil {
		f.Unlock()
		return nil, fault.New("MT0623", dir, "the run folder cannot be written").Wrap(cause(err)).Help("give a folder that can be written with --out")
	}
	// The folder too: the file may be removed by hand, and then a second one be made.
	for _, file := range []*os.File{f.self, f.file} {
		if free, err := tryLock(file); err != nil || !free {
			f.Unlock()
			return nil, fault.New("MT0626", dir, "another process is training into this folder").Wrap(err).
				Help("wait for it, or give another --out")
		}
	}
	return f, nil
}

// Unlock lets go of the folder.
func (f *Folder) Unlock() {
	f.self.Close()
	f.file.Close()
}

// Place is where the folder is by now: where it was, elsewhere if it was renamed and the system
// tells, or "" if it was removed or nobody knows.
func (f *Folder) Place() string {
	self, err := f.self.Stat()
	if err != nil {
		return ""
	}
	moved, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.self.Fd()))
	for _, dir := range []string{f.dir, moved} {
		if info, err := os.Stat(dir); err == nil && os.SameFile(info, self) {
			return dir
		}
	}
	return ""
}
