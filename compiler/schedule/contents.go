package schedule

import (
	"fmt"
	"slices"

	"github.com/megatrain/mtc/runtime/plan"
)

// contents follows what every buffer holds through a walk in submission order. Since all
// conflicting accesses are ordered (verify.go), any run of the lanes leaves the same.
type contents struct {
	v      *verifier
	p      *plan.Plan
	step   int
	list   plan.List
	holder []int32    // by segment: the buffer copy that wrote it last, -1
	hold   [2][]thing // by copy, buffer: what it holds
	done   [plan.NumFuncs][]int32
	// By slab or micro-batch: the step for which it was done last.
	normed, offloaded, updates []int32
	advanced, told             []int32 // by router
	seen                       []int32 // by slab: norms made in its step until its own, where each may set the skip flag
	groups                     []int32 // by slab: groups that have left in this step
	norms, devNorms            []int32 // by slab: the step of the norm in Plan.Norms, DeviceNorms
	squares, hostSquares       []int32 // by slab: the step of the sums in Plan.Squares, HostSquares
	partials, hostPartials     []int32 // by micro-batch: the step of the loss
}

// what is the kind of a thing.
type what uint8

const (
	nothing what = iota
	weights
	gradient
	value
	valueGrad
	savedActs
	tokens
	targets
	scalars
	other
)

func (w what) String() string {
	return [...]string{"nothing", "weights", "gradient", "value", "gradient of value", "saved activations", "tokens", "targets", "scalars", "data"}[w]
}

// thing is what a buffer holds. Which fields count depends on the kind.
type thing struct {
	what  what
	fn    plan.Func // saved activations: who saved them
	of    int32     // slab, value or unit
	micro int32
	step  int32 // the step it belongs to; weights: updates done
	group int32 // gradient: its group
	sums  int32 // gradient: groups added up; scalars: how far completed
	count int32 // gradients: contributions; scalars: norms that could set the skip flag
	half  bool  // gradient: rounded to bf16
}

// How far a scalars block is completed.
const (
	fed = 1 + iota
	lossKnown
	complete
)

func (x thing) String() string {
	switch x.what {
	case weights:
		return fmt.Sprintf("weights of slab %d after %d updates", x.of, x.step)
	case gradient:
		if x.half {
			return fmt.Sprintf("the rounded gradient of slab %d of step %d, with %d contributions", x.of, x.step, x.count)
		}
		return fmt.Sprintf("the gradient of slab %d of step %d, group %d, with %d contributions of %d groups", x.of, x.step, x.group, x.count, x.sums)
	case value, valueGrad, savedActs:
		return fmt.Sprintf("%s %d, micro-batch %d of step %d (%d contributions)", x.what, x.of, x.micro, x.step, x.count)
	case tokens, targets:
		return fmt.Sprintf("%s of micro-batch %d of step %d", x.what, x.micro, x.step)
	case scalars:
		return fmt.Sprintf("scalars of step %d, completed to %d", x.step, x.sums)
	}
	return x.what.String()
}

func filled(n int) []int32 {
	s := make([]int32, n)
	for i := range s {
		s[i] = -1
	}
	return s
}

// newContents returns the state before a walk: state at home, nothing else but what start-up wrote.
func newContents(v *verifier) *contents {
	p := v.p
	c := &contents{v: v, p: p, holder: filled(v.seg.n)}
	for k := range c.hold {
		c.hold[k] = make([]thing, len(p.Buffers))
	}
	for f := range c.done {
		c.done[f] = filled(len(p.Units) * int(p.Micros))
	}
	n := len(p.Slabs)
	c.normed, c.offloaded, c.updates, c.norms, c.devNorms = filled(n), filled(n), filled(n), filled(n), filled(n)
	c.squares, c.hostSquares = filled(n), filled(n)
	c.seen = make([]int32, n)
	c.groups = make([]int32, n)
	c.partials, c.hostPartials = filled(int(p.Micros)), filled(int(p.Micros))
	for i, s := range p.Slabs {
		c.fill(s.Weight, 0, thing{what: weights, of: int32(i)})
		for _, id := range []plan.BufID{s.Lo, s.M, s.V} {
			if id != plan.NoBuf {
				c.fill(id, 0, thing{what: other})
			}
		}
	}
	for _, t := range p.Tables {
		c.fill(t.Buf, 0, thing{what: other})
	}
	c.advanced, c.told = filled(len(p.Routers)), filled(len(p.Routers))
	for _, r := range p.Routers {
		c.fill(r.State, 0, thing{what: other})
	}
	c.fill(p.Positions, 0, thing{what: other})
	return c
}

// fill puts a thing into a buffer copy.
func (c *contents) fill(id plan.BufID, cp int, x thing) {
	if !c.p.Buffers[id].Parity {
		cp = 0
	}
	who := int32(id)<<1 | int32(cp)
	for s := c.v.seg.lo[cp][id]; s < c.v.seg.hi[cp][id]; s++ {
		c.holder[s] = who
	}
	c.hold[cp][id] = x
}

// read returns what a buffer copy holds, unless another buffer has overwritten some of it.
func (c *contents) read(id plan.BufID, cp int) (thing, error) {
	if !c.p.Buffers[id].Parity {
		cp = 0
	}
	who := int32(id)<<1 | int32(cp)
	for s := c.v.seg.lo[cp][id]; s < c.v.seg.hi[cp][id]; s++ {
		switch h := c.holder[s]; {
		case h < 0:
			return thing{}, fmt.Errorf("it reads %s, which nothing has written", c.p.Buffers[id].Name)
		case h != who:
			return thing{}, fmt.Errorf("it reads %s, which %s has overwritten", c.p.Buffers[id].Name, c.p.Buffers[h>>1].Name)
		}
	}
	return c.hold[cp][id], nil
}

