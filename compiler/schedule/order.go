package schedule

import (
	"fmt"
	"slices"
	"sync"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// order derives the waits and the events of a placed plan.
//
// It walks lists in submission order as the engine will submit them, keeps for every range
// of bytes its last writer and its readers since, and for every task a vector clock: the
// latest task of each lane that is known to be done before it ends. A task that reads what
// another lane wrote, or writes what another lane read or wrote, and whose clock does not
// cover that task yet, gets a wait. Of several, the latest comes first: its clock may cover
// the others. So no wait is implied by lane order and other waits, and none is missing.
//
// What steady needs depends on the list before it, so it is derived in a run of steady lists
// until it repeats itself.
func order(p *plan.Plan, results [plan.NumLists]int, mem *Memory) error {
	o := &orderer{p: p, seg: newSegments(p), results: results, walk: idleWalks.Get().(*walk)}
	defer idleWalks.Put(o.walk)
	o.logical, o.tasks = logicalTasks(p)
	for _, run := range [][]plan.List{
		{plan.Steady, plan.Steady, plan.Steady, plan.Steady},
		{plan.First, plan.Steady, plan.Steady, plan.Drain},
		{plan.First, plan.Drain},
		{plan.Eval}, {plan.Prefill}, {plan.Decode},
	} {
		deps, err := o.derive(run)
		if err != nil {
			return err
		}
		if run[0] == plan.Steady && !slices.EqualFunc(deps[2], deps[3], slices.Equal[[]dep]) {
			return fmt.Errorf("the waits of the steady step do not settle")
		}
		for i, l := range run {
			o.fixed[l] = deps[i]
		}
	}
	o.record(mem)
	return nil
}

// dep is a wait for a logical task.
type dep struct {
	logical int32
	back    int8
}

type orderer struct {
	p       *plan.Plan
	seg     *segments
	results [plan.NumLists]int
	logical []int32 // by task
	tasks   int     // number of logical tasks
	fixed   [plan.NumLists][][]dep
	walk    *walk
	chunk   []dep // waits are few to a task, and many tasks have some: they are cut from chunks
}

// clock is, by lane, the position of the latest task known to be done; -1 for none.
type clock [device.NumLanes]int32

var never = clock{-1, -1, -1, -1}

func (c *clock) join(d *clock) {
	for l := range c {
		c[l] = max(c[l], d[l])
	}
}

// access is what has happened to a segment.
type access struct {
	writer  clock // the last writer in its lane, else -1
	readers clock // since the last write
}

// walk is the state of walking lists one after another. Positions count the tasks walked.
type walk struct {
	lists  []plan.List
	starts []int32   // by list: position of its first task
	deps   [][][]dep // by list, task
	at     [][]int32 // by list, logical task: its position, -1
	ids    []int32   // by position: task
	clocks []clock   // by position
	lanes  [device.NumLanes]clock
	mem    []access // by segment
}

// idleWalks are those that no plan is being ordered with: their memory serves the next one.
var idleWalks = sync.Pool{New: func() any { return new(walk) }}

// begin makes a walk of so many segments and logical tasks ready for lists.
func (w *walk) begin(lists []plan.List, segments, tasks int) {
	w.lists, w.starts, w.ids, w.clocks = lists, w.starts[:0], w.ids[:0], w.clocks[:0]
	w.deps = make([][][]dep, len(lists)) // what was found is handed on
	w.mem = slices.Grow(w.mem[:0], segments)[:segments]
	for i := range w.mem {
		w.mem[i] = access{never, never}
	}
	for i := range w.lanes {
		w.lanes[i] = never
	}
	for len(w.at) < len(lists) {
		w.at = append(w.at, nil)
	}
	for k := range lists {
		w.at[k] = slices.Grow(w.at[k][:0], tasks)[:tasks]
		for i := range w.at[k] {
			w.at[k][i] = -1
		}
	}
}

// derive walks lists and finds the waits of their tasks, by list: those fixed for a list already, and
// the missing ones.
func (o *orderer) derive(lists []plan.List) ([][][]dep, error) {
	w := o.walk
	w.begin(lists, o.seg.n, o.tasks)
	n := 0
	for _, l := range lists {
		n += o.p.Lists[l].End - o.p.Lists[l].Start
	}
	w.ids, w.clocks = slices.Grow(w.ids, n), slices.Grow(w.clocks, n)
	for step, l := range lists {
		r := o.p.Lists[l]
		w.starts = append(w.starts, int32(len(w.ids)))
		w.deps[step] = make([][]dep, r.End-r.Start)
		if step >= 2 && l != plan.Drain {
			// The host has seen the results of two steps before.
			seen := lists[step-2]
			done := &w.clocks[w.starts[step-2]+int32(o.results[seen]-o.p.Lists[seen].Start)]
			for i := range w.lanes {
				w.lanes[i].join(done)
			}
		}
		for i := r.Start; i < r.End; i++ {
			if err := o.step(w, step, i); err != nil {
				return nil, err
			}
		}
	}
	return w.deps, nil
}

// step finds the waits of one task and moves the walk past it.
func (o *orderer) step(w *walk, step, id int) error {
	t := &o.p.Tasks[id]
	l := w.lists[step]
	i := id - o.p.Lists[l].Start
	vc := w.lanes[t.Lane]
	var deps []dep
	if o.fixed[l] != nil {
		deps = o.fixed[l][i]
		for _, d := range deps {
			if s := step - int(d.back); s >= 0 && w.at[s][d.logical] >= 0 {
				vc.join(&w.clocks[w.at[s][d.logical]])
			}
		}
	}
	need := o.conflicts(w, t, step)
	for {
		// The latest first; of a lane whose need is met there is none.
		lane := t.Lane
		for l := range need {
			if need[l] > vc[l] && (lane == t.Lane || need[l] > need[lane]) {
				lane = device.Lane(l)
			}
		}
		if lane == t.Lane {
			break
		}
		pos, ok := w.reach(o, need[lane], lane, step)
		if !ok {
			return fmt.Errorf("task %s: what it needs of two steps before cannot be waited for", TaskName(o.p, t))
		}
		need[lane] = -1
		vc.join(&w.clocks[pos])
		back := int8(0)
		if pos < w.starts[step] {
			back = 1
		}
		deps = o.with(deps, dep{o.logical[w.ids[pos]], back})
	}
	pos := int32(len(w.ids))
	vc[t.Lane] = pos
	w.lanes[t.Lane] = vc
	w.clocks = append(w.clocks, vc)
	w.ids = append(w.ids, int32(id))
	w.at[step][o.logical[id]] = pos
	w.deps[step][i] = deps
	o.touch(w, t, step, pos)
	return nil
}

// with is a list of waits with one more; what it was stays as it is.
func (o *orderer) with(deps []dep, d dep) []dep {
	n := len(deps) + 1
	if len(o.chunk) < n {
		o.chunk = make([]dep, max(4096, n))
	}
	out := o.chunk[:n:n]
	o.chunk = o.chunk[n:]
	copy(out, deps)
	out[n-1] = d
	return out
}

// reach returns the position to wait for so that the task at pos is done: itself when it
// belongs to this list or the one before, else the first task after it in its lane that does.
func (w *walk) reach(o *orderer, pos int32, lane device.Lane, step int) (int32, bool) {
	if step == 0 || pos >= w.starts[step-1] {
		return pos, true
	}
	for q := w.starts[step-1]; q < w.starts[step]; q++ {
		if o.p.Tasks[w.ids[q]].Lane == lane {
			return q, true
		}
	}
	return 0, false
}

// conflicts returns, by lane, the latest task that must be done before t.
func (o *orderer) conflicts(w *walk, t *plan.Task, step int) clock {
	need := never
	c := copyOf(t, step)
	for _, id := range t.Reads {
		if !o.seg.solo[id] {
			for s := o.seg.lo[c][id]; s < o.seg.hi[c][id]; s++ {
				need.join(&w.mem[s].writer)
			}
		}
	}
	for _, id := range t.Writes {
		if !o.seg.solo[id] {
			for s := o.seg.lo[c][id]; s < o.seg.hi[c][id]; s++ {
				need.join(&w.mem[s].writer)
				need.join(&w.mem[s].readers)
			}
		}
	}
	need[t.Lane] = -1
	return need
}

// touch records what t did.
func (o *orderer) touch(w *walk, t *plan.Task, step int, pos int32) {
	c := copyOf(t, step)
	for _, id := range t.Reads {
		if !o.seg.solo[id] {
			for s := o.seg.lo[c][id]; s < o.seg.hi[c][id]; s++ {
				w.mem[s].readers[t.Lane] = pos
			}
		}
	}
	for _, id := range t.Writes {
		if !o.seg.solo[id] {
			for s := o.seg.lo[c][id]; s < o.seg.hi[c][id]; s++ {
				a := access{never, never}
				a.writer[t.Lane] = pos
				w.mem[s] = a
			}
		}
	}
}

// record numbers the events in the order in which steady, then the other lists, record them,
// and writes events and waits into the plan. The results' event is one number in all lists.
func (o *orderer) record(mem *Memory) {
	p := o.p
	waited := make([]bool, o.tasks)
	for _, l := range o.fixed {
		for _, deps := range l {
			for _, d := range deps {
				waited[d.logical] = true
			}
		}
	}
	number := make([]int, o.tasks)
	for i := range number {
		number[i] = -1
	}
	for _, l := range []plan.List{plan.Steady, plan.First, plan.Drain, plan.Eval, plan.Prefill, plan.Decode} {
		for i := p.Lists[l].Start; i < p.Lists[l].End; i++ {
			n := &number[o.logical[i]]
			if i == o.results[l] && l != plan.Steady && *n < 0 {
				*n = number[o.logical[o.results[plan.Steady]]]
			}
			if *n < 0 && (waited[o.logical[i]] || i == o.results[l]) {
				*n = p.Events
				p.Events++
			}
			p.Tasks[i].Event = *n
		}
	}
	p.ResultsEvent = p.Tasks[o.results[plan.Steady]].Event
	for l, tasks := range o.fixed {
		for i, deps := range tasks {
			t := &p.Tasks[p.Lists[l].Start+i]
			t.Waits = mem.waits.cut(len(deps))
			for _, d := range deps {
				t.Waits = append(t.Waits, plan.Wait{Event: number[d.logical], Back: int(d.back)})
			}
		}
	}
}
