package view

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/runtime/plan"
)

// Choice is another way to schedule the step, and what came of it.
type Choice struct {
	What string // "`--slots 3`"
	Step *Step  // nil: it cannot be, and Err says why
	Err  string
}

// Reason is a wait of a task and what it protects.
type Reason struct {
	Task    int    `json:"task"`
	Back    int    `json:"back"`
	What    string `json:"what"`
	Lane    string `json:"lane"`
	Because string `json:"because"`
	// Ended is when it was done, in seconds of the step; Without is the step's time if nobody
	// had to wait for it.
	Ended   *float64 `json:"ended"`
	Without float64  `json:"without"`
}

// Why is why a task runs when it does.
type Why struct {
	Task    int        `json:"task"`
	What    string     `json:"what"`
	Lane    string     `json:"lane"`
	Span    string     `json:"span"`
	Origin  string     `json:"origin"`
	Step    float64    `json:"step_seconds"`
	Start   float64    `json:"start"`
	End     float64    `json:"end"`
	Slack   *float64   `json:"slack"`
	Bound   cost.Bound `json:"bound"`
	Rule    string     `json:"rule"`
	Started string     `json:"started"` // what let it start
	Waits   []Reason   `json:"waits"`
	Choices []Rejected `json:"choices"`
	Chosen  []Chosen   `json:"chosen,omitempty"` // by the planner, where it made the schedule
}

// Chosen is an option that the planner chose.
type Chosen struct {
	Flag  string `json:"flag"`
	Value string `json:"value"`
	Why   string `json:"why"`
}

// Rejected is a choice that the schedule did not make. Differences are to the schedule.
type Rejected struct {
	What    string  `json:"what"`
	Error   string  `json:"error,omitempty"`
	Seconds float64 `json:"seconds"`
	Change  float64 `json:"change"` // of the time, as a share
	Device  int64   `json:"device_bytes"`
	Host    int64   `json:"host_bytes"`
	Fits    bool    `json:"fits"` // the machine's memory
}

// Why explains a task of the step; choices are other schedules to hold against it.
func (t *Step) Why(task int, choices []Choice) (*Why, error) {
	i := task - t.First()
	if i < 0 || i >= t.Len() {
		return nil, fmt.Errorf("task %d is not one of a %s step: those are %d to %d", task, t.Line.List, t.First(), t.First()+t.Len()-1)
	}
	x := t.Task(i)
	w := &Why{
		Task: task, What: Title(t.Plan, x), Lane: x.Lane.String(), Span: Place(t.Plan, x), Origin: t.Origin(), Step: t.Line.Seconds,
		Start: t.Start[i], End: t.End[i], Slack: finite(t.Slack()[i]), Bound: t.bound(i), Rule: rule(t.Plan, x),
		Waits: []Reason{}, Choices: []Rejected{},
	}
	w.Started = t.started(i)
	for k, wait := range x.Waits {
		r, ok := t.recorder(wait)
		if !ok {
			continue
		}
		q := &t.Plan.Tasks[r]
		reason := Reason{
			Task: r, Back: wait.Back, What: Title(t.Plan, q), Lane: q.Lane.String(),
			Because: t.because(x, q), Without: t.without(task, k),
		}
		if place := r - t.First(); place >= 0 && place < t.Len() {
			end := t.End[place] - float64(wait.Back)*t.Line.Seconds
			reason.Ended = &end
		}
		w.Waits = append(w.Waits, reason)
	}
	for _, c := range choices {
		r := Rejected{What: c.What, Error: c.Err}
		if c.Step != nil {
			r.Seconds = c.Step.Line.Seconds
			r.Change = r.Seconds/t.Line.Seconds - 1
			d, h := arenas(c.Step.Plan)
			d0, h0 := arenas(t.Plan)
			r.Device, r.Host = d-d0, h-h0
			r.Fits = t.Machine == nil || Lacks(c.Step.Plan, t.Machine) == ""
		}
		w.Choices = append(w.Choices, r)
	}
	return w, nil
}

