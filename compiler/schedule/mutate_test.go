package schedule

import (
	"slices"
	"testing"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// clone copies a plan as deeply as mutations reach.
func clone(p *plan.Plan) *plan.Plan {
	q := *p
	q.Buffers, q.Arenas = slices.Clone(p.Buffers), slices.Clone(p.Arenas)
	q.Tasks = slices.Clone(p.Tasks)
	for i := range q.Tasks {
		t := &q.Tasks[i]
		t.Reads, t.Writes, t.Waits = slices.Clone(t.Reads), slices.Clone(t.Writes), slices.Clone(t.Waits)
		b := &t.Bind
		for _, ids := range []*[]plan.BufID{&b.In, &b.Out, &b.DIn, &b.DOut, &b.Weights, &b.Grads} {
			*ids = slices.Clone(*ids)
		}
		b.Add = slices.Clone(b.Add)
	}
	return &q
}

// closure returns happens-before over the training walks: every task's clock.
func closure(t *testing.T, p *plan.Plan) []clock {
	t.Helper()
	v, err := newVerifier(p)
	if err != nil {
		t.Fatal(err)
	}
	var all []clock
	for _, lists := range [][]plan.List{
		{plan.First, plan.Steady, plan.Steady, plan.Steady, plan.Drain}, {plan.First, plan.Drain}, {plan.Eval}, {plan.Prefill}, {plan.Decode},
	} {
		if err := v.walk(lists); err != nil {
			t.Fatal(err)
		}
		all = append(all, v.clocks...)
	}
	return all
}

// Deleting any one wait is caught, unless everything is ordered as before without it.
func TestDeletedWaitIsCaught(t *testing.T) {
	for name, c := range cases() {
		t.Run(name, func(t *testing.T) {
			good := mustBuild(t, c.toy, c.o)
			before := closure(t, good)
			waits, redundant := 0, 0
			p := clone(good)
			for i := range p.Tasks {
				all := p.Tasks[i].Waits
				for k := range all {
					waits++
					p.Tasks[i].Waits = slices.Delete(slices.Clone(all), k, k+1)
					if Verify(p) == nil {
						redundant++
						if !slices.Equal(before, closure(t, p)) {
							t.Errorf("task %s: nobody misses its wait for event %d", TaskName(p, &p.Tasks[i]), all[k].Event)
						}
					}
				}
				p.Tasks[i].Waits = all
			}
			if waits == 0 || redundant > 0 {
				t.Errorf("%d waits, %d of them redundant", waits, redundant)
			}
		})
	}
}

// mutation is a fault that the verifier must find. apply returns false where it does not apply.
type mutation struct {
	name  string
	apply func(p *plan.Plan, t *plan.Task) bool
}

// drop takes a task out of its list by making it do nothing.
func drop(p *plan.Plan, t *plan.Task) {
	move(p, t.ID, -1)
}

// move takes the task at i out and puts it back before the task now at k (k < 0: nowhere), renumbering.
func move(p *plan.Plan, i, k int) {
	t := p.Tasks[i]
	l := t.List
	p.Tasks = slices.Delete(p.Tasks, i, i+1)
	n := 0
	if k >= 0 {
		p.Tasks = slices.Insert(p.Tasks, k, t)
	} else {
		n = 1
	}
	for j := range p.Lists {
		if plan.List(j) > l {
			p.Lists[j].Start -= n
		}
		if plan.List(j) >= l {
			p.Lists[j].End -= n
		}
	}
	for j := range p.Tasks {
		p.Tasks[j].ID = j
	}
}

// twice puts a copy of a task behind it.
func twice(p *plan.Plan, t *plan.Task) {
	c := *t
	c.Event = -1
	p.Tasks = slices.Insert(p.Tasks, t.ID+1, c)
	for j := range p.Lists {
		if plan.List(j) > c.List {
			p.Lists[j].Start++
		}
		if plan.List(j) >= c.List {
			p.Lists[j].End++
		}
	}
	for j := range p.Tasks {
		p.Tasks[j].ID = j
	}
}

// swapBuffer replaces a buffer everywhere in a task.
func swapBuffer(t *plan.Task, from, to plan.BufID) {
	b := &t.Bind
	for _, ids := range [][]plan.BufID{t.Reads, t.Writes, b.In, b.Out, b.DIn, b.DOut, b.Weights, b.Grads} {
		for i := range ids {
			if ids[i] == from {
				ids[i] = to
			}
		}
	}
	for _, id := range []*plan.BufID{&t.Src, &t.Dst, &b.Saved} {
		if *id == from {
			*id = to
		}
	}
}

// otherOf finds another buffer that some task binds in the same role.
func otherOf(p *plan.Plan, id plan.BufID, role func(*plan.Task) []plan.BufID) plan.BufID {
	for i := range p.Tasks {
		for _, o := range role(&p.Tasks[i]) {
			if o != id && o != plan.NoBuf && p.Buffers[o].Bytes >= p.Buffers[id].Bytes {
				return o
			}
		}
	}
	return plan.NoBuf
}

func swapRole(role func(*plan.Task) []plan.BufID) func(*plan.Plan, *plan.Task) bool {
	return func(p *plan.Plan, t *plan.Task) bool {
		ids := role(t)
		if len(ids) == 0 || ids[0] == plan.NoBuf {
			return false
		}
		o := otherOf(p, ids[0], role)
		if o == plan.NoBuf || slices.Contains(t.Reads, o) || slices.Contains(t.Writes, o) {
			return false
		}
		swapBuffer(t, ids[0], o)
		return true
	}
}

func ofKind(k plan.Kind, f func(*plan.Plan, *plan.Task)) func(*plan.Plan, *plan.Task) bool {
	return func(p *plan.Plan, t *plan.Task) bool {
		if t.Kind != k {
			return false
		}
		f(p, t)
		return true
	}
}

// waitLater is the one fault that new waits mend.
const waitLater = "a wait for an event that comes later"

var mutations = []mutation{
	{"drop a feed", ofKind(plan.Feed, drop)},
	{"drop a prefetch", func(p *plan.Plan, t *plan.Task) bool {
		// What never changes may still lie in its slot from the step before.
		if t.Kind != plan.Prefetch || p.Slabs[t.Slab].Frozen && t.List == plan.Steady {
			return false
		}
		drop(p, t)
		return true
	}},
	{"drop a compute task", func(p *plan.Plan, t *plan.Task) bool {
		// Without its only micro-batch a unit is one that never learns.
		if t.Kind != plan.Compute || t.Func == plan.Infer && t.Bind.State == plan.NoBuf {
			return false
		}
		drop(p, t)
		return true
	}},
	{"copy the scalars before the norm", func(p *plan.Plan, t *plan.Task) bool {
		if t.Kind != plan.Report || t.Slab < 0 {
			return false
		}
		for i := t.ID - 1; i >= p.Lists[t.List].Start; i-- {
			if n := &p.Tasks[i]; n.Kind == plan.Norm && n.Slab == t.Slab {
				move(p, t.ID, i)
				return true
			}
		}
		return false
	}},
	{"update on the wrong half", func(p *plan.Plan, t *plan.Task) bool {
		if t.Kind != plan.Update || p.Bf16() {
			return false
		}
		t.Bind.Lo = t.Bind.Moments[0]
		return true
	}},
	{"sums of squares that nothing makes", func(p *plan.Plan, t *plan.Task) bool {
		if t.Bind.Squares == plan.NoBuf || t.Kind == plan.Norm {
			return false
		}
		t.Bind.Squares, t.Bind.Whole = plan.NoBuf, nil
		return true
	}},
	{"sums of squares before the last micro-batch", func(p *plan.Plan, t *plan.Task) bool {
		if t.Kind != plan.Compute || t.Bind.Squares == plan.NoBuf {
			return false
		}
		for j := t.ID - 1; j >= p.Lists[t.List].Start; j-- {
			o := &p.Tasks[j]
			if o.Kind == plan.Compute && o.Unit == t.Unit && o.Func == t.Func && o.Micro == t.Micro-1 {
				o.Bind.Whole, o.Bind.Squares = t.Bind.Whole, t.Bind.Squares
				o.Writes = append(slices.Clone(o.Writes), t.Bind.Squares)
				t.Bind.Whole, t.Bind.Squares = nil, plan.NoBuf
				return true
			}
		}
		return false
	}},
	{"drop a norm", ofKind(plan.Norm, drop)},
	{"drop an offload", ofKind(plan.Offload, drop)},
	{"drop an accumulate", ofKind(plan.Accumulate, drop)},
	{"drop a reduce", ofKind(plan.Reduce, drop)},
	{"drop an update", ofKind(plan.Update, drop)},
	{"made again into another place", func(p *plan.Plan, t *plan.Task) bool {
		if t.Func != plan.Again {
			return false
		}
		for i := range p.Tasks {
			if q := &p.Tasks[i]; q.Func == plan.Forward && q.Unit == t.Unit && q.Micro == t.Micro {
				swapBuffer(t, t.Bind.Out[0], q.Bind.Out[0])
				return true
			}
		}
		return false
	}},
	{"made again too late", func(p *plan.Plan, t *plan.Task) bool {
		if t.Func != plan.Again {
			return false
		}
		move(p, t.ID, t.ID+1)
		return true
	}},
	{"drop a save", ofKind(plan.Save, drop)},
	{"drop a restore", ofKind(plan.Restore, drop)},
	{"a restore of another micro-batch", func(p *plan.Plan, t *plan.Task) bool {
		return t.Kind == plan.Restore && swapRole(func(t *plan.Task) []plan.BufID {
			if t.Kind != plan.Restore {
				return nil
			}
			return []plan.BufID{t.Src}
		})(p, t)
	}},
	{"a save to another's place", func(p *plan.Plan, t *plan.Task) bool {
		return t.Kind == plan.Save && swapRole(func(t *plan.Task) []plan.BufID {
			if t.Kind != plan.Save {
				return nil
			}
			return []plan.BufID{t.Dst}
		})(p, t)
	}},
	{"a restore before its save", func(p *plan.Plan, t *plan.Task) bool {
		if t.Kind != plan.Restore {
			return false
		}
		for i := t.ID - 1; i >= p.Lists[t.List].Start; i-- {
			if q := &p.Tasks[i]; q.Kind == plan.Save && q.Dst == t.Src {
				move(p, t.ID, i)
				return true
			}
		}
		return false
	}},
	{"half a restore", func(p *plan.Plan, t *plan.Task) bool {
		if t.Kind != plan.Restore {
			return false
		}
		t.Bytes /= 2
		return true
	}},
	{"drop a rounding", ofKind(plan.Round, drop)},
	{"send what is not rounded", func(p *plan.Plan, t *plan.Task) bool {
		if t.Kind != plan.Round {
			return false
		}
		for i := range p.Tasks {
			if o := &p.Tasks[i]; o.Slab == t.Slab && (o.Kind == plan.Norm || o.Kind == plan.Offload && o.Src == t.Dst) {
				swapBuffer(o, t.Dst, t.Src)
			}
		}
		return true
	}},
	{"round half", func(p *plan.Plan, t *plan.Task) bool {
		if t.Kind != plan.Round {
			return false
		}
		t.Bytes /= 2
		return true
	}},
	{"round before the last contribution", func(p *plan.Plan, t *plan.Task) bool {
		if t.Kind != plan.Round {
			return false
		}
		for j := t.ID - 1; j >= 0; j-- {
			if q := &p.Tasks[j]; q.Kind == plan.Compute && slices.Contains(q.Bind.Grads, t.Src) {
				move(p, t.ID, j)
				return true
			}
		}
		return false
	}},
	{"drop the factor for the device", func(p *plan.Plan, t *plan.Task) bool {
		if t.Kind != plan.Feed || t.Src != p.Results {
			return false
		}
		drop(p, t)
		return true
	}},
	{"norms reported to other places", func(p *plan.Plan, t *plan.Task) bool {
		if t.Kind != plan.Report || p.DeviceNorms == plan.NoBuf || t.Src != p.DeviceNorms {
			return false
		}
		t.DstOff += 8
		return true
	}},
	{"norms of the device stay there", func(p *plan.Plan, t *plan.Task) bool {
		if t.Kind != plan.Report || p.DeviceNorms == plan.NoBuf || t.Src != p.DeviceNorms {
			return false
		}
		drop(p, t)
		return true
	}},
	{"drop a report of a step", func(p *plan.Plan, t *plan.Task) bool {
		if t.Kind != plan.Report || t.List > plan.Eval {
			return false
		}
		drop(p, t)
		return true
	}},
	{"duplicate a compute task", func(p *plan.Plan, t *plan.Task) bool {
		if t.Kind != plan.Compute || t.Func == plan.Infer {
			return false
		}
		twice(p, t)
		return true
	}},
	{"duplicate a norm", ofKind(plan.Norm, twice)},
	{"duplicate an offload", ofKind(plan.Offload, twice)},
	{"duplicate an accumulate", ofKind(plan.Accumulate, twice)},
	{"duplicate an update", ofKind(plan.Update, twice)},
	{"swap the slot of a prefetch", func(p *plan.Plan, t *plan.Task) bool {
		return t.Kind == plan.Prefetch && swapRole(func(t *plan.Task) []plan.BufID {
			if t.Kind != plan.Prefetch {
				return nil
			}
			return []plan.BufID{t.Dst}
		})(p, t)
	}},
	{"swap the slot a task computes with", swapRole(func(t *plan.Task) []plan.BufID {
		if t.Kind != plan.Compute {
			return nil
		}
		return t.Bind.Weights
	})},
	{"swap the slot of a gradient", swapRole(func(t *plan.Task) []plan.BufID {
		if t.Kind != plan.Compute {
			return nil
		}
		return t.Bind.Grads
	})},
	{"swap an input", swapRole(func(t *plan.Task) []plan.BufID { return t.Bind.In })},
	{"swap the gradient of an output", swapRole(func(t *plan.Task) []plan.BufID { return t.Bind.DOut })},
	{"swap what was saved", func(p *plan.Plan, t *plan.Task) bool {
		return t.Func == plan.Backward && swapRole(func(t *plan.Task) []plan.BufID { return []plan.BufID{t.Bind.Saved} })(p, t)
	}},
	{"set a gradient that is added to", func(p *plan.Plan, t *plan.Task) bool {
		if t.Kind != plan.Compute || !slices.Contains(t.Bind.Add, true) {
			return false
		}
		for i := range t.Bind.Add {
			t.Bind.Add[i] = false
		}
		return true
	}},
	{"add to a gradient that is set", func(p *plan.Plan, t *plan.Task) bool {
		i := slices.Index(t.Bind.Add, false)
		if t.Kind != plan.Compute || i < 0 {
			return false
		}
		t.Bind.Add[i] = true
		t.Reads = append(t.Reads, t.Bind.Grads[i])
		return true
	}},
	{"another step's copies", func(p *plan.Plan, t *plan.Task) bool {
		if t.Kind != plan.Update {
			return false
		}
		t.Back = 1 - t.Back
		return t.List != plan.First
	}},
	{"an operand that is not listed", func(p *plan.Plan, t *plan.Task) bool {
		if t.Kind == plan.Compute && len(t.Bind.Weights) > 0 && t.Bind.Weights[0] != plan.NoBuf {
			t.Reads = slices.DeleteFunc(t.Reads, func(id plan.BufID) bool { return id == t.Bind.Weights[0] })
			return true
		}
		return false
	}},
	{"weights that are not bound", func(p *plan.Plan, t *plan.Task) bool {
		if t.Kind != plan.Compute || len(t.Bind.Weights) == 0 || t.Bind.Weights[0] == plan.NoBuf {
			return false
		}
		t.Bind.Weights[0] = plan.NoBuf
		return true
	}},
	{"an update moved behind its prefetch", func(p *plan.Plan, t *plan.Task) bool {
		if t.Kind != plan.Update || t.Back == 0 || t.List != plan.Steady {
			return false
		}
		for j := t.ID + 1; j < p.Lists[t.List].End; j++ {
			if q := &p.Tasks[j]; q.Kind == plan.Prefetch && q.Slab == t.Slab {
				move(p, t.ID, j)
				return true
			}
		}
		return false
	}},
	{"an update moved to the end", func(p *plan.Plan, t *plan.Task) bool {
		if t.Kind != plan.Update || t.List != plan.Steady || t.Back == 0 {
			return false
		}
		move(p, t.ID, p.Lists[t.List].End-1)
		return true
	}},
	{"a norm moved before the last contribution", func(p *plan.Plan, t *plan.Task) bool {
		if t.Kind != plan.Norm || t.Lane != device.Compute {
			return false
		}
		for j := t.ID - 1; j >= 0; j-- {
			o := &p.Tasks[j]
			made := o.Slab == t.Slab && o.Kind == plan.Round
			for i, whole := range o.Bind.Whole {
				made = made || whole && p.Units[o.Unit].Slabs[i] == t.Slab
			}
			if made {
				move(p, t.ID, j)
				return true
			}
		}
		return false
	}},
	{"a buffer moved onto another", func(p *plan.Plan, t *plan.Task) bool {
		if t.Kind != plan.Compute || len(t.Bind.Out) == 0 || t.List == plan.Prefill || t.List == plan.Decode {
			return false
		}
		for i := range t.Bind.In {
			in, out := &p.Buffers[t.Bind.In[i]], &p.Buffers[t.Bind.Out[0]]
			if in.Arena == out.Arena && in.Bytes > 0 && out.Bytes > 0 {
				out.Off = in.Off
				return true
			}
		}
		return false
	}},
	{waitLater, func(p *plan.Plan, t *plan.Task) bool {
		for j := t.ID; j < p.Lists[t.List].End; j++ {
			if e := p.Tasks[j].Event; e >= 0 {
				t.Waits = append(t.Waits, plan.Wait{Event: e})
				return true
			}
		}
		return false
	}},
	{"an arena that is too small", func(p *plan.Plan, t *plan.Task) bool {
		if t.ID >= len(p.Arenas) {
			return false
		}
		p.Arenas[t.ID].Bytes--
		// The last bytes may be padding.
		last := p.Arenas[t.ID].Bytes
		for _, b := range p.Buffers[1:] {
			n := b.Bytes
			if b.Parity {
				n *= 2
			}
			if b.Arena == t.ID && b.Off+n > last {
				return true
			}
		}
		return false
	}},
}

// reordered derives the waits of a mutated plan anew, so that only the contents can tell. It
// returns false for faults that are no longer there then, or that leave no results to order by.
func reordered(p *plan.Plan) bool {
	results := [plan.NumLists]int{-1, -1, -1, -1, -1, -1}
	for i := range p.Tasks {
		if t := &p.Tasks[i]; t.Event == p.ResultsEvent {
			results[t.List] = i
		}
	}
	if results[plan.First] < 0 || results[plan.Steady] < 0 || results[plan.Eval] < 0 {
		return false
	}
	for i := range p.Tasks {
		p.Tasks[i].Waits, p.Tasks[i].Event = nil, -1
	}
	p.Events = 0
	return order(p, results, new(Memory)) == nil
}

// Every mutation is caught, at whichever task; a fault in what tasks do also when the waits
// are derived anew to fit it.
func TestMutationsAreCaught(t *testing.T) {
	applied := make([]int, len(mutations))
	for name, c := range cases() {
		t.Run(name, func(t *testing.T) {
			good := mustBuild(t, c.toy, c.o)
			for k, m := range mutations {
				for i := range good.Tasks {
					// A few tasks of each kind, to be quick.
					x, share := &good.Tasks[i], 2
					switch {
					case x.Kind == plan.Compute:
						share = 7
					case x.Kind == plan.Feed && x.Src == good.Results:
						share = 1
					}
					if i%share != k%share {
						continue
					}
					p := clone(good) // mutations may change it even where they do not apply
					what := TaskName(p, &p.Tasks[i])
					if !m.apply(p, &p.Tasks[i]) {
						continue
					}
					applied[k]++
					if Verify(p) == nil {
						t.Errorf("%s: %s: not caught", m.name, what)
					}
					if m.name != waitLater && reordered(p) && Verify(p) == nil {
						t.Errorf("%s: %s: not caught with waits made to fit", m.name, what)
					}
				}
			}
		})
	}
	for k, m := range mutations {
		if applied[k] == 0 {
			t.Errorf("mutation %q applied nowhere", m.name)
		}
	}
}
