package view

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/runtime/plan"
)

// LaunchCost is a kernel of a template's function and its share of the function's time.
type LaunchCost struct {
	Kernel string     `json:"kernel"` // "linear.BackwardInput"
	Span   string     `json:"span"`   // "nano.mt:12"
	Times  int64      `json:"times"`
	Share  float64    `json:"share"`
	Bound  cost.Bound `json:"bound"`
}

// LineCost is a line of the .mt over the whole step.
type LineCost struct {
	Span    string     `json:"span"`
	Seconds float64    `json:"seconds"`
	Share   float64    `json:"share"`
	Bound   cost.Bound `json:"bound"` // of the costliest kernel
	Kernels []string   `json:"kernels"`
}

// function is a template's function.
type function struct {
	template int
	fn       plan.Func
}

// launches prices every kernel of every function of the schedule on a machine. The cost model
// prices tasks, so each kernel becomes a task of its own.
func (s *Schedule) launches(m *cost.Machine) map[function][]LaunchCost {
	w := s.File.Work
	if w == nil || m == nil {
		return nil
	}
	p := &plan.Plan{Precision: s.Plan.Precision, Batch: s.Plan.Batch, Seq: s.Plan.Seq, Target: s.Plan.Target, ResultsEvent: -1}
	single := &cost.Work{}
	for _, funcs := range w.Funcs {
		for _, list := range funcs {
			for _, l := range list {
				n := len(p.Tasks)
				p.Tasks = append(p.Tasks, plan.Task{ID: n, List: plan.Eval, Kind: plan.Compute, Func: plan.Forward, Template: n, Event: -1, Moved: 1})
				alone := make([][]cost.Launch, plan.NumFuncs)
				alone[plan.Forward] = []cost.Launch{l}
				single.Funcs = append(single.Funcs, alone)
			}
		}
	}
	p.Lists[plan.Eval] = plan.Range{End: len(p.Tasks)}
	line, err := cost.SimulateList(p, single, m, plan.Eval)
	if err != nil {
		return nil
	}
	out := map[function][]LaunchCost{}
	n := 0
	for t, funcs := range w.Funcs {
		for f, list := range funcs {
			key := function{t, plan.Func(f)}
			sum := 0.0
			for i := range list {
				sum += line.Tasks[n+i].Seconds
			}
			for _, l := range list {
				e := &line.Tasks[n]
				n++
				x := LaunchCost{Kernel: l.Kernel, Span: l.Span, Times: l.Times, Bound: e.Bound}
				if sum > 0 {
					x.Share = e.Seconds / sum
				}
				out[key] = append(out[key], x)
			}
		}
	}
	return out
}

// split is how the step's compute tasks divide into kernels: by its machine, or, of a measured
// step, by the one that it is compared with.
func (t *Step) split() map[function][]LaunchCost {
	m := t.Machine
	if m == nil {
		m = t.Divide
	}
	return t.launches(m)
}

// Lines lists the lines of the .mt by the time that their kernels take in the step.
func (t *Step) Lines() []LineCost {
	split := t.split()
	type sum struct {
		LineCost
		kernels map[string]float64
	}
	index := map[string]*sum{}
	var order []*sum
	for i := range t.Len() {
		task := t.Task(i)
		if task.Kind != plan.Compute {
			continue
		}
		for _, l := range split[function{task.Template, task.Func}] {
			x := index[l.Span]
			if x == nil {
				x = &sum{LineCost: LineCost{Span: l.Span}, kernels: map[string]float64{}}
				index[l.Span] = x
				order = append(order, x)
			}
			s := l.Share * t.Seconds(i)
			x.Seconds += s
			x.kernels[l.Kernel] += s
		}
	}
	out := make([]LineCost, 0, len(order))
	for _, x := range order {
		for k := range x.kernels {
			x.Kernels = append(x.Kernels, k)
		}
		slices.SortFunc(x.Kernels, func(a, b string) int {
			if d := descending(x.kernels[a], x.kernels[b]); d != 0 {
				return d
			}
			return strings.Compare(a, b)
		})
		if t.Line.Seconds > 0 {
			x.Share = x.Seconds / t.Line.Seconds
		}
		out = append(out, x.LineCost)
	}
	// The bound of a line is that of the kernel that takes most of it.
	bounds := map[string]cost.Bound{}
	for _, f := range slices.SortedFunc(maps.Keys(split), func(a, b function) int {
		if a.template != b.template {
			return a.template - b.template
		}
		return int(a.fn) - int(b.fn)
	}) {
		for _, l := range split[f] {
			if _, ok := bounds[l.Span+" "+l.Kernel]; !ok {
				bounds[l.Span+" "+l.Kernel] = l.Bound
			}
		}
	}
	for i := range out {
		out[i].Bound = bounds[out[i].Span+" "+out[i].Kernels[0]]
	}
	slices.SortStableFunc(out, func(a, b LineCost) int {
		if d := descending(a.Seconds, b.Seconds); d != 0 {
			return d
		}
		return strings.Compare(a.Span, b.Span)
	})
	return out
}

// writeLines prints the ten lines of the .mt that cost the most.
func (t *Step) writeLines(w io.Writer) {
	lines := t.Lines()
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%-19s %9s %7s %-10s %s\n", "costliest lines", "time", "share", "bound by", "kernels")
	for _, l := range lines[:min(10, len(lines))] {
		line := fmt.Sprintf("  %-17s %9s %7s %-10s %s", clip(or(l.Span, "none"), 17), Seconds(l.Seconds), Percent(l.Share), l.Bound, some(l.Kernels, 31))
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
