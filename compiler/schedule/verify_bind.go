package schedule

import (
	"slices"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// bindCheck checks one task by itself; wrong is the first thing found.
type bindCheck struct {
	p     *plan.Plan
	bound map[code]uint8 // slabs whose weights a template's function is given, as bits
	t     *plan.Task
	wrong string
}

// code is a function of a template, for units of so many slabs.
type code struct {
	template, slabs int
	fn              plan.Func
}

func (c *bindCheck) fail(s string) {
	if c.wrong == "" {
		c.wrong = s
	}
}

// place checks that the task is the i-th, in its list, and names only what exists.
func (c *bindCheck) place(i int, l plan.List) {
	p, t := c.p, c.t
	if t.ID != i || t.List != l || t.Lane >= device.NumLanes || t.Back < 0 || t.Back > 1 {
		c.fail("its number, list, lane or step is wrong")
	}
	if t.Unit >= len(p.Units) || t.Slab >= len(p.Slabs) || t.Micro >= int(p.Micros) || t.Event >= p.Events {
		c.fail("it names a unit, slab, micro-batch or event that does not exist")
	}
	if t.Back == 1 && (t.List == plan.First || t.List > plan.Drain) {
		c.fail("no step stands before this list")
	}
	for _, ids := range [2][]plan.BufID{t.Reads, t.Writes} {
		for _, id := range ids {
			if id <= 0 || int(id) >= len(p.Buffers) {
				c.fail("it names a buffer that does not exist")
			}
		}
	}
}

// listed checks that bound buffers are among those that the task says it reads or writes.
func (c *bindCheck) listed(what string, list []plan.BufID, ids ...plan.BufID) {
	for _, id := range ids {
		if id != plan.NoBuf && !slices.Contains(list, id) {
			c.fail(what + " " + c.p.Buffers[id].Name + " is bound but not listed")
			return
		}
	}
}

// operands checks that Reads and Writes hold what the task's function is given.
func (c *bindCheck) operands() {
	p, t, b := c.p, c.t, &c.t.Bind
	c.listed("source", t.Reads, t.Src)
	c.listed("target", t.Writes, t.Dst)
	switch t.Kind {
	case plan.Compute:
		c.compute()
	case plan.Norm:
		if t.Slab < 0 || b.Squares == plan.NoBuf {
			c.fail("it needs the sums of squares of one slab")
		}
		c.listed("squares", t.Reads, b.Squares)
		c.listed("norms", t.Writes, b.Norms)
		c.listed("scalars", t.Writes, b.Scalars)
	case plan.Reduce:
		c.listed("partial losses", t.Reads, b.Partials)
		c.listed("norms", t.Reads, b.Norms)
		c.listed("scalars", t.Writes, b.Scalars)
		c.listed("scalars", t.Reads, b.Scalars)
	case plan.Update:
		if t.Slab < 0 || len(b.Weights) != 1 || len(b.Grads) != 1 {
			c.fail("it needs one slab's weights and gradient")
		}
		c.listed("weights", t.Reads, b.Weights...)
		c.listed("weights", t.Writes, b.Weights...)
		c.listed("master", t.Reads, b.Lo)
		c.listed("master", t.Writes, b.Lo)
		if p.Bf16() != (b.Lo != plan.NoBuf) {
			c.fail("it binds half a master, or one that is not split")
		}
		c.listed("moments", t.Writes, b.Moments[:]...)
		c.listed("gradient", t.Reads, b.Grads...)
		c.listed("scalars", t.Reads, b.Scalars)
	case plan.Save, plan.Restore:
		c.move(t.Src, t.Dst)
	case plan.Prefetch, plan.Offload, plan.Accumulate, plan.Round:
		size := int64(f32)
		switch {
		case t.Kind == plan.Prefetch:
			size = p.WeightSize()
		case t.Slab >= 0 && p.Slabs[t.Slab].HalfGrad:
			size = bf16
		}
		if t.Slab < 0 || t.Bytes != p.Slabs[t.Slab].Elems*size || t.SrcOff != 0 || t.DstOff != 0 {
			c.fail("it must move one whole slab")
		}
		c.listed("squares", t.Writes, b.Squares)
	}
}

// move checks a copy of a whole buffer between device and host.
func (c *bindCheck) move(src, dst plan.BufID) {
	p, t := c.p, c.t
	from, to, lane := device.DeviceMemory, device.HostMemory, device.D2H
	if t.Kind == plan.Restore {
		from, to, lane = to, from, device.H2D
	}
	n := p.Buffers[src].Bytes
	if t.Bytes != n || p.Buffers[dst].Bytes != n || t.SrcOff != 0 || t.DstOff != 0 {
		c.fail("it must move one whole buffer")
	}
	if p.Arenas[p.Buffers[src].Arena].Memory != from || p.Arenas[p.Buffers[dst].Arena].Memory != to || t.Lane != lane {
		c.fail("it goes the wrong way")
	}
}

// compute checks the operands of a template's function.
func (c *bindCheck) compute() {
	t, b := c.t, &c.t.Bind
	if t.Unit < 0 {
		c.fail("it names no unit")
		return
	}
	unit := &c.p.Units[t.Unit]
	if t.Func == plan.Advance {
		if b.Router == plan.NoBuf || b.Scalars == plan.NoBuf {
			c.fail("it moves no router, or does not know the step's outcome")
		}
		c.listed("router", t.Reads, b.Router)
		c.listed("router", t.Writes, b.Router)
		c.listed("scalars", t.Reads, b.Scalars)
		return
	}
	if len(b.In) != len(unit.In) || len(b.Weights) != len(unit.Slabs) {
		c.fail("it does not bind what its unit takes")
	}
	var given uint8
	for i, w := range b.Weights {
		if w != plan.NoBuf {
			given |= 1 << i
		}
	}
	of := code{t.Template, len(unit.Slabs), t.Func}
	if before, ok := c.bound[of]; ok && before != given {
		c.fail("it binds other slabs' weights than the same function elsewhere")
	}
	c.bound[of] = given
	if t.Func != plan.Backward && t.Func != plan.Recompute && given != 1<<len(unit.Slabs)-1 {
		c.fail("it binds no weights")
	}
	if len(b.DOut) > len(unit.Out) || (t.Func == plan.Forward || t.Func == plan.Again) && len(b.Out) != len(unit.Out) {
		c.fail("it does not bind what its unit gives")
	}
	if t.Func == plan.Backward || t.Func == plan.Loss {
		if len(b.DIn) != len(b.In) || len(b.Grads) != len(b.Weights) || len(b.Add) != len(b.Grads) {
			c.fail("it does not bind the gradients its unit makes")
			return
		}
		for i, g := range b.Grads {
			if frozen := c.p.Slabs[unit.Slabs[i]].Frozen; frozen != (g == plan.NoBuf) || frozen && b.Add[i] {
				c.fail("it binds a gradient to what is frozen, or none to what learns")
			}
			c.listed("gradient", t.Writes, g)
			if b.Add[i] {
				c.listed("gradient", t.Reads, g)
			}
		}
	}
	c.listed("input", t.Reads, b.In...)
	c.listed("output", t.Writes, b.Out...)
	c.listed("gradient", t.Writes, b.DIn...)
	c.listed("gradient", t.Reads, b.DOut...)
	c.listed("weights", t.Reads, b.Weights...)
	c.listed("work memory", t.Writes, b.Work)
	c.listed("cache", t.Writes, b.State)
	c.listed("router", t.Reads, b.Router)
	c.listed("router", t.Writes, b.Router)
	c.listed("targets", t.Reads, b.Targets)
	c.listed("scalars", t.Reads, b.Scalars)
	c.listed("partial loss", t.Writes, b.Partials)
	c.listed("squares", t.Writes, b.Squares)
	if (b.Squares == plan.NoBuf) != (b.Whole == nil) || b.Whole != nil && len(b.Whole) != len(b.Grads) {
		c.fail("it makes sums of squares of no gradient")
	}
	if t.Func == plan.Backward {
		c.listed("saved activations", t.Reads, b.Saved)
	} else {
		c.listed("saved activations", t.Writes, b.Saved)
	}
}
