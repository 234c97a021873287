package view

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// WriteTrace writes steps in Chrome's trace event format (JSON object with "traceEvents"), which
// Perfetto reads. A step is a process, a lane a thread; a task is a complete event with its
// line, work and slack; a wait is a flow from the task that hands a buffer over to the one that
// takes it; memory and the bytes that cross the link are counters. Times are microseconds.
func WriteTrace(w io.Writer, steps []*Step) error {
	t := &tracer{w: w}
	t.raw(`{"displayTimeUnit":"ms","otherData":`)
	p := steps[0].Plan
	t.json(map[string]any{"model": p.Model, "hash": p.Hash, "target": p.Target, "placement": p.Placement})
	t.raw(",\n\"traceEvents\":[")
	for i, s := range steps {
		t.step(s, i+1)
	}
	t.raw("\n]}\n")
	return t.err
}

type tracer struct {
	w     io.Writer
	begun bool
	flows int
	err   error
}

func (t *tracer) raw(s string) {
	if t.err == nil {
		_, t.err = io.WriteString(t.w, s)
	}
}

func (t *tracer) json(v any) {
	text, err := json.Marshal(v)
	if t.err == nil {
		t.err = err
	}
	t.raw(string(text))
}

// event is one line. Fields stand in the order of the format's description.
type event struct {
	Name  string  `json:"name"`
	Cat   string  `json:"cat,omitempty"`
	Phase string  `json:"ph"`
	Time  *number `json:"ts,omitempty"`
	Dur   *number `json:"dur,omitempty"`
	PID   int     `json:"pid"`
	TID   int     `json:"tid"`
	ID    int     `json:"id,omitempty"`
	Bind  string  `json:"bp,omitempty"`
	Args  any     `json:"args,omitempty"`
}

// number is microseconds with a nanosecond's digits.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(n), 'f', 3, 64), nil
}

// micros is a time in whole nanoseconds.
func (t *tracer) micros(s float64) *number { return nanos(int64(math.Round(s * 1e9))) }

func nanos(n int64) *number {
	x := number(float64(n) / 1e3)
	return &x
}

func (t *tracer) event(e event) {
	if t.begun {
		t.raw(",")
	}
	t.begun = true
	t.raw("\n")
	t.json(e)
}

// taskArgs is what a click on a task shows.
type taskArgs struct {
	Task  int     `json:"task"`
	Line  string  `json:"line,omitempty"`
	Unit  string  `json:"of,omitempty"`
	Micro *int    `json:"micro,omitempty"`
	FLOPs int64   `json:"flops,omitempty"`
	Bytes int64   `json:"bytes,omitempty"`
	Bound string  `json:"bound_by,omitempty"`
	Slack *number `json:"slack_us,omitempty"`
	Step  string  `json:"step,omitempty"`
}

func (t *tracer) step(s *Step, pid int) {
	meta := func(name string, tid int, args map[string]any) {
		t.event(event{Name: name, Phase: "M", PID: pid, TID: tid, Args: args})
	}
	meta("process_name", 0, map[string]any{"name": s.Plan.Model + ", " + s.Line.List.String() + ", " + s.Origin()})
	meta("process_sort_index", 0, map[string]any{"sort_index": pid})
	for l := range device.NumLanes {
		meta("thread_name", int(l)+1, map[string]any{"name": l.String()})
		meta("thread_sort_index", int(l)+1, map[string]any{"sort_index": int(l)})
	}
	// Time 0 is where the first run begins: some reach into the step from the one before.
	shift := 0.0
	for i := range s.Line.Runs {
		shift = max(shift, -s.Line.Runs[i].Start)
	}
	slack := s.Slack()
	drawn := slicesOf(s, shift)
	for k := range s.Line.Runs {
		r := &s.Line.Runs[k]
		task := &s.Plan.Tasks[r.Task]
		args := taskArgs{Task: task.ID, Line: Place(s.Plan, task), Unit: Subject(s.Plan, task), FLOPs: task.FLOPs, Bytes: task.Moved}
		if task.Bytes > 0 {
			args.Bytes = task.Bytes
		}
		if task.Micro >= 0 {
			args.Micro = &task.Micro
		}
		if i := task.ID - s.First(); i >= 0 && i < s.Len() {
			args.Bound = string(s.bound(i))
			if !math.IsInf(slack[i], 0) {
				n := number(slack[i] * 1e6)
				args.Slack = &n
			}
		}
		if r.Step < 0 {
			args.Step = "the one before"
		}
		t.event(event{Name: Title(s.Plan, task), Cat: Kind(task), Phase: "X", Time: nanos(drawn[k].from), Dur: nanos(drawn[k].to - drawn[k].from), PID: pid, TID: int(task.Lane) + 1, Args: args})
	}
	t.handovers(s, pid, drawn)
	t.memory(s, pid, shift)
	t.link(s, pid, shift)
}

// slice is a run as it is drawn, in whole nanoseconds: from the first to before the last.
type slice struct{ from, to int64 }

