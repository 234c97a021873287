package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/compiler/schedule"
	"github.com/megatrain/mtc/compiler/view"
	"github.com/megatrain/mtc/lang/diag/suggest"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/telemetry"
)

// scheduleFile is the plan in a build folder, for people and tools.
const scheduleFile = "schedule.json"

// loaded is a schedule that was read, and where it lies.
type loaded struct {
	*view.Schedule
	path string // of schedule.json
	dir  string // of the build or run
	text []byte // schedule.json
}

// newestSchedule is the schedule of the newest build below build/.
func newestSchedule() (string, error) {
	found, err := filepath.Glob(filepath.Join("build", "*", scheduleFile))
	if err != nil {
		return "", err
	}
	newest, when := "", time.Time{}
	for _, path := range found {
		if info, err := os.Stat(path); err == nil && (newest == "" || info.ModTime().After(when)) {
			newest, when = path, info.ModTime()
		}
	}
	if newest == "" {
		return "", usageErrorf("there is no build in build/").hint("write `mtc compile FILE.mt`, or name a build folder")
	}
	return newest, nil
}

// loadSchedule reads the schedule of a build folder, of a run folder, or a schedule's file; of
// the newest build where none is named.
func loadSchedule(args []string) (*loaded, error) {
	debug.SetGCPercent(400) // what is read is held to the end, and the process ends soon
	var path string
	if len(args) == 0 {
		var err error
		if path, err = newestSchedule(); err != nil {
			return nil, err
		}
	} else if path = homeOf(args[0]); isFolder(path) || !exists(path) {
		path = filepath.Join(path, scheduleFile)
	}
	if filepath.Ext(path) == ".mt" {
		return nil, inputErrorf("%s is a model, not a build of one", path).
			hint("`mtc compile %s` makes one; `mtc plan %s` predicts without it", fault.Shell(path), fault.Shell(path))
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, noSchedule(path)
	}
	if err != nil {
		return nil, inputErrorf("%s cannot be read: %v", path, reasonOf(err)).hint("name the folder of a build or of a run")
	}
	f, err := schedule.Parse(text)
	if err != nil {
		return nil, inputErrorf("%s: %v", path, err).hint("write `mtc compile FILE.mt` to make it anew")
	}
	s, err := view.Of(f)
	if err != nil {
		return nil, inputErrorf("%s: this is not a schedule: %v", path, err).hint("write `mtc compile FILE.mt` to make it anew")
	}
	return &loaded{Schedule: s, path: path, dir: filepath.Dir(path), text: text}, nil
}

