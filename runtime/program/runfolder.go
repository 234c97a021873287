package program

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/plan"
)

// A run folder has everything that going on or generating needs, also without the build:
//
//	program         this executable
//	MODEL.mt        the text it was compiled from
//	run.json        what was trained on what, for --resume
//	schedule.json   the plan for people and tools, where it lies beside the executable
//	metrics.jsonl   a line for every step
//	profile.json    when each task of some steps ran, with --profile
//	data/           tokens of the text that the run was given, and eval-data/
//	step-N/         checkpoints
const (
	runFile      = "run.json"
	metricsFile  = "metrics.jsonl"
	scheduleFile = "schedule.json"
)

// FileName is what the copy of the executable in a run folder is called.
func FileName() string {
	if runtime.GOOS == "windows" {
		return "program.exe"
	}
	return "program"
}

// programIn is the copy in a run folder as a shell calls it: in the working folder too.
func programIn(dir string) string {
	if dir = filepath.Clean(dir); dir == "." {
		return dir + string(filepath.Separator) + FileName()
	}
	return filepath.Join(dir, FileName())
}

// writeRunFolder puts program, source and record into the folder; t are the settings in force.
func (p *Program) writeRunFolder(dir string, t plan.Train, packing *packedAs) error {
	t.Data, t.EvalData = absolute(t.Data), absolute(t.EvalData)
	text, err := json.MarshalIndent(runRecord{p.Plan.Model, p.Plan.Hash, p.Plan.Compiler, t, &p.Plan.Train, packing}, "", "  ")
	if err != nil {
		return err
	}
	err = first(
		replace(filepath.Join(dir, runFile), 0o666, func(w io.Writer) error { _, err := w.Write(append(text, '\n')); return err }),
		replace(filepath.Join(dir, filepath.Base(p.Plan.Source)), 0o666, func(w io.Writer) error { _, err := w.Write(p.Source); return err }),
		copyProgram(filepath.Join(dir, FileName())),
		copySchedule(dir))
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		f := fault.New("MT0623", dir, "the run folder cannot be written").Wrap(err)
		if f.Machine {
			return f.Help("free some space, or give a folder on another disk with --out")
		}
		return f.Help("give a folder that can be written with --out")
	}
	return nil
}

// executable is the path of this program: what the system says or, where that has no /proc, what
// it was started as.
func executable() (string, error) {
	self, err := os.Executable()
	if err == nil {
		return self, nil
	}
	if self, err := exec.LookPath(os.Args[0]); err == nil {
		return filepath.Abs(self)
	}
	return "", fmt.Errorf("where this program lies is not known: %w", err)
}

// copyProgram copies this executable.
func copyProgram(to string) error {
	self, err := executable()
	if err != nil {
		return err
	}
	if _, err := os.Stat(self); err != nil {
		self = "/proc/self/exe" // removed since it was started
	}
	return copyTo(to, self, 0o777)
}

// copySchedule copies the schedule that lies beside this executable. One of another program,
// left by an earlier run, must not stay; a program that was carried elsewhere has none.
func copySchedule(dir string) error {
	self, err := executable()
	if err != nil {
		return err
	}
	to := filepath.Join(dir, scheduleFile)
	if err = copyTo(to, filepath.Join(filepath.Dir(self), scheduleFile), 0o666); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err = os.Remove(to); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// copyTo copies a file, unless that is what is there.
func copyTo(to, from string, mode os.FileMode) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	a, err := src.Stat()
	if err != nil {
		return err
	}
	if b, err := os.Stat(to); err == nil && os.SameFile(a, b) {
		return nil
	}
	if same, err := sameContent(src, to, a.Size()); err != nil || same {
		return err
	}
	return replace(to, mode, func(w io.Writer) error { _, err := io.Copy(w, src); return err })
}

// sameContent says whether the file at path has the content of src, which is size bytes long,
// and leaves src at its start.
func sameContent(src io.ReadSeeker, path string, size int64) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, nil
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() != size {
		return false, nil
	}
	a, b := sha256.New(), sha256.New()
	if _, err := io.Copy(b, f); err != nil {
		return false, nil
	}
	if _, err := io.Copy(a, src); err != nil {
		return false, err
	}
	if _, err := src.Seek(0, io.SeekStart); err != nil {
		return false, err
	}
	return bytes.Equal(a.Sum(nil), b.Sum(nil)), nil
}

// replace writes a file under a temporary name first, so that a failure leaves the old one.
func replace(path string, mode os.FileMode, write func(w io.Writer) error) error {
	f, err := os.OpenFile(path+".tmp", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	if err = first(write(f), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// checkpointOf opens the checkpoint that a command without one of training was given: a run, a
// checkpoint, or nothing, which is the run that this executable lies in.
func (p *Program) checkpointOf(args []string) (*checkpoint.Checkpoint, error) {
	dir := ""
	if len(args) == 1 {
		dir = args[0]
	} else if self, err := executable(); err == nil {
		dir = filepath.Dir(self)
	}
	c, err := checkpoint.Resolve(dir, dir)
	var none *fault.Error
	if errors.As(err, &none) && none.Code == "MT0620" {
		none.Hint = "a run writes one at its end, at the steps of `mtc run --save-every N`, and when it is interrupted; name the folder of a run that has one"
	}
	if err != nil {
		return nil, err
	}
	return c, c.Match(p.Plan)
}

// runDir is the folder of a run without --out: the first of runs/MODEL, runs/MODEL-2, ... that
// holds no checkpoints; to resume, the last one that does.
func runDir(model string, resume bool) string {
	last := ""
	for i := 1; ; i++ {
		dir := filepath.Join("runs", model)
		if i > 1 {
			dir = fmt.Sprintf("%s-%d", dir, i)
		}
		if all, err := checkpoint.List(dir); err == nil && len(all) == 0 {
			if resume && last != "" {
				return last
			}
			return dir
		}
		last = dir
	}
}
