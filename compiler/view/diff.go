package view

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/megatrain/mtc/compiler/schedule"
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// Diff is what two schedules have different. Bytes and times of B less those of A are changes.
type Diff struct {
	Equal    bool        `json:"equal"`
	Settings []Setting   `json:"settings"`
	Lists    []ListDiff  `json:"lists"`
	Tasks    []TaskDiff  `json:"tasks"`
	Memory   []BytesDiff `json:"memory"`
	// Time of a steady step on Machine, and of its lanes; absent where it is not predicted.
	Machine string    `json:"machine,omitempty"`
	Step    *Times    `json:"step,omitempty"`
	Lanes   []LaneDif `json:"lanes,omitempty"`
	// Untimed is why no time is predicted, where the schedules differ.
	Untimed string `json:"untimed,omitempty"`
}

// Setting is a value that differs; "" where a side has none.
type Setting struct {
	Name string `json:"name"`
	A    string `json:"a"`
	B    string `json:"b"`
}

// ListDiff counts the tasks of a list that changed.
type ListDiff struct {
	List    string `json:"list"`
	A       int    `json:"a"`
	B       int    `json:"b"`
	Moved   int    `json:"moved"`
	Changed int    `json:"changed"`
	Added   int    `json:"added"`
	Gone    int    `json:"gone"`
}

// TaskDiff is a task that is on one side only, stands elsewhere, or does something else.
type TaskDiff struct {
	List   string `json:"list"`
	Change string `json:"change"` // "added", "gone", "moved", "changed"
	Task   string `json:"task"`
	A      int    `json:"a"` // numbers, -1 for none
	B      int    `json:"b"`
	How    string `json:"how,omitempty"`
}

// BytesDiff is memory: an arena, or a peak.
type BytesDiff struct {
	Name string `json:"name"`
	A    int64  `json:"a"`
	B    int64  `json:"b"`
}

// Times are a step's seconds.
type Times struct {
	A float64 `json:"a"`
	B float64 `json:"b"`
}

// LaneDif is a lane's busy and exposed time.
type LaneDif struct {
	Lane    string `json:"lane"`
	Busy    Times  `json:"busy"`
	Exposed Times  `json:"exposed"`
}

// Compare lists what is different between two schedules.
func (s *Schedule) Compare(b *Schedule) *Diff {
	d := &Diff{Settings: []Setting{}, Lists: []ListDiff{}, Tasks: []TaskDiff{}, Memory: []BytesDiff{}}
	d.settings(s.File, b.File)
	x, y := side{s.Plan, recorders(s.Plan)}, side{b.Plan, recorders(b.Plan)}
	for l := range plan.NumLists {
		d.list(x, y, l)
	}
	d.memory(s.File, b.File)
	d.Equal = len(d.Settings) == 0 && len(d.Lists) == 0 && len(d.Memory) == 0
	return d
}

// Predicted adds the times of both on a machine.
func (d *Diff) Predicted(a, b *Step) {
	d.Machine = a.Line.Machine
	d.Step = &Times{a.Line.Seconds, b.Line.Seconds}
	for l := range device.NumLanes {
		x, y := a.Line.Lanes[l], b.Line.Lanes[l]
		if x.Busy+y.Busy > 0 {
			d.Lanes = append(d.Lanes, LaneDif{l.String(), Times{x.Busy, y.Busy}, Times{x.Exposed, y.Exposed}})
		}
	}
}

