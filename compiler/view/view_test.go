package view

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/runtime/plan"
)

// small is a streamed model with two micro-batches and a tied table.
const small = `model small(D = 64, L = 3, V = 512) {
  init normal(0.02)
  block layer(x) { x += down: linear(gelu(up: linear(ln: layernorm(x), 4 * D)), D) }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L { layer(x) }
    return head: linear(x, V, tie = wte)
  }
}

train {
  seq       = 32
  batch     = 8 rows
  steps     = 10
  optimizer = adamw(beta1 = 0.9, beta2 = 0.95, decay = 0.1)
  lr        = constant(peak = 1e-3)
  clip      = 1.0
}
`

// compile makes a schedule of a model.
func compile(t testing.TB, o compiler.Options) *Schedule {
	t.Helper()
	var diags diag.List
	res, err := compiler.Compile(context.Background(), o, &diags)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Compiled(res.Plan, cost.WorkOf(res.Program))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// models of the tests, by name.
func model(t testing.TB, name string) *Schedule {
	t.Helper()
	switch name {
	case "nano":
		return compile(t, compiler.Options{Path: "../../models/nano.mt"})
	case "nano_stream":
		return compile(t, compiler.Options{Path: "../../models/nano.mt", Placement: "stream"})
	case "small_stream":
		return compile(t, compiler.Options{Path: "small.mt", Text: []byte(small), Placement: "stream", MicroBatch: 4})
	case "small_unclipped":
		return compile(t, compiler.Options{Path: "small.mt", Text: []byte(small), Placement: "stream", MicroBatch: 4, Set: []string{"train.clip=none"}})
	case "small_groups":
		return compile(t, compiler.Options{Path: "small.mt", Text: []byte(small), Placement: "stream", MicroBatch: 2, Groups: 2, Recompute: "all"})
	}
	t.Fatal(name)
	return nil
}

var modelNames = []string{"nano", "nano_stream", "small_stream", "small_unclipped", "small_groups"}

func predict(t testing.TB, s *Schedule, l plan.List) *Step {
	t.Helper()
	step, err := s.Predict(Nominal(), l)
	if err != nil {
		t.Fatal(err)
	}
	return step
}

// golden compares with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("MTC_UPDATE") != "" {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got):\n%s", path, d)
	}
}

