package view

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/runtime/plan"
)

// asMeasured makes measurements of a predicted step: steps behind one another, each task later
// and longer by a share.
func asMeasured(step *Step, steps int, slower float64) *Measurement {
	m := &Measurement{Device: "test (1 thread)"}
	first := math.Inf(1)
	for _, s := range step.Start {
		first = min(first, s)
	}
	for k := range steps {
		x := StepTimes{Step: int64(k + 4), Seconds: step.Line.Seconds * slower}
		for i := range step.Len() {
			at := func(s float64) int64 {
				return int64((s - first + float64(k)*step.Line.Seconds) * slower * 1e9)
			}
			x.Tasks = append(x.Tasks, TaskTime{step.Task(i).ID, at(step.Start[i]), at(step.End[i])})
		}
		m.Steps = append(m.Steps, x)
	}
	return m
}

// TestMeasure: what a run measured is laid out as it was, and a run that is like the prediction
// looks like it.
func TestMeasure(t *testing.T) {
	for _, name := range modelNames {
		s := model(t, name)
		want := predict(t, s, plan.Steady)
		got, err := s.Measure(asMeasured(want, 5, 2))
		if err != nil {
			t.Fatal(err)
		}
		if r := got.Line.Seconds / want.Line.Seconds; math.Abs(r-2) > 1e-3 {
			t.Errorf("%s: the step takes %v times as long, wanted 2", name, r)
		}
		for l, u := range got.Line.Lanes {
			w := want.Line.Lanes[l]
			near := func(a, b float64) bool { return math.Abs(a-2*b) < 3e-3*want.Line.Seconds }
			if !near(u.Busy, w.Busy) || !near(u.Hidden, w.Hidden) || !near(u.Exposed, w.Exposed) {
				t.Errorf("%s: lane %s %+v, predicted %+v", name, u.Lane, u, w)
			}
		}
		for i := range got.Len() {
			if d := got.Seconds(i) - 2*want.Seconds(i); math.Abs(d) > 1e-6 {
				t.Errorf("%s: task %d takes %v, predicted %v", name, got.Task(i).ID, got.Seconds(i), want.Seconds(i))
			}
		}
		var out bytes.Buffer
		got.WriteText(&out)
		widest(t, out.Bytes())
		if !strings.Contains(out.String(), "measured on test (1 thread), step ") {
			t.Errorf("%s does not say where its times are from:\n%s", name, out.String())
		}
	}
}

// TestMeasureRefuses: measurements of another plan.
func TestMeasureRefuses(t *testing.T) {
	s := model(t, "nano")
	step := predict(t, s, plan.Steady)
	for want, change := range map[string]func(*Measurement){
		"no step was measured": func(m *Measurement) { m.Steps = nil },
		"has 1 tasks":          func(m *Measurement) { m.Steps[0].Tasks = m.Steps[0].Tasks[:1] },
		"has a task 0,":        func(m *Measurement) { m.Steps[1].Tasks[3].Task = 0 },
		"has a task ":          func(m *Measurement) { m.Steps[1].Tasks[3] = m.Steps[1].Tasks[2] },
		"while compute was":    func(m *Measurement) { m.Steps[1].Tasks[8].Start, m.Steps[1].Tasks[8].End = 0, 1 },
	} {
		m := asMeasured(step, 3, 1)
		change(m)
		if _, err := s.Measure(m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, wanted %q", err, want)
		}
	}
	// One step alone, and steps that are not behind one another, have a beginning of their own.
	m := asMeasured(step, 1, 1)
	if got, err := s.Measure(m); err != nil || !(got.Line.Seconds > 0) {
		t.Errorf("one step: %v", err)
	}
}

func TestCompare(t *testing.T) {
	s := model(t, "small_stream")
	predicted := predict(t, s, plan.Steady)
	// Products run at half the rate, and starting a kernel costs what it did.
	slow := Nominal()
	for i := range slow.Rates["f32"].Product.Points {
		slow.Rates["f32"].Product.Points[i].Rate /= 2
	}
	slower, err := s.Predict(slow, plan.Steady)
	if err != nil {
		t.Fatal(err)
	}
	m := asMeasured(slower, 4, 1)
	m.Untimed = []float64{1, 1, 1}
	m.HostBytes = 32 << 20
	measured, err := s.Measure(m)
	if err != nil {
		t.Fatal(err)
	}
	c := Compare(predicted, measured)
	if w := c.Worst[0]; w.Kind != "backward" || w.Time.Off() < 0.5 || w.Time.Off() > 1 || w.Cause == "" {
		t.Errorf("farthest is %+v", w)
	}
	if x := c.Kinds[slices.IndexFunc(c.Kinds, func(k Kinds) bool { return k.Kind == "prefetch" })]; math.Abs(x.Time.Off()) > 0.01 || x.Bytes.Measured <= 0 {
		t.Errorf("prefetch is %+v", x)
	}
	var out bytes.Buffer
	c.Write(&out)
	widest(t, out.Bytes())
	golden(t, "compare.txt", out.Bytes())
	if _, err := json.Marshal(c); err != nil {
		t.Error(err)
	}
}

