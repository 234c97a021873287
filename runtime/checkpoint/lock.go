package checkpoint

import (
	"os"
	"path/filepath"

	"github.com/megatrain/mtc/runtime/fault"
)

// lockFile is held by the process that trains into a run folder.
const lockFile = ".lock"

// Lock makes the run folder if need be and takes it for this process until unlock or its end;
// a second training run in it is refused. Systems without file locks do not refuse.
func Lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fault.New("MT0623", dir, "the run folder cannot be made").Wrap(cause(err)).ByCause().Help("give a folder that can be written with --out")
	}
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fault.New("MT0623", dir, "the run folder cannot be written").Wrap(cause(err)).ByCause().Help("give a folder that can be written with --out")
	}
	free, err := tryLock(f)
	if err != nil || !free {
		f.Close()
		return nil, fault.New("MT0626", dir, "another process is training into this folder").Wrap(err).
			Help("wait for it, or give another --out")
	}
	return func() { f.Close() }, nil
}