// arenas is what a plan takes of each memory.
func arenas(p *plan.Plan) (dev, host int64) {
	var sum [2]int64
	for _, a := range p.Arenas {
		sum[a.Memory] += a.Bytes
	}
	return sum[0], sum[1]
}

// recorder is the task that records what a wait is for; of the step before, the steady one.
func (t *Step) recorder(w plan.Wait) (task int, ok bool) {
	list := t.Line.List
	if w.Back == 1 {
		list = plan.Steady
	}
	r := t.Plan.Lists[list]
	for i := r.Start; i < r.End; i++ {
		if t.Plan.Tasks[i].Event == w.Event {
			return i, true
		}
	}
	return 0, false
}

// started says what let a task start.
func (t *Step) started(i int) string {
	if t.run[i] < 0 {
		return "it is not in the timeline"
	}
	run := &t.Line.Runs[t.run[i]]
	after, lane := t.waiting(run)
	if after == nil {
		return "at once: nothing before it holds it up"
	}
	q := &t.Plan.Tasks[after.Task]
	name := fmt.Sprintf("task %d, %s", q.ID, Title(t.Plan, q))
	if after.Step < run.Step {
		name += " of the step before"
	}
	late := run.Start - after.End
	s := fmt.Sprintf("when %s was done on %s, which it waits for", name, q.Lane)
	if lane {
		s = fmt.Sprintf("when %s was done: its lane was busy", name)
		if idle := after.End - run.Ready; idle > 0 && run.Ready > 0 && len(t.Task(i).Waits) > 0 {
			s += fmt.Sprintf("; all else was ready %s before", Seconds(idle))
		}
	}
	if late > 1e-9 && t.Line.Seconds > 0 && late > 1e-3*t.Line.Seconds {
		s += fmt.Sprintf(", and %s later", Seconds(late))
	}
	return s
}

// because says what a wait protects: the memory that both tasks use.
func (t *Step) because(task, before *plan.Task) string {
	if s := t.conflict(task, before); s != "" {
		return s
	}
	// Waits that others imply are left out, so this one may stand for an earlier task of that lane.
	r := t.Plan.Lists[before.List]
	for i := before.ID - 1; i >= r.Start; i-- {
		q := &t.Plan.Tasks[i]
		if q.Lane != before.Lane {
			continue
		}
		if s := t.conflict(task, q); s != "" {
			return fmt.Sprintf("%s (task %d, %s, which comes before it on its lane)", s, q.ID, Title(t.Plan, q))
		}
	}
	return "what it does has to be done first"
}

func (t *Step) conflict(task, before *plan.Task) string {
	for _, c := range []struct {
		mine, theirs []plan.BufID
		words        string
	}{
		{task.Reads, before.Writes, "this reads %s, which that writes"},
		{task.Writes, before.Reads, "this overwrites %s, which that reads"},
		{task.Writes, before.Writes, "both write %s"},
	} {
		for _, a := range c.mine {
			for _, b := range c.theirs {
				if a == b {
					return fmt.Sprintf(c.words, t.Plan.Buffers[a].Name)
				}
			}
		}
		for _, a := range c.mine {
			for _, b := range c.theirs {
				if t.share(a, b) {
					return fmt.Sprintf(c.words, t.Plan.Buffers[a].Name+" in the memory of "+t.Plan.Buffers[b].Name)
				}
			}
		}
	}
	return ""
}

// share says whether two buffers have bytes in common.
func (t *Step) share(a, b plan.BufID) bool {
	x, y := &t.Plan.Buffers[a], &t.Plan.Buffers[b]
	return x.Arena == y.Arena && x.Off < y.Off+copies(y) && y.Off < x.Off+copies(x)
}