// enter begins a list: the host writes the step's blocks.
func (c *contents) enter(step int, l plan.List) {
	c.step, c.list = step, l
	p, cp, s := c.p, step&1, int32(step)
	for i := range c.groups {
		c.groups[i] = 0
	}
	switch l {
	case plan.First, plan.Steady, plan.Eval:
		c.fill(p.HostTokens, cp, thing{what: tokens, step: s})
		c.fill(p.HostTargets, cp, thing{what: targets, step: s})
		c.fill(p.HostScalars, cp, thing{what: scalars, step: s, sums: fed})
	case plan.Prefill, plan.Decode:
		c.fill(p.HostGenTokens, 0, thing{what: tokens, step: s})
		c.fill(p.HostGenPositions, 0, thing{what: other, step: s})
		for i := p.Lists[l].Start; i < p.Lists[l].End; i++ {
			if b := p.Tasks[i].Bind.State; b != plan.NoBuf {
				c.fill(b, 0, thing{what: other})
			}
		}
	}
}

// groupOf returns the group of a micro-batch and the group's size.
func (c *contents) groupOf(m int) (group, size int32) {
	n, rest := int(c.p.Micros/c.p.Groups), int(c.p.Micros%c.p.Groups)
	if big := rest * (n + 1); m < big {
		return int32(m / (n + 1)), int32(n + 1)
	} else {
		return int32(rest + (m-big)/n), int32(n)
	}
}

// task checks what a task reads and sets what it leaves.
func (c *contents) task(t *plan.Task) error {
	cp := copyOf(t, c.step)
	for _, id := range t.Reads {
		if _, err := c.read(id, cp); err != nil {
			return err
		}
	}
	switch t.Kind {
	case plan.Feed:
		return c.feed(t, cp)
	case plan.Prefetch:
		return c.prefetch(t, cp)
	case plan.Compute:
		return c.compute(t, cp)
	case plan.Norm:
		return c.norm(t, cp)
	case plan.Offload:
		return c.offload(t, cp)
	case plan.Accumulate:
		return c.accumulate(t, cp)
	case plan.Reduce:
		return c.reduce(t, cp)
	case plan.Report:
		return c.report(t, cp)
	case plan.Update:
		return c.update(t, cp)
	case plan.Round:
		return c.round(t, cp)
	case plan.Save, plan.Restore:
		return c.carry(t, cp)
	}
	return fmt.Errorf("there is no rule for tasks of kind %s", t.Kind)
}

// get reads a buffer and demands a kind.
func (c *contents) get(id plan.BufID, cp int, w what) (thing, error) {
	x, err := c.read(id, cp)
	if err == nil && x.what != w {
		err = fmt.Errorf("%s holds %s where %s belong", c.p.Buffers[id].Name, x, w)
	}
	return x, err
}

// leave shows at the end of a list that it did everything once.
func (c *contents) leave() error {
	p := c.p
	train := c.list == plan.First || c.list == plan.Steady
	if train || c.list == plan.Eval {
		level := int32(complete)
		if !train {
			level = lossKnown
		}
		if err := c.scalarsAt(p.Results, c.step&1, int32(c.step), level); err != nil {
			return err
		}
	}
	for u, unit := range p.Units {
		f := c.v.units[u]
		if train && !f.loss && !f.backward && slices.ContainsFunc(unit.Slabs, func(s int) bool { return !p.Slabs[s].Frozen }) {
			return fmt.Errorf("unit %s has weights and no backward", unit.Name)
		}
		for _, want := range []struct {
			fn plan.Func
			on bool
		}{
			{plan.Forward, !f.loss && (train || c.list == plan.Eval)},
			{plan.Backward, f.backward && train},
			{plan.Recompute, f.recompute && train},
			{plan.Again, f.again && train},
			{plan.Loss, f.loss && train},
			{plan.EvalLoss, f.loss && c.list == plan.Eval},
		} {
			for m := range int(p.Micros) {
				if want.on && c.done[want.fn][u*int(p.Micros)+m] != int32(c.step) {
					return fmt.Errorf("%s of unit %s, micro-batch %d is missing", want.fn, unit.Name, m)
				}
			}
		}
	}
	if !train {
		return nil
	}
	for i, r := range p.Routers {
		if c.advanced[i] != int32(c.step) || c.told[i] != int32(c.step) {
			return fmt.Errorf("the router of %s does not move, or does not report", r.Name)
		}
	}
	for s := range p.Trained() {
		if c.normed[s] != int32(c.step) {
			return fmt.Errorf("the norm of slab %s is missing", p.Slabs[s].Name)
		}
		switch {
		case p.Slabs[s].Resident || p.Clip && c.atHome(s): // it leaves in the next list, before the update that needs it
		case c.atHome(s):
			if c.offloaded[s] != int32(c.step) {
				return fmt.Errorf("the gradient of slab %s does not leave", p.Slabs[s].Name)
			}
		case c.groups[s] != int32(p.Groups):
			return fmt.Errorf("the gradient of slab %s leaves %d times, not %d", p.Slabs[s].Name, c.groups[s], p.Groups)
		}
	}
	return nil
}

// finish shows that every slab has seen every step's update.
func (c *contents) finish(steps int) error {
	for s := range c.p.Trained() {
		if c.updates[s] != int32(steps-1) {
			return fmt.Errorf("slab %s: after %d steps and a drain %d updates are done", c.p.Slabs[s].Name, steps, c.updates[s]+1)
		}
	}
	return nil
}