func (d *Diff) settings(a, b *schedule.File) {
	add := func(name, x, y string) {
		if x != y {
			d.Settings = append(d.Settings, Setting{name, x, y})
		}
	}
	add("model", a.Model, b.Model)
	add("source", a.Source, b.Source)
	add("compiler", a.Compiler, b.Compiler)
	add("target", a.Target, b.Target)
	add("precision", a.Precision, b.Precision)
	add("placement", a.Placement, b.Placement)
	for _, n := range []struct {
		name string
		a, b int64
	}{
		{"parameters", a.Params, b.Params}, {"batch", a.Batch, b.Batch}, {"seq", a.Seq, b.Seq}, {"micro-batches", a.Micros, b.Micros},
		{"rows of a micro-batch", a.Rows, b.Rows}, {"groups", a.Groups, b.Groups}, {"slots", a.Slots, b.Slots},
		{"grad slots", a.GradSlots, b.GradSlots}, {"prefill", a.Prefill, b.Prefill}, {"active parameters", a.Active, b.Active},
		{"saved inputs", a.SavedInputs, b.SavedInputs}, {"layers with saved values", a.SavedLayers, b.SavedLayers}, {"gradients on the device", a.DeviceGrads, b.DeviceGrads},
	} {
		add(n.name, schedule.Count(n.a), schedule.Count(n.b))
	}
	add("clip", fmt.Sprint(a.Clip), fmt.Sprint(b.Clip))
	add("gradients on the link", cmp.Or(a.GradPrecision, "f32"), cmp.Or(b.GradPrecision, "f32"))
	learn := func(f *schedule.File) string {
		if f.Trained == 0 {
			return "all"
		}
		return schedule.Count(f.Trained)
	}
	add("parameters that learn", learn(a), learn(b))
	resident := func(f *schedule.File) string {
		n := 0
		for _, s := range f.Slabs {
			if s.Resident {
				n++
			}
		}
		return fmt.Sprintf("%d of %d", n, len(f.Slabs))
	}
	add("slabs on the device", resident(a), resident(b))
	var names []string
	values := [2]map[string]string{{}, {}}
	for k, f := range []*schedule.File{a, b} {
		for _, v := range f.Values {
			if !slices.Contains(names, v.Name) {
				names = append(names, v.Name)
			}
			values[k][v.Name] = v.Text
		}
	}
	for _, n := range names {
		add(n, values[0][n], values[1][n])
	}
}

// recorders finds, by list and event, the task that records it.
func recorders(p *plan.Plan) [plan.NumLists]map[int]int {
	var out [plan.NumLists]map[int]int
	for l := range plan.NumLists {
		out[l] = map[int]int{}
		for i := p.Lists[l].Start; i < p.Lists[l].End; i++ {
			if e := p.Tasks[i].Event; e >= 0 {
				out[l][e] = i
			}
		}
	}
	return out
}

// side is a plan and what its events are.
type side struct {
	*plan.Plan
	recorders [plan.NumLists]map[int]int
}

// named is a task by what it does, which says which tasks of two schedules are the same.
type named struct {
	task *plan.Task
	name string
}

// names gives the tasks of a list names of their own: a second one of the same name is "#2".
func names(p *plan.Plan, l plan.List) []named {
	r := p.Lists[l]
	out := make([]named, 0, r.End-r.Start)
	seen := map[string]int{}
	for i := r.Start; i < r.End; i++ {
		t := &p.Tasks[i]
		n := Title(p, t)
		if t.Micro >= 0 && p.Micros <= 1 {
			n += " micro 0"
		}
		seen[n]++
		if k := seen[n]; k > 1 {
			n += fmt.Sprintf(" #%d", k)
		}
		out = append(out, named{t, n})
	}
	return out
}

// list compares the tasks of a list. Those that both have are in the same order but for the
// ones that moved: the fewest whose leaving makes the orders equal.
func (d *Diff) list(a, b side, l plan.List) {
	as, bs := names(a.Plan, l), names(b.Plan, l)
	at := make(map[string]int, len(bs))
	for i, x := range bs {
		at[x.name] = i
	}
	c := ListDiff{List: l.String(), A: len(as), B: len(bs)}
	note := func(n *int, x TaskDiff) {
		*n++
		x.List = c.List
		d.Tasks = append(d.Tasks, x)
	}
	var both []int // places in bs of what both have, in the order of as
	in := map[string]bool{}
	for _, x := range as {
		if k, ok := at[x.name]; ok {
			both = append(both, k)
			in[x.name] = true
		}
	}
	stay := longestRise(both)
	k := 0
	for _, x := range as {
		y, ok := at[x.name]
		if !ok {
			note(&c.Gone, TaskDiff{Change: "gone", Task: x.name, A: x.task.ID, B: -1})
			continue
		}
		moved := !stay[k]
		k++
		if how := change(a, b, x.task, bs[y].task); how != "" {
			note(&c.Changed, TaskDiff{Change: "changed", Task: x.name, A: x.task.ID, B: bs[y].task.ID, How: how})
		}
		if moved {
			note(&c.Moved, TaskDiff{Change: "moved", Task: x.name, A: x.task.ID, B: bs[y].task.ID, How: behind(bs, y)})
		}
	}
	for _, x := range bs {
		if !in[x.name] {
			note(&c.Added, TaskDiff{Change: "added", Task: x.name, A: -1, B: x.task.ID})
		}
	}
	if c.Moved+c.Changed+c.Added+c.Gone > 0 {
		d.Lists = append(d.Lists, c)
	}
}