// widest fails where a line has more than 80 columns.
func widest(t *testing.T, text []byte) {
	t.Helper()
	for _, line := range bytes.Split(text, []byte("\n")) {
		if n := len([]rune(string(line))); n > Width {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestText(t *testing.T) {
	for _, name := range modelNames {
		var out bytes.Buffer
		predict(t, model(t, name), plan.Steady).WriteText(&out)
		widest(t, out.Bytes())
		golden(t, name+".txt", out.Bytes())
	}
}

// TestEveryList: every list of every model can be laid over time and shown.
func TestEveryList(t *testing.T) {
	for _, name := range modelNames {
		s := model(t, name)
		for l := range plan.NumLists {
			step := predict(t, s, l)
			var out bytes.Buffer
			step.WriteText(&out)
			widest(t, out.Bytes())
			if step.Len() == 0 {
				continue
			}
			for i := range step.Len() {
				if step.run[i] < 0 || step.End[i] < step.Start[i] {
					t.Errorf("%s: task %d of %s runs from %v to %v", name, step.Task(i).ID, l, step.Start[i], step.End[i])
				}
			}
		}
	}
}

// TestMemoryStaysWithinTheArenas: what is alive at any time is no more than what is reserved,
// and what is alive at the peak adds up to the peak.
func TestMemoryStaysWithinTheArenas(t *testing.T) {
	for _, name := range modelNames {
		for _, m := range predict(t, model(t, name), plan.Steady).Memories() {
			for _, p := range m.Points {
				if p.Bytes < m.Kept || p.Bytes > m.Reserved {
					t.Errorf("%s, %s: %d bytes are alive at %v, %d kept and %d reserved", name, m.Name, p.Bytes, p.At, m.Kept, m.Reserved)
				}
			}
			var sum int64
			for _, g := range m.AtPeak {
				sum += g.Bytes
			}
			if sum != m.Peak.Bytes {
				t.Errorf("%s, %s: the groups at the peak add up to %d, the peak is %d", name, m.Name, sum, m.Peak.Bytes)
			}
		}
	}
}

// TestPathCoversTheStep: the critical path has no hole, and only tasks without slack, except
// where the next step waits for what this one leaves over, rather than for its results.
func TestPathCoversTheStep(t *testing.T) {
	for _, name := range modelNames {
		step := predict(t, model(t, name), plan.Steady)
		slack := step.Slack()
		at := 0.0
		for _, l := range step.Path() {
			if d := l.From - at; d > 1e-9 || d < -1e-9 {
				t.Errorf("%s: the path has a hole from %v to %v", name, at, l.From)
			}
			at = l.To
			if l.Run < 0 {
				continue
			}
			run := step.Line.Runs[l.Run]
			if i := run.Task - step.First(); name != "small_unclipped" && run.Step == 0 && i >= 0 && slack[i] > 1e-6*step.Line.Seconds && run.End > 0 && run.Start >= 0 {
				t.Errorf("%s: task %d is on the path with a slack of %v", name, run.Task, slack[i])
			}
		}
		if d := at - step.Line.Seconds; d > 1e-9 || d < -1e-9 {
			t.Errorf("%s: the path ends at %v of %v", name, at, step.Line.Seconds)
		}
	}
}

// slower is the time of a step in which one task takes longer, all else alone: on a machine
// whose lanes do not slow each other down.
func slower(t *testing.T, s *Schedule, place int, by float64) float64 {
	t.Helper()
	m := free()
	base, err := s.Predict(m, plan.Steady)
	if err != nil {
		t.Fatal(err)
	}
	p := *s.Plan
	p.Tasks = append([]plan.Task(nil), p.Tasks...)
	task := &p.Tasks[base.First()+place]
	task.Template = -1 // its time is then that of its bytes
	rate := m.Rates["f32"].Memory.Value
	switch {
	case task.Kind == plan.Update && task.Lane.String() == "host":
		rate = m.Host.Optimizer.Value
	case task.Kind == plan.Update:
		rate = m.Rates["f32"].Optimizer.Value
	case task.Lane.String() == "h2d" || task.Lane.String() == "d2h":
		task.Bytes = int64((base.Seconds(place) + by) * m.Link.H2D.Value)
		rate = 0
	}
	if rate > 0 {
		task.Moved = int64((base.Seconds(place) + by) * rate)
	}
	line, err := cost.SimulateList(&p, s.File.Work, m, plan.Steady)
	if err != nil {
		t.Fatal(err)
	}
	return line.Seconds
}

// free is the nominal machine without contention: many cores, so that lanes share nothing.
func free() *cost.Machine {
	m := Nominal()
	m.Target = "cuda" // its lanes share the link and the host's memory, as these figures say: not at all
	m.Link.Both, m.Link.Updating, m.Host.Copying = m.Link.H2D, m.Link.H2D, m.Host.Optimizer
	m.Link.Latency.Value = 0
	return m
}

// TestSlack: a task that takes longer by less than its slack leaves the step as it is; by more,
// it does not.
func TestSlack(t *testing.T) {
	for _, name := range []string{"nano_stream", "small_stream"} {
		s := model(t, name)
		step, err := s.Predict(free(), plan.Steady)
		if err != nil {
			t.Fatal(err)
		}
		slack := step.Slack()
		period := step.Line.Seconds
		for i := range step.Len() {
			k := step.Task(i).Kind
			if k == plan.Reduce || k == plan.Report || k == plan.Feed || slack[i] > 10*period {
				continue
			}
			if x := slower(t, s, i, 0.9*slack[i]); x > period*(1+2e-3) {
				t.Errorf("%s: task %d (%s) has a slack of %v, and with 0.9 of it the step takes %v instead of %v", name, step.Task(i).ID, Title(s.Plan, step.Task(i)), slack[i], x, period)
			}
			if x := slower(t, s, i, 1.1*slack[i]+0.02*period); x < period*(1+5e-3) {
				t.Errorf("%s: task %d (%s) has a slack of %v, and 0.02 of the step beyond it change nothing: %v of %v", name, step.Task(i).ID, Title(s.Plan, step.Task(i)), slack[i], x, period)
			}
		}
	}
}