// without is the time of the step if a task did not have to wait for the k-th of its waits:
// with another buffer in its place. 0 where that cannot be told.
func (t *Step) without(task, k int) float64 {
	if t.Machine == nil {
		return 0
	}
	p := *t.Plan
	p.Tasks = slices.Clone(p.Tasks)
	x := &p.Tasks[task]
	x.Waits = slices.Delete(slices.Clone(x.Waits), k, k+1)
	line, err := cost.SimulateList(&p, t.File.Work, t.Machine, t.Line.List)
	if err != nil {
		return 0
	}
	return line.Seconds
}

// Write prints the explanation.
func (w *Why) Write(out io.Writer) {
	head := fmt.Sprintf("task %d: %s, on %s", w.Task, w.What, w.Lane)
	if w.Span != "" {
		head += ", from " + w.Span
	}
	for i, line := range fold(head, Width-2) {
		fmt.Fprintln(out, strings.Repeat(" ", 2*min(i, 1))+line)
	}
	row := func(name, format string, args ...any) {
		for i, line := range fold(fmt.Sprintf(format, args...), Width-10) {
			if i > 0 {
				name = ""
			}
			fmt.Fprintf(out, "%-9s %s\n", name, line)
		}
	}
	bound := ""
	if w.Bound != "" {
		bound = ", bound by " + string(w.Bound)
	}
	row("times", "%s", w.Origin)
	row("runs", "from %s to %s of a step of %s: %s%s", Seconds(w.Start), Seconds(w.End), Seconds(w.Step), Seconds(w.End-w.Start), bound)
	switch {
	case w.Slack == nil:
		row("slack", "any: nothing ever waits for it")
	case *w.Slack <= 1e-6*w.Step:
		row("slack", "none: it is on the critical path, and the step takes longer if it does")
	default:
		row("slack", "%s: it may be so much later before the step takes longer", Seconds(*w.Slack))
	}
	row("started", "%s", w.Started)
	row("rule", "%s", w.Rule)
	for _, r := range w.Waits {
		s := fmt.Sprintf("task %d, %s on %s", r.Task, r.What, r.Lane)
		if r.Back == 1 {
			s += ", of the step before"
		}
		if r.Ended != nil {
			s += ", done at " + Seconds(*r.Ended)
		}
		s += ": " + r.Because
		if r.Without > 0 {
			s += "; " + gain("without the wait", r.Without, w.Step)
		}
		row("waits for", "%s", s)
	}
	for _, c := range w.Chosen {
		row("planner", "%s %s: %s", c.Flag, c.Value, c.Why)
	}
	if len(w.Choices) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%-36s %10s %9s %11s %10s\n", "instead", "step", "change", "device", "host")
	fits := true
	for _, c := range w.Choices {
		if c.Error != "" {
			for i, line := range fold(c.Error, Width-38) {
				name := ""
				if i == 0 {
					name = clip(c.What, 36)
				}
				fmt.Fprintf(out, "%-36s %s\n", name, line)
			}
			continue
		}
		mark := ""
		if !c.Fits {
			mark, fits = "*", false
		}
		line := fmt.Sprintf("%-36s %10s %9s %11s %10s%s", clip(c.What, 36), Seconds(c.Seconds), Change(w.Step, c.Seconds), moreBytes(c.Device), moreBytes(c.Host), mark)
		fmt.Fprintln(out, line)
	}
	if !fits {
		fmt.Fprintln(out, "* has no room in the machine's memory")
	}
}

func gain(what string, with, now float64) string {
	if math.Abs(with-now) <= 5e-4*now {
		return what + " the step takes as long"
	}
	return fmt.Sprintf("%s the step takes %s (%s)", what, Seconds(with), Change(now, with))
}

// moreBytes writes a difference in bytes.
func moreBytes(n int64) string {
	switch {
	case n > 0:
		return "+" + bytesText(n)
	case n < 0:
		return "-" + bytesText(-n)
	}
	return "same"
}

// fold breaks a text between words.
func fold(s string, width int) []string {
	var out []string
	for _, word := range strings.Fields(s) {
		if n := len(out); n > 0 && len(out[n-1])+1+len(word) <= width {
			out[n-1] += " " + word
		} else {
			out = append(out, word)
		}
	}
	return out
}