// behind says where a task stands now.
func behind(list []named, i int) string {
	if i == 0 {
		return "now first"
	}
	return "now behind " + list[i-1].name
}

// longestRise marks the members of a longest rising subsequence (Fredman, 1975).
func longestRise(v []int) []bool {
	var ends []int // index of the smallest end of a rise of each length
	before := make([]int, len(v))
	for i, x := range v {
		k, _ := slices.BinarySearchFunc(ends, x, func(j, x int) int { return cmp.Compare(v[j], x) })
		before[i] = -1
		if k > 0 {
			before[i] = ends[k-1]
		}
		if k == len(ends) {
			ends = append(ends, i)
		} else {
			ends[k] = i
		}
	}
	out := make([]bool, len(v))
	if len(ends) > 0 {
		for i := ends[len(ends)-1]; i >= 0; i = before[i] {
			out[i] = true
		}
	}
	return out
}

// change says what two tasks of one name do differently.
func change(pa, pb side, a, b *plan.Task) string {
	var how []string
	add := func(name, x, y string) {
		if x != y {
			how = append(how, fmt.Sprintf("%s %s -> %s", name, x, y))
		}
	}
	add("lane", a.Lane.String(), b.Lane.String())
	add("FLOPs", schedule.Count(a.FLOPs), schedule.Count(b.FLOPs))
	bytes := func(t *plan.Task) string {
		if t.Bytes > 0 {
			return bytesText(t.Bytes)
		}
		return bytesText(t.Moved)
	}
	add("bytes", bytes(a), bytes(b))
	sets := func(name string, x, y []string) {
		less, more := without(x, y), without(y, x)
		switch {
		case len(less)+len(more) == 0:
		case len(less) == 0:
			how = append(how, name+" also "+strings.Join(more, ", "))
		case len(more) == 0:
			how = append(how, name+" no more "+strings.Join(less, ", "))
		default:
			how = append(how, fmt.Sprintf("%s %s -> %s", name, strings.Join(less, ", "), strings.Join(more, ", ")))
		}
	}
	sets("reads", buffersText(pa, a.Reads), buffersText(pb, b.Reads))
	sets("writes", buffersText(pa, a.Writes), buffersText(pb, b.Writes))
	sets("waits for", waitsText(pa, a), waitsText(pb, b))
	return strings.Join(how, "; ")
}

// without is what of a list another one lacks.
func without(list, other []string) []string {
	var out []string
	for _, x := range list {
		if !slices.Contains(other, x) {
			out = append(out, x)
		}
	}
	return out
}

func buffersText(p side, ids []plan.BufID) []string {
	var out []string
	for _, id := range ids {
		out = append(out, p.Buffers[id].Name)
	}
	return out
}

// waitsText names what a task waits for.
func waitsText(p side, t *plan.Task) []string {
	var out []string
	for _, w := range t.Waits {
		list, when := t.List, ""
		if w.Back == 1 {
			list, when = plan.Steady, " of the step before"
		}
		if i, ok := p.recorders[list][w.Event]; ok {
			out = append(out, Title(p.Plan, &p.Tasks[i])+when)
		}
	}
	return out
}