// slicesOf rounds the runs of a step. A slice has at least a nanosecond, since an arrow ends in a slice alone that has a
// time in it, and those of a lane follow each other: where both cannot be, all move on a little.
func slicesOf(s *Step, shift float64) []slice {
	order := make([]int, len(s.Line.Runs))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.Line.Runs[a].Start, s.Line.Runs[b].Start) })
	out := make([]slice, len(order))
	var free [device.NumLanes]int64
	for _, k := range order {
		r := &s.Line.Runs[k]
		from := max(free[r.Lane], int64(math.Round((r.Start+shift)*1e9)))
		out[k] = slice{from, max(from+1, int64(math.Round((r.End+shift)*1e9)))}
		free[r.Lane] = out[k].to
	}
	return out
}

// handovers draws an arrow for each wait: from the end of the task that is waited for to the
// start of the one that waits.
func (t *tracer) handovers(s *Step, pid int, drawn []slice) {
	type key struct{ event, step int }
	order := make([]int, len(s.Line.Runs)) // as they were submitted: an event may be recorded again
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := &s.Line.Runs[a], &s.Line.Runs[b]
		return cmp.Or(x.Step-y.Step, x.Task-y.Task)
	})
	recorded := map[key]int{}
	for _, k := range order {
		r := &s.Line.Runs[k]
		task := &s.Plan.Tasks[r.Task]
		for _, w := range task.Waits {
			from, ok := recorded[key{w.Event, r.Step - w.Back}]
			if !ok {
				continue
			}
			q := &s.Line.Runs[from]
			out, in, ok := arrow(drawn[from], drawn[k])
			if !ok {
				continue
			}
			name := handover(s.Plan, &s.Plan.Tasks[q.Task], task)
			t.flows++
			t.event(event{Name: name, Cat: "buffer", Phase: "s", Time: nanos(out), PID: pid, TID: int(q.Lane) + 1, ID: t.flows})
			t.event(event{Name: name, Cat: "buffer", Phase: "f", Time: nanos(in), PID: pid, TID: int(r.Lane) + 1, ID: t.flows, Bind: "e"})
		}
		if task.Event >= 0 {
			recorded[key{task.Event, r.Step}] = k
		}
	}
}

// arrow places the ends of an arrow from q to r. Viewers give each end to the slice in which its time lies, the
// slice's end not among them, and drop an arrow whose end comes before its beginning. Lanes note
// measured times on their own, so a wait may seem to be over before what it waits for: such an arrow leaves
// earlier. Without a time that serves there is none.
func arrow(q, r slice) (out, in int64, ok bool) {
	out = q.to - 1 - inset(q)
	in = max(r.from+inset(r), min(out, r.to-1))
	out = max(q.from, min(out, in))
	return out, in, out <= in
}

// inset is a step into a slice, so that its ends stay apart where a viewer rounds.
func inset(s slice) int64 { return min((s.to-s.from-1)/2, max((s.to-s.from)/1000, 4)) }

// handover names the buffer that one task leaves to another.
func handover(p *plan.Plan, from, to *plan.Task) string {
	for _, b := range from.Writes {
		if slices.Contains(to.Reads, b) {
			return p.Buffers[b].Name
		}
	}
	for _, b := range from.Reads {
		if slices.Contains(to.Writes, b) {
			return p.Buffers[b].Name + " free"
		}
	}
	return "order"
}

func (t *tracer) memory(s *Step, pid int, shift float64) {
	for _, m := range s.Memories() {
		if m.Reserved == 0 {
			continue
		}
		for _, l := range m.Points {
			t.event(event{Name: m.Name + " memory alive", Phase: "C", Time: t.micros(l.At + shift), PID: pid, Args: map[string]int64{"bytes": l.Bytes}})
		}
	}
}

// link counts the bytes a second that cross the link, each way, as its tasks run.
func (t *tracer) link(s *Step, pid int, shift float64) {
	for _, l := range []device.Lane{device.H2D, device.D2H} {
		name := fmt.Sprintf("link %s", l)
		free := math.Inf(-1)
		zero := func(at float64) {
			t.event(event{Name: name, Phase: "C", Time: t.micros(at + shift), PID: pid, Args: map[string]float64{"GB/s": 0}})
		}
		for k := range s.Line.Runs {
			r := &s.Line.Runs[k]
			task := &s.Plan.Tasks[r.Task]
			if r.Lane != l || task.Bytes == 0 || r.End <= r.Start {
				continue
			}
			if !math.IsInf(free, 0) && r.Start > free+1e-9 {
				zero(free)
			}
			rate := float64(task.Bytes) / (r.End - r.Start) / 1e9
			t.event(event{Name: name, Phase: "C", Time: t.micros(r.Start + shift), PID: pid, Args: map[string]float64{"GB/s": math.Round(rate*1e3) / 1e3}})
			free = r.End
		}
		if !math.IsInf(free, 0) {
			zero(free)
		}
	}
}
