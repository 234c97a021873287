package schedule

import (
	"errors"
	"fmt"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// Verify proves that a plan is safe to run, by other means than those that made it, and names
// the first task where it is not. It walks first, steady, steady, steady, drain as the engine
// submits them, first and drain alone, and eval, prefill and decode alone, and shows:
//
//   - every buffer lies in its arena, generation in the part that is promised to it, and the
//     buffers of one task are apart;
//   - waits name events recorded earlier in the order of submission, so that they cannot
//     form a circle;
//   - of two tasks that touch the same bytes, one of them writing, the later is ordered after
//     the earlier by lane order and waits (happens-before, by vector clocks over events as
//     the engine records them);
//   - then what a task reads is what the order of submission says, and that is right: the
//     contents of every buffer are followed through the walk (contents.go).
//
// It is fast enough to run on every compile.
func Verify(p *plan.Plan) error {
	v, err := newVerifier(p)
	if err != nil {
		return err
	}
	for _, lists := range walks {
		if err := v.walk(lists); err != nil {
			return err
		}
	}
	return nil
}

// walks are the lists that are verified one after another.
var walks = [][]plan.List{
	{plan.First, plan.Steady, plan.Steady, plan.Steady, plan.Drain},
	{plan.First, plan.Drain},
	{plan.Eval},
	{plan.Prefill},
	{plan.Decode},
}

// verifyOrder shows of a plan without bindings what Verify shows of buffers and waits: all but contents.
func verifyOrder(p *plan.Plan) error {
	v := &verifier{p: p}
	if err := v.checkMemory(); err != nil {
		return err
	}
	v.seg = newSegments(p)
	v.stamp, v.owner = make([]int32, v.seg.n), make([]plan.BufID, v.seg.n)
	for _, lists := range walks {
		if err := v.walkOf(lists, nil); err != nil {
			return err
		}
	}
	return nil
}

// verifier is what walks share.
type verifier struct {
	p      *plan.Plan
	seg    *segments
	stamp  []int32      // by segment: the last task position that touched it
	owner  []plan.BufID // by segment: the buffer it touched it as
	units  []unitFacts
	made   []bool  // by value: a unit makes it
	takers []int32 // by value: units that give it a gradient
	needs  []int32 // by slab: units that contribute to its gradient
	clocks []clock // of the last walk, by position
}

// unitFacts are what the lists say of a unit.
type unitFacts struct {
	loss, backward, recompute, again bool
}

func newVerifier(p *plan.Plan) (*verifier, error) {
	v := &verifier{p: p}
	if err := v.checkMemory(); err != nil {
		return nil, err
	}
	if err := v.checkTasks(); err != nil {
		return nil, err
	}
	v.seg = newSegments(p)
	v.stamp, v.owner = make([]int32, v.seg.n), make([]plan.BufID, v.seg.n)
	v.gatherFacts()
	return v, nil
}

// checkMemory shows that buffers lie in their arenas.
func (v *verifier) checkMemory() error {
	for i := 1; i < len(v.p.Buffers); i++ {
		b := &v.p.Buffers[i]
		if b.Arena < 0 || b.Arena >= len(v.p.Arenas) {
			return fmt.Errorf("buffer %s: there is no arena %d", b.Name, b.Arena)
		}
		a, n := &v.p.Arenas[b.Arena], b.Bytes
		if b.Parity {
			n *= 2
		}
		if b.Off < 0 || n < 0 || b.Off+n > a.Bytes {
			return fmt.Errorf("buffer %s: bytes %d to %d are outside arena %s of %d bytes", b.Name, b.Off, b.Off+n, a.Name, a.Bytes)
		}
	}
	return nil
}

// checkTasks shows that tasks are where they say, use existing things, and list what they bind.
func (v *verifier) checkTasks() error {
	p := v.p
	end, bound := 0, map[code]uint8{}
	for l, r := range p.Lists {
		if r.Start != end || r.End < r.Start || r.End > len(p.Tasks) {
			return fmt.Errorf("list %s: tasks %d to %d do not follow the list before", plan.List(l), r.Start, r.End)
		}
		end = r.End
		recorded := make([]bool, p.Events)
		for i := r.Start; i < r.End; i++ {
			c := bindCheck{p: p, bound: bound, t: &p.Tasks[i]}
			c.place(i, plan.List(l))
			if e := c.t.Event; c.wrong == "" && e >= 0 {
				if recorded[e] {
					c.fail("an event is recorded twice in the list")
				}
				recorded[e] = true
			}
			if c.wrong == "" {
				c.operands()
			}
			if c.wrong != "" {
				return fmt.Errorf("task %s: %s", TaskName(p, c.t), c.wrong)
			}
		}
	}
	if end != len(p.Tasks) {
		return fmt.Errorf("%d tasks stand in no list", len(p.Tasks)-end)
	}
	return nil
}

// gatherFacts reads from the first list what units do.
func (v *verifier) gatherFacts() {
	p := v.p
	v.units = make([]unitFacts, len(p.Units))
	values := 0
	for _, u := range p.Units {
		for _, ids := range [2][]int{u.In, u.Out} {
			for _, i := range ids {
				values = max(values, i+1)
			}
		}
	}
	v.made, v.takers = make([]bool, values), make([]int32, values)
	v.needs = make([]int32, len(p.Slabs))
	for _, u := range p.Units {
		for _, i := range u.Out {
			v.made[i] = true
		}
	}
	for i := p.Lists[plan.First].Start; i < p.Lists[plan.First].End; i++ {
		t := &p.Tasks[i]
		if t.Kind != plan.Compute {
			continue
		}
		f := &v.units[t.Unit]
		switch t.Func {
		case plan.Recompute:
			f.recompute = true
		case plan.Again:
			f.again = true
		case plan.Backward, plan.Loss:
			if f.loss || f.backward {
				continue
			}
			f.loss, f.backward = t.Func == plan.Loss, t.Func == plan.Backward
			for k, d := range t.Bind.DIn {
				if d != plan.NoBuf {
					v.takers[p.Units[t.Unit].In[k]]++
				}
			}
			for _, s := range p.Units[t.Unit].Slabs { // of frozen ones nothing is asked
				v.needs[s]++
			}
		}
	}
}

// walk checks the lists one after another.
func (v *verifier) walk(lists []plan.List) error { return v.walkOf(lists, newContents(v)) }

// walkOf checks the lists one after another, without contents their order alone.
func (v *verifier) walkOf(lists []plan.List, c *contents) error {
	p := v.p
	for i := range v.stamp {
		v.stamp[i] = -1
	}
	h := &hbWalk{v: v, mem: make([]access, v.seg.n)}
	for i := range h.mem {
		h.mem[i] = access{never, never}
	}
	for i := range h.lanes {
		h.lanes[i] = never
	}
	for i := range h.events {
		h.events[i] = make([]record, p.Events)
		for e := range h.events[i] {
			h.events[i][e] = record{-1, -1}
		}
	}
	trained := 0
	for step, l := range lists {
		h.enter(step, l)
		if c != nil {
			c.enter(step, l)
		}
		for i := p.Lists[l].Start; i < p.Lists[l].End; i++ {
			t := &p.Tasks[i]
			if err := h.task(t); err != nil {
				return err
			}
			if c == nil {
				continue
			}
			if err := c.task(t); err != nil {
				return fmt.Errorf("task %s: %w", TaskName(p, t), err)
			}
		}
		err := h.leave()
		if c != nil {
			err = errors.Join(c.leave(), err)
		}
		if err != nil {
			return fmt.Errorf("list %s: %w", l, err)
		}
		if l == plan.First || l == plan.Steady {
			trained++
		}
	}
	v.clocks = h.clocks
	if c != nil && trained > 0 {
		return c.finish(trained)
	}
	return nil
}

// record is where an event was last recorded.
type record struct {
	pos  int32
	step int
}

// hbWalk computes happens-before.
type hbWalk struct {
	v       *verifier
	step    int
	list    plan.List
	mem     []access
	clocks  []clock
	ids     []int32 // by position: task
	lanes   [device.NumLanes]clock
	events  [2][]record // by parity of the step that recorded them
	results []int32     // by step: position of the task that completed Results, -1
	reports []int32     // of this list: positions of the copies that the host reads
}

// enter begins a list. What the host has waited for holds for everything submitted after.
func (h *hbWalk) enter(step int, l plan.List) {
	h.step, h.list = step, l
	if step >= 2 && l != plan.Drain && h.results[step-2] >= 0 {
		for i := range h.lanes {
			h.lanes[i].join(&h.clocks[h.results[step-2]])
		}
	}
	h.results = append(h.results, -1)
	h.reports = h.reports[:0]
}

// leave checks that all which the host is told of a step is there when it looks.
func (h *hbWalk) leave() error {
	at := h.results[h.step]
	if at < 0 {
		return nil
	}
	for _, r := range h.reports {
		t := &h.v.p.Tasks[h.ids[r]]
		if h.clocks[at][t.Lane] < r {
			return fmt.Errorf("task %s: the host looks at what it brings, and nothing says that it is done", TaskName(h.v.p, t))
		}
	}
	return nil
}

// task checks one task's waits and accesses.
func (h *hbWalk) task(t *plan.Task) error {
	v, p := h.v, h.v.p
	pos := int32(len(h.clocks))
	vc := h.lanes[t.Lane]
	for _, w := range t.Waits {
		if w.Event < 0 || w.Event >= p.Events || w.Back < 0 || w.Back > 1 {
			return fmt.Errorf("task %s: it waits for event %d of %d steps back, which does not exist", TaskName(p, t), w.Event, w.Back)
		}
		if w.Back == 1 && t.List != plan.Steady && t.List != plan.Drain {
			return fmt.Errorf("task %s: it waits for a step before, and there is none", TaskName(p, t))
		}
		switch r := h.events[(h.step+w.Back)&1][w.Event]; {
		case r.pos >= 0 && r.step == h.step-w.Back:
			vc.join(&h.clocks[r.pos])
		case w.Back == 0:
			return fmt.Errorf("task %s: it waits for event %d, which no earlier task of the list records", TaskName(p, t), w.Event)
		}
	}
	if err := h.apart(t, pos); err != nil {
		return err
	}
	cp := copyOf(t, h.step)
	for k, ids := range [2][]plan.BufID{t.Reads, t.Writes} {
		for _, id := range ids {
			if v.seg.solo[id] {
				continue
			}
			for s := v.seg.lo[cp][id]; s < v.seg.hi[cp][id]; s++ {
				need := h.mem[s].writer
				if k == 1 {
					need.join(&h.mem[s].readers)
				}
				for l := range need {
					if device.Lane(l) != t.Lane && need[l] > vc[l] {
						return fmt.Errorf("task %s: it touches %s, and nothing orders it after task %s of the %s lane",
							TaskName(p, t), p.Buffers[id].Name, TaskName(p, &p.Tasks[h.ids[need[l]]]), device.Lane(l))
					}
				}
			}
		}
	}
	vc[t.Lane] = pos
	h.lanes[t.Lane] = vc
	h.clocks = append(h.clocks, vc)
	h.ids = append(h.ids, int32(t.ID))
	if t.Kind == plan.Report {
		h.reports = append(h.reports, pos)
	}
	if t.Event >= 0 {
		h.events[h.step&1][t.Event] = record{pos, h.step}
		if t.Event == p.ResultsEvent {
			h.results[h.step] = pos
		}
	}
	for _, id := range t.Reads {
		if !v.seg.solo[id] {
			for s := v.seg.lo[cp][id]; s < v.seg.hi[cp][id]; s++ {
				h.mem[s].readers[t.Lane] = pos
			}
		}
	}
	for _, id := range t.Writes {
		if !v.seg.solo[id] {
			for s := v.seg.lo[cp][id]; s < v.seg.hi[cp][id]; s++ {
				a := access{never, never}
				a.writer[t.Lane] = pos
				h.mem[s] = a
			}
		}
	}
	return nil
}

// apart shows that the buffers of one task do not overlap, and that generation keeps to its
// part of each arena.
func (h *hbWalk) apart(t *plan.Task, pos int32) error {
	v, p := h.v, h.v.p
	cp := copyOf(t, h.step)
	for _, ids := range [2][]plan.BufID{t.Reads, t.Writes} {
		for _, id := range ids {
			for s := v.seg.lo[cp][id]; s < v.seg.hi[cp][id]; s++ {
				if v.stamp[s] == pos && v.owner[s] != id {
					return fmt.Errorf("task %s: %s and %s overlap", TaskName(p, t), p.Buffers[id].Name, p.Buffers[v.owner[s]].Name)
				}
				v.stamp[s], v.owner[s] = pos, id
			}
			b := &p.Buffers[id]
			if t.List >= plan.Prefill && b.Off+b.Bytes > p.Arenas[b.Arena].GenBytes {
				return fmt.Errorf("task %s: %s is outside the part of arena %s that generation has", TaskName(p, t), b.Name, p.Arenas[b.Arena].Name)
			}
		}
	}
	return nil
}
