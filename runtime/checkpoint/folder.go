package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/megatrain/mtc/runtime/fault"
)

// Names of checkpoint folders; temporary ones are hidden.
const (
	prefix    = "step-"
	tmpPrefix = ".tmp-step-"
	oldPrefix = ".old-step-"
	// damagedSuffix follows the name of a damaged checkpoint that was set aside.
	damagedSuffix = ".damaged"
)

func folderName(step int64) string { return fmt.Sprintf("%s%06d", prefix, step) }

// stepOf reads the step from a folder's name.
func stepOf(name string) (int64, bool) {
	digits, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return 0, false
	}
	step, err := strconv.ParseInt(digits, 10, 64)
	return step, err == nil && step >= 0 && folderName(step) == name
}

// Info is one checkpoint folder of a run.
type Info struct {
	Path string
	Step int64
}

// List returns what has the name of a checkpoint in a run folder by step, newest last, without
// opening it: folders, links to folders that lie elsewhere, and what Open will refuse. A run
// folder that does not exist has none.
func List(dir string) ([]Info, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.New("MT0602", dir, "the run folder cannot be read").Wrap(cause(err))
	}
	var out []Info
	for _, e := range entries {
		if step, ok := stepOf(e.Name()); ok {
			out = append(out, Info{filepath.Join(dir, e.Name()), step})
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Step < out[j].Step })
	return out, nil
}

// Latest opens the checkpoint with the highest step. A damaged one is an error that names the
// newest whole one before it.
func Latest(dir string) (*Checkpoint, error) {
	all, err := List(dir)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fault.New("MT0620", dir, "there is no checkpoint here").
			Help("give the folder of a run that has written one; `mtc run ... --out DIR` starts one")
	}
	return Open(all[len(all)-1].Path)
}

// Resolve opens the checkpoint a user asked for: "" or "latest" is the newest of the run
// folder; a step ("100", "step-000100") is that one; anything else is a path of a checkpoint
// or of another run's folder. Resolve(path, path) takes either, whatever its name.
func Resolve(dir, which string) (*Checkpoint, error) {
	if which == "" || which == "latest" {
		return Latest(dir)
	}
	if step, err := strconv.ParseInt(strings.TrimPrefix(which, prefix), 10, 64); err == nil && step >= 0 && which != dir {
		path := filepath.Join(dir, folderName(step))
		if _, err := os.Stat(path); err == nil {
			return Open(path)
		}
		return nil, fault.New("MT0620", path, "there is no checkpoint of step %d", step).Help("%s", available(dir))
	}
	if _, err := os.Stat(filepath.Join(which, manifestFile)); err == nil {
		return Open(which)
	}
	if strings.HasPrefix(filepath.Base(filepath.Clean(which)), prefix) {
		if info, err := os.Stat(which); err == nil && info.IsDir() {
			return Open(which)
		}
	}
	return Latest(which)
}

func available(dir string) string {
	all, err := List(dir)
	if err != nil || len(all) == 0 {
		return "the run folder has no checkpoints"
	}
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = filepath.Base(c.Path)
	}
	return "there are " + strings.Join(names, ", ")
}

// Fresh refuses a run folder that already holds checkpoints: a new run in it would mix two
// histories, and `latest` could pick the wrong one.
func Fresh(dir string) error {
	all, err := List(dir)
	if err != nil || len(all) == 0 {
		return err
	}
	return fault.New("MT0626", dir, "the folder holds a run with checkpoints up to step %d", all[len(all)-1].Step).
		Help("give another folder with --out; `mtc run ... --resume` goes on with a run")
}

// Newest refuses to continue from a checkpoint that has later whole ones beside it in dir: they
// would stay behind as the newest of an abandoned history. Damaged ones do not count; SetAside
// moves them out of the way.
func Newest(dir string, step int64) error {
	all, err := List(dir)
	if err != nil || len(all) == 0 {
		return err
	}
	for _, last := range slices.Backward(all) {
		if last.Step <= step {
			break
		}
		if !whole(last.Path) {
			continue
		}
		return fault.New("MT0626", dir, "going on from step %d would leave %s behind as the newest", step, filepath.Base(last.Path)).
			Help("remove or rename the later ones first, or give another folder, `mtc run ... --out DIR --resume=%s`", fault.Shell(filepath.Join(dir, folderName(step))))
	}
	return nil
}

// whole says whether all of a checkpoint can be read as it was written.
func whole(path string) bool {
	c, err := open(path)
	return err == nil && c.verify() == nil
}

// SetAside renames the checkpoints of dir after a step, which Newest found damaged, to names
// that no later run takes for checkpoints, and returns those. Nothing is lost.
func SetAside(dir string, step int64) (renamed []string, err error) {
	all, err := List(dir)
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		if c.Step <= step {
			continue
		}
		to := c.Path + damagedSuffix
		for n := 2; ; n++ {
			if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
				break
			}
			to = fmt.Sprintf("%s%s-%d", c.Path, damagedSuffix, n)
		}
		if err := os.Rename(c.Path, to); err != nil {
			return renamed, fault.New("MT0623", c.Path, "a damaged checkpoint cannot be renamed").Wrap(cause(err)).
				Help("move it away")
		}
		renamed = append(renamed, to)
	}
	return renamed, nil
}

// previous is the newest checkpoint before path that is whole, read in full; "" when none is.
func previous(path string) string {
	step, ok := stepOf(filepath.Base(path))
	all, err := List(filepath.Dir(path))
	if err != nil || !ok {
		return ""
	}
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Step >= step {
			continue
		}
		if whole(all[i].Path) {
			return all[i].Path
		}
	}
	return ""
}

// discard removes a checkpoint with all its content, hiding it first, so that a removal that is
// cut short leaves no half checkpoint under a good name.
func discard(path string, step int64) error {
	old := filepath.Join(filepath.Dir(path), fmt.Sprintf("%s%06d", oldPrefix, step))
	if err := os.RemoveAll(old); err != nil {
		return err
	}
	between()
	if err := os.Rename(path, old); err != nil {
		return err
	}
	between()
	return os.RemoveAll(old)
}

// cause strips what an error repeats of the message around it: the path.
func cause(err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		return errors.New(f.Message)
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	var le *os.LinkError
	if errors.As(err, &le) {
		return le.Err
	}
	return err
}