func TestWhy(t *testing.T) {
	s := model(t, "small_stream")
	step := predict(t, s, plan.Steady)
	other := predict(t, model(t, "small_unclipped"), plan.Steady)
	var out bytes.Buffer
	for i := range step.Len() {
		task := step.Task(i)
		w, err := step.Why(task.ID, []Choice{{What: "--set train.clip=none", Step: other}, {What: "--slots 0", Err: "there is no schedule without a slot"}})
		if err != nil {
			t.Fatal(err)
		}
		if len(w.Waits) != len(task.Waits) {
			t.Errorf("task %d: %d of %d waits are explained", task.ID, len(w.Waits), len(task.Waits))
		}
		for _, r := range w.Waits {
			if strings.Contains(r.Because, "has to be done first") {
				t.Errorf("task %d: no memory is named for the wait for task %d", task.ID, r.Task)
			}
			if r.Without > step.Line.Seconds*(1+1e-3) {
				t.Errorf("task %d: with one wait less the step takes longer, %v", task.ID, r.Without)
			}
		}
		if k := Kind(task); k == "prefetch" || k == "update" || k == "backward" {
			w.Write(&out)
		}
	}
	widest(t, out.Bytes())
	golden(t, "why.txt", out.Bytes())
	if _, err := step.Why(0, nil); err == nil {
		t.Error("a task of another list is explained")
	}
}

func TestDiff(t *testing.T) {
	a := model(t, "small_stream")
	if d := a.Compare(model(t, "small_stream")); !d.Equal || len(d.Tasks)+len(d.Memory)+len(d.Settings) > 0 {
		t.Errorf("a schedule differs from itself: %+v", d)
	}
	var out bytes.Buffer
	for _, o := range []compiler.Options{
		{Placement: "stream", MicroBatch: 4, Slots: 3},
		{Placement: "stream", MicroBatch: 2},
		{MicroBatch: 4, Set: []string{"D=32"}},
	} {
		o.Path, o.Text = "small.mt", []byte(small)
		b := compile(t, o)
		d := a.Compare(b)
		d.Predicted(predict(t, a, plan.Steady), predict(t, b, plan.Steady))
		if d.Equal {
			t.Errorf("%+v makes the same schedule", o)
		}
		for _, l := range d.Lists {
			if l.A-l.Gone+l.Added != l.B {
				t.Errorf("%s: %d tasks, %d gone and %d added make %d", l.List, l.A, l.Gone, l.Added, l.B)
			}
		}
		d.Write(&out, "a", "b", 3)
	}
	widest(t, out.Bytes())
	golden(t, "diff.txt", out.Bytes())
}

func TestLongestRise(t *testing.T) {
	for _, c := range []struct {
		v    []int
		want int
	}{{nil, 0}, {[]int{5}, 1}, {[]int{0, 1, 2, 3}, 4}, {[]int{3, 2, 1, 0}, 1}, {[]int{0, 4, 1, 2, 3}, 4}, {[]int{1, 2, 0, 3}, 3}} {
		n, last := 0, -1
		for i, stays := range longestRise(c.v) {
			if stays {
				n++
				if c.v[i] <= last {
					t.Errorf("%v: what stays is not in order", c.v)
				}
				last = c.v[i]
			}
		}
		if n != c.want {
			t.Errorf("%v: %d stay, wanted %d", c.v, n, c.want)
		}
	}
}

// TestEveryKindIsKnown: what a plan can hold has a letter in the timeline and a colour on the page.
func TestEveryKindIsKnown(t *testing.T) {
	css, err := pageFiles.ReadFile("page/page.css")
	if err != nil {
		t.Fatal(err)
	}
	var tasks []plan.Task
	for k := range plan.NumKinds {
		if k != plan.Compute {
			tasks = append(tasks, plan.Task{Kind: k})
		}
	}
	for f := plan.Func(1); f < plan.NumFuncs; f++ {
		tasks = append(tasks, plan.Task{Kind: plan.Compute, Func: f})
	}
	for i := range tasks {
		kind := Kind(&tasks[i])
		if letter(kind) == '?' {
			t.Errorf("%s has no letter", kind)
		}
		if n := strings.Count(string(css), "--k-"+kind+":"); n != 2 {
			t.Errorf("%s has %d colours, wanted one in each theme", kind, n)
		}
	}
}

func TestNumbers(t *testing.T) {
	for want, got := range map[string]string{
		"0": Seconds(0), "1.00 ns": Seconds(1e-9), "999 us": Seconds(999e-6), "1.00 ms": Seconds(999.9e-6), "12.3 ms": Seconds(0.0123),
		"1.50 s": Seconds(1.5), "1.24 TFLOP/s": Rate(1.24e12, "FLOP/s"), "3.0 %": Percent(0.03), "31 %": Percent(0.31), "-": Percent(math.NaN()),
		"same": Change(1, 1), "+10 %": Change(1, 1.1), "-10 %": Change(1, 0.9), "new": Change(0, 1), "layer[*].q*": pattern("layer[12].q3"), "a~d": clip("abbbd", 3),
	} {
		if got != want {
			t.Errorf("%q, wanted %q", got, want)
		}
	}
}
