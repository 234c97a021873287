package e2e

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/device/cpu"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/telemetry"
)

// profiled trains nano, streamed, with a profile of some steps.
func profiled(t *testing.T, steps, timed string) (*plan.Plan, *telemetry.Profile) {
	t.Helper()
	binary, res := build(t, compiler.Options{Path: "../models/nano.mt", Placement: "stream"})
	out := filepath.Join(t.TempDir(), "run")
	run(t, binary, "--data", models(t), "--steps", steps, "--eval-every", "0",
		"--no-save", "--no-memory-check", "--profile="+timed, "--out", out)
	p, err := telemetry.ReadProfile(filepath.Join(out, telemetry.ProfileFile))
	if err != nil {
		t.Fatal(err)
	}
	return res.Plan, p
}

// models is the repository's models, as text to train on.
func models(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../models")
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "*.mt")
}

// TestProfile: in what a run measured, a lane's tasks stand one behind the other and every task
// starts behind those it waits for, in each of the steps, which overlap on the lanes.
func TestProfile(t *testing.T) {
	p, f := profiled(t, "9", "3")
	if f.Hash != p.Hash || f.Tasks != len(p.Tasks) || len(f.Steps) != 3 {
		t.Fatalf("hash %s of %s, %d tasks of %d, %d steps", f.Hash, p.Hash, f.Tasks, len(p.Tasks), len(f.Steps))
	}
	r := p.Lists[plan.Steady]
	var last [device.NumLanes]int64
	var before map[int]int64
	for _, s := range f.Steps {
		if len(s.Tasks) != r.End-r.Start || s.Seconds <= 0 {
			t.Errorf("step %d has %d tasks of %d and takes %v s", s.Step, len(s.Tasks), r.End-r.Start, s.Seconds)
		}
		ended := map[int]int64{}
		for _, x := range s.Tasks {
			task := &p.Tasks[x[0]]
			if x[1] < last[task.Lane] {
				t.Errorf("step %d: task %d starts at %d, its lane was busy until %d", s.Step, x[0], x[1], last[task.Lane])
			}
			last[task.Lane] = x[2]
			for _, w := range task.Waits {
				done, ok := ended[w.Event]
				if w.Back == 1 {
					done, ok = before[w.Event]
				}
				if ok && x[1] < done {
					t.Errorf("step %d: task %d starts at %d, what it waits for ends at %d", s.Step, x[0], x[1], done)
				}
			}
			if task.Event >= 0 {
				ended[task.Event] = x[2]
			}
		}
		before = ended
	}
}

// TestProfileOverhead: the marks of a timed step take less than a hundredth of it. Steps of a
// shared machine differ by more than that, so that the marks are timed by themselves, and what the
// steps took is only logged: docs/reference/inspect.md says what was measured.
func TestProfileOverhead(t *testing.T) {
	if testing.Short() {
		t.Skip("trains 40 steps")
	}
	p, f := profiled(t, "40", "12")
	var timed []float64
	for _, s := range f.Steps {
		timed = append(timed, s.Seconds)
	}
	if len(timed) != 12 || len(f.Untimed) < 12 {
		t.Fatalf("%d steps were timed, %d not", len(timed), len(f.Untimed))
	}
	with, without := slices.Min(timed), slices.Min(f.Untimed)
	r := p.Lists[plan.Steady]
	cost := 2 * float64(r.End-r.Start) * secondsOfAMark(t)
	t.Logf("fastest step timed %.3f ms, untimed %.3f ms: %+.2f %%; the marks of a step take %.3f ms, %.3f %%",
		with*1e3, without*1e3, 100*(with/without-1), cost*1e3, 100*cost/without)
	if cost > 0.01*without {
		t.Errorf("the marks of a step take %.3f ms of %.1f", cost*1e3, without*1e3)
	}
}

func secondsOfAMark(t *testing.T) float64 {
	t.Helper()
	d := cpu.New()
	defer d.Close()
	m, err := d.Marks([]device.Lane{device.Compute})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	const n = 100_000
	start := time.Now()
	for range n {
		m.Set(0)
	}
	if err := d.Sync(); err != nil {
		t.Fatal(err)
	}
	return time.Since(start).Seconds() / n
}
