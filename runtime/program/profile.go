package program

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/megatrain/mtc/runtime/engine"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/hostmem"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/telemetry"
)

// Of a profile: how many steady steps are timed when nobody says, how many are passed over
// before, and how many marks a device is asked for at most, when nobody says and ever. A mark is
// an event of a GPU, which takes a microsecond to make.
const (
	profileSteps    = 5
	profileSkip     = 3
	profileMarks    = 1 << 20
	profileFewMarks = 1 << 18
)

// profiler times steps and writes them down.
type profiler struct {
	times *engine.Profile
	steps map[int64]float64 // wall times of steady steps, by number
	most  int               // that are remembered
	last  bool              // nothing was drained since the step before: the next one is steady
}

// profiled is how many steps --profile asks for; 0: none.
func (p *Program) profiled(given bool, text string) (int64, error) {
	if !given {
		return 0, nil
	}
	r := p.Plan.Lists[plan.Steady]
	most := int64(profileMarks / max(1, 2*(r.End-r.Start)))
	if text == "" {
		few := int64(profileFewMarks / max(1, 2*(r.End-r.Start)))
		return max(1, min(profileSteps, max(few, min(2, most)))), nil
	}
	var n int64
	if err := (variable{&n}).Set(text); err != nil {
		return 0, usagef("`--profile` cannot be `%s`", text).hint("write a number of steps, or leave it out for %d", profileSteps)
	}
	if n < 1 || n > max(1, most) {
		return 0, usagef("`--profile` is out of range").hint("write 1 to %d steps, or leave it out for %d", max(1, most), profileSteps)
	}
	return n, nil
}

// startProfile prepares the engine.
func (s *session) startProfile() error {
	if s.profile == 0 {
		return nil
	}
	steady := s.train.Steps - s.engine.State().Step - 1
	skip := min(profileSkip, max(0, steady-s.profile))
	times, err := s.engine.NewProfile(skip, s.profile)
	if err != nil {
		return ofDevice("the run cannot be profiled", err)
	}
	s.profiler = &profiler{times: times, steps: map[int64]float64{}, most: maxSteps + int(s.profile)}
	return nil
}

// ofDevice is an error of the device, which most often says itself what it is.
func ofDevice(what string, err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		f.Message = what + ": " + f.Message
		return f
	}
	return fault.New("MT0501", "", "%s", what).Wrap(err).OnMachine()
}

// Bounds of the steps whose wall time is remembered besides those that are timed, and of those that go into the file
// though they were not timed.
const (
	maxSteps   = 1024
	maxUntimed = 64
)

func (p *profiler) hook() engine.Hook {
	return engine.Hook{
		Name: "profile",
		OnStep: func(m *engine.Metrics) error {
			if p.last && len(p.steps) < p.most {
				p.steps[m.Step] = m.Time.Seconds()
			}
			p.last = true
			return nil
		},
		OnDrain: func(engine.State) error { p.last = false; return nil },
	}
}

// writeProfile writes profile.json. The engine is drained.
func (s *session) writeProfile(errw io.Writer) error {
	if s.profiler == nil {
		return nil
	}
	steps, err := s.profiler.times.Read()
	if err != nil {
		return ofDevice("the times of the profile cannot be read", err)
	}
	if len(steps) == 0 {
		fmt.Fprintln(errw, "note: no step was timed: the first step, and each one behind an evaluation or a checkpoint, has a list of its own; train some more steps in a row")
		return nil
	}
	path := filepath.Join(s.out, telemetry.ProfileFile)
	f := s.profileOf(steps)
	if err := replace(path, 0o666, f.Write); err != nil {
		return fault.New("MT0623", path, "the profile cannot be written").Wrap(err)
	}
	fmt.Fprintf(s.outw, "profile of %d steps  %s\n", len(steps), path)
	return nil
}

func (s *session) profileOf(steps []engine.StepTimes) *telemetry.Profile {
	p := s.plan
	f := &telemetry.Profile{
		Version: telemetry.ProfileVersion, Model: p.Model, Hash: p.Hash, Tasks: len(p.Tasks), Compiler: p.Compiler,
		Target: p.Target, Device: s.engine.Device().Name(), Machine: processor(), Unit: "ns", Untimed: []float64{},
	}
	f.HostBytes, f.Saved = hostmem.Peak(), s.wrote
	if gpu, ok := s.engine.Device().(graphics); ok {
		free, total := gpu.Free()
		f.DeviceBytes = total - free
	}
	first := int64(-1)
	timed := map[int64]bool{}
	for _, t := range steps {
		timed[t.Step] = true
		for _, at := range t.Start {
			if at >= 0 && (first < 0 || at < first) {
				first = at
			}
		}
	}
	start := p.Lists[plan.Steady].Start
	for _, t := range steps {
		x := telemetry.ProfileStep{Step: t.Step, List: plan.Steady.String(), Seconds: s.profiler.steps[t.Step]}
		for i := range t.Start {
			// The clocks of two lanes may differ by less than they resolve.
			x.Tasks = append(x.Tasks, telemetry.ProfileTask{int64(start + i), t.Start[i] - first, max(t.Start[i], t.End[i]) - first})
		}
		f.Steps = append(f.Steps, x)
	}
	for n := steps[0].Step; len(f.Untimed) < maxUntimed && n <= s.engine.State().Step; n++ {
		if sec, ok := s.profiler.steps[n]; ok && !timed[n] {
			f.Untimed = append(f.Untimed, sec)
		}
	}
	return f
}

// processor names the host's processor.
func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for line := range strings.Lines(string(text)) {
			if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
				return strings.TrimSpace(v)
			}
		}
	}
	return runtime.GOOS + "/" + runtime.GOARCH
}