// homeOf is the folder that a path stands for: that of a build or a run, of a file in it by which people name it, and of
// a checkpoint.
func homeOf(path string) string {
	dir, name := filepath.Dir(filepath.Clean(path)), filepath.Base(path)
	switch {
	case slices.Contains([]string{telemetry.ProfileFile, recordFile, "run.json", "metrics.jsonl"}, name) && exists(path) && !isFolder(path):
		return dir
	case isFolder(path) && !exists(filepath.Join(path, scheduleFile)) && isRun(dir):
		return dir
	}
	return path
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// noSchedule words the error of a folder without a schedule.
func noSchedule(path string) error {
	dir := filepath.Dir(path)
	parent, name := filepath.Split(dir)
	ce := inputErrorf("there is no %s in %s", scheduleFile, dir)
	if exists(filepath.Join(dir, "run.json")) {
		return ce.hint("the program of this run was carried from its build; name the build: `mtc compare BUILD %s`", fault.Shell(dir))
	}
	entries, _ := os.ReadDir(filepath.Clean("./" + parent))
	if filepath.IsAbs(dir) {
		entries, _ = os.ReadDir(parent)
	}
	var inside []string
	found, _ := filepath.Glob(filepath.Join(dir, "*", scheduleFile)) // a folder of builds or runs
	for _, path := range found {
		inside = append(inside, filepath.Dir(path))
	}
	if len(inside) > 0 {
		return ce.hint("name one of those in it: %s", suggest.List(inside[:min(5, len(inside))]))
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	if near := suggest.Nearest(name, names); near != "" && near != name {
		return ce.hint("did you mean `%s`?", parent+near)
	}
	return ce.hint("write `mtc compile FILE.mt -o %s`", fault.Shell(dir))
}

// machineFor is the machine that times are predicted for: the one named; else this machine,
// where it was measured; else a GPU that a profile ships for, or a nominal processor.
func machineFor(name, target string) (*cost.Machine, error) {
	if name == "" {
		m, err := cost.Cached(target)
		switch {
		case err != nil:
			return nil, inputErrorf("%v", err).hint("`mtc bench` measures this machine anew; --machine NAME takes another")
		case m != nil:
			return m, nil
		case target == "cuda":
			return cost.Shipped("h200"), nil
		}
		return thisCPU(), nil
	}
	m, err := cost.Find(name, target)
	var unknown *cost.UnknownError
	if errors.As(err, &unknown) {
		return nil, usageErrorf("there is no machine `%s`", name).hint("%s", suggest.HintOr(name, unknown.Names))
	}
	if err != nil {
		return nil, inputErrorf("%v", err).hint("`mtc bench -o FILE` writes a machine's profile")
	}
	if m.Target != target {
		return nil, inputErrorf("%s is a machine of target %s, and the schedule is for %s", m.Name, m.Target, target).
			hint("compile with `--target %s` to see it there", m.Target)
	}
	return m, nil
}

// machine is what the schedule is predicted for: the machine named; else the one that the build, or the
// build of the run, was planned for; else as machineFor has it. On the build's own machine the memory is what the
// build was given.
func (s *loaded) machine(name string) (*cost.Machine, error) {
	o := s.File.Planned
	if o == nil || name != "" && name != o.Machine {
		return machineFor(name, s.Plan.Target)
	}
	m, err := machineFor(o.Machine, s.Plan.Target)
	if err != nil {
		if name == "" {
			return nil, inputErrorf("%s was planned for a machine whose profile cannot be read: %v", s.dir, err).
				hint("--machine NAME predicts for another one")
		}
		return nil, err
	}
	x := *m
	for _, limit := range []struct {
		of    *cost.Figure
		given int64
		flag  string
	}{{&x.DeviceMemory, o.DeviceMemory, "--device-memory"}, {&x.HostMemory, o.HostMemory, "--host-memory"}} {
		if limit.given > 0 {
			*limit.of = cost.Figure{Value: float64(limit.given), Source: limit.flag}
		}
	}
	return &x, nil
}

// predict is a list on a machine.
func (s *loaded) predict(machine string, list plan.List) (*view.Step, error) {
	m, err := s.machine(machine)
	if err != nil {
		return nil, err
	}
	t, err := s.Predict(m, list)
	if err != nil {
		return nil, inputErrorf("%s cannot be laid over time: %v", s.path, err)
	}
	return t, nil
}

// steps are the steady step as predicted and, of a run with a profile, as measured.
func (s *loaded) steps(machine string) (predicted, measured *view.Step, err error) {
	if predicted, err = s.predict(machine, plan.Steady); err != nil {
		return nil, nil, err
	}
	if measured, err = s.measured(s.dir); measured != nil {
		measured.Divide = predicted.Machine
	}
	return predicted, measured, err
}

// measured is the step that a run folder's profile shows; nil where there is no profile.
func (s *loaded) measured(dir string) (*view.Step, error) {
	path := filepath.Join(dir, telemetry.ProfileFile)
	if !exists(path) {
		return nil, nil
	}
	p, err := telemetry.ReadProfile(path)
	if err != nil {
		return nil, err
	}
	if p.Hash != s.Plan.Hash || p.Tasks != len(s.Plan.Tasks) {
		return nil, fault.New("MT0628", path, "it is a profile of %s (plan %s, %d tasks), and %s is that of %s (plan %s, %d tasks)",
			p.Model, p.Hash, p.Tasks, s.path, s.Plan.Model, s.Plan.Hash, len(s.Plan.Tasks)).
			Help("name the build that the run was started from, or take the profile anew with `mtc run --profile`")
	}
	m := &view.Measurement{Device: p.Device, Untimed: p.Untimed, DeviceBytes: p.DeviceBytes, HostBytes: p.HostBytes, Saved: p.Saved}
	for _, x := range p.Steps {
		t := view.StepTimes{Step: x.Step, Seconds: x.Seconds, Tasks: make([]view.TaskTime, len(x.Tasks))}
		for i, y := range x.Tasks {
			t.Tasks[i] = view.TaskTime{Task: int(y[0]), Start: y[1], End: y[2]}
		}
		m.Steps = append(m.Steps, t)
	}
	t, err := s.Measure(m)
	if err != nil {
		return nil, fault.New("MT0628", path, "the profile does not fit the plan: %v", err).
			Help("take it anew with `mtc run --profile`")
	}
	return t, nil
}