func (d *Diff) memory(a, b *schedule.File) {
	add := func(name string, x, y int64) {
		if x != y {
			d.Memory = append(d.Memory, BytesDiff{name, x, y})
		}
	}
	add("device peak", a.Memory.DevicePeak, b.Memory.DevicePeak)
	add("host peak", a.Memory.HostPeak, b.Memory.HostPeak)
	var names []string
	sizes := [2]map[string]int64{{}, {}}
	for k, f := range []*schedule.File{a, b} {
		for _, x := range f.Memory.Arenas {
			if !slices.Contains(names, x.Name) {
				names = append(names, x.Name)
			}
			sizes[k][x.Name] += x.Bytes
		}
	}
	for _, n := range names {
		add(n, sizes[0][n], sizes[1][n])
	}
}

// Write prints the difference; `most` bounds the tasks printed of a list and change.
func (d *Diff) Write(w io.Writer, a, b string, most int) {
	if d.Equal {
		fmt.Fprintf(w, "%s and %s are the same schedule\n", a, b)
		return
	}
	fmt.Fprintf(w, "a: %s\nb: %s\n", a, b)
	if d.Untimed != "" {
		for _, line := range fold("no time is predicted: "+d.Untimed, Width) {
			fmt.Fprintln(w, line)
		}
	}
	if d.Step != nil {
		fmt.Fprintf(w, "\n%-28s %14s %14s %14s\n", "steady, on "+clip(d.Machine, 16), "a", "b", "change")
		row := func(name string, t Times) {
			fmt.Fprintf(w, "%-28s %14s %14s %14s\n", name, Seconds(t.A), Seconds(t.B), Change(t.A, t.B))
		}
		row("step", *d.Step)
		for _, l := range d.Lanes {
			row(l.Lane+" busy", l.Busy)
			if l.Lane != device.Compute.String() {
				row(l.Lane+" exposed", l.Exposed)
			}
		}
	}
	if len(d.Settings) > 0 {
		fmt.Fprintf(w, "\n%-28s %24s %24s\n", "settings", "a", "b")
		for _, s := range d.Settings {
			fmt.Fprintf(w, "%-28s %24s %24s\n", clip(s.Name, 28), clip(s.A, 24), clip(s.B, 24))
		}
	}
	if len(d.Memory) > 0 {
		fmt.Fprintf(w, "\n%-28s %14s %14s %14s\n", "memory", "a", "b", "change")
		for _, m := range d.Memory {
			fmt.Fprintf(w, "%-28s %14s %14s %14s\n", clip(m.Name, 28), bytesText(m.A), bytesText(m.B), moreBytes(m.B-m.A))
		}
	}
	if len(d.Lists) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%-12s %8s %8s %8s %8s %8s %8s\n", "tasks", "a", "b", "moved", "changed", "added", "gone")
	for _, l := range d.Lists {
		fmt.Fprintf(w, "%-12s %8d %8d %8d %8d %8d %8d\n", l.List, l.A, l.B, l.Moved, l.Changed, l.Added, l.Gone)
	}
	// Of a training step the tasks are listed; of the others where all are asked for, or where
	// nothing else differs.
	listed := plan.Steady.String()
	if !slices.ContainsFunc(d.Lists, func(l ListDiff) bool { return l.List == listed }) {
		listed = d.Lists[0].List
	}
	for _, l := range d.Lists {
		if l.List != listed && most != All {
			continue
		}
		for _, what := range []string{"gone", "added", "moved", "changed"} {
			d.writeTasks(w, l.List, what, most)
		}
	}
}

// All lists all tasks that differ.
const All = math.MaxInt

func (d *Diff) writeTasks(w io.Writer, list, what string, most int) {
	n := 0
	for _, t := range d.Tasks {
		if t.List != list || t.Change != what {
			continue
		}
		if n++; n == 1 {
			fmt.Fprintf(w, "\n%s, %s:\n", list, what)
		}
		if n > most {
			continue
		}
		id := t.A
		if id < 0 {
			id = t.B
		}
		fmt.Fprintf(w, "  %6d  %s\n", id, clip(t.Task, Width-10))
		for _, part := range strings.Split(t.How, "; ") {
			for i, line := range fold(part, Width-14) {
				indent := "          "
				if i > 0 {
					indent += "  "
				}
				fmt.Fprintln(w, indent+line)
			}
		}
	}
	if n > most {
		fmt.Fprintf(w, "  and %d more; --all lists them\n", n-most)
	}
}
