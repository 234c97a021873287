package schedule

import (
	"fmt"
	"slices"

	"github.com/megatrain/mtc/runtime/plan"
)

// compute checks a template function's task: every operand is the one that its unit, its
// micro-batch and its step call for.
func (c *contents) compute(t *plan.Task, cp int) error {
	unit := &c.p.Units[t.Unit]
	if t.Func == plan.Advance {
		return c.advance(t, cp)
	}
	if err := c.once(t); err != nil {
		return err
	}
	if err := c.routed(t, cp); err != nil {
		return err
	}
	for i, s := range unit.Slabs {
		if t.Bind.Weights[i] == plan.NoBuf {
			continue // bound nowhere for this function (bindCheck), which reads none
		}
		x, err := c.get(t.Bind.Weights[i], cp, weights)
		if err != nil {
			return err
		}
		if v := c.version(s); int(x.of) != s || x.step != v {
			return fmt.Errorf("%s holds %s; wanted slab %d after %d updates", c.p.Buffers[t.Bind.Weights[i]].Name, x, s, v)
		}
	}
	for i, v := range unit.In {
		if err := c.input(t, cp, t.Bind.In[i], v); err != nil {
			return err
		}
	}
	micro, step := int32(t.Micro), int32(c.step)
	if t.Func == plan.Loss || t.Func == plan.EvalLoss {
		x, err := c.get(t.Bind.Targets, cp, targets)
		if err != nil {
			return err
		}
		if x.micro != micro || x.step != step {
			return fmt.Errorf("it reads %s", x)
		}
		if err := c.scalarsAt(t.Bind.Scalars, cp, step, fed); err != nil {
			return err
		}
	}
	if t.Func == plan.Backward || t.Func == plan.Loss {
		if err := c.backward(t, cp); err != nil {
			return err
		}
	}
	c.leaves(t, cp)
	return nil
}

// once shows that no function runs twice for a unit and micro-batch of a step.
func (c *contents) once(t *plan.Task) error {
	if t.Func == plan.Infer {
		return nil
	}
	if t.Micro < 0 {
		return fmt.Errorf("it names no micro-batch")
	}
	d := &c.done[t.Func][t.Unit*int(c.p.Micros)+t.Micro]
	if *d == int32(c.step) {
		return fmt.Errorf("it runs twice in the step")
	}
	*d = int32(c.step)
	return nil
}

// input checks a value that a unit takes.
func (c *contents) input(t *plan.Task, cp int, id plan.BufID, v int) error {
	p := c.p
	if !c.v.made[v] {
		fed := []plan.BufID{p.Positions, p.Tokens + plan.BufID(t.Micro)}
		if t.Func == plan.Infer {
			fed = []plan.BufID{p.GenPositions, p.GenTokens}
		}
		if !slices.Contains(fed, id) {
			return fmt.Errorf("%s is not an input of this micro-batch", p.Buffers[id].Name)
		}
		x, err := c.read(id, cp)
		if err == nil && x.what == tokens && (x.step != int32(c.step) || t.Func != plan.Infer && int(x.micro) != t.Micro) {
			err = fmt.Errorf("it reads %s", x)
		}
		return err
	}
	x, err := c.get(id, cp, value)
	if err != nil {
		return err
	}
	if int(x.of) != v || int(x.micro) != t.Micro || x.step != int32(c.step) {
		return fmt.Errorf("%s holds %s; wanted value %d, micro-batch %d of step %d", p.Buffers[id].Name, x, v, t.Micro, c.step)
	}
	return nil
}

// backward checks and counts gradients.
func (c *contents) backward(t *plan.Task, cp int) error {
	unit, micro, step := &c.p.Units[t.Unit], int32(t.Micro), int32(c.step)
	if t.Func == plan.Backward && t.Bind.Saved != plan.NoBuf {
		x, err := c.get(t.Bind.Saved, cp, savedActs)
		if err != nil {
			return err
		}
		by := plan.Forward
		if c.v.units[t.Unit].recompute {
			by = plan.Recompute
		}
		if c.v.units[t.Unit].again {
			by = plan.Again
		}
		if int(x.of) != t.Unit || x.micro != micro || x.step != step || x.fn != by {
			return fmt.Errorf("%s holds %s by %s; wanted unit %s, micro-batch %d, by %s",
				c.p.Buffers[t.Bind.Saved].Name, x, x.fn, unit.Name, micro, by)
		}
	}
	for i, d := range t.Bind.DOut {
		if d == plan.NoBuf {
			continue
		}
		x, err := c.get(d, cp, valueGrad)
		if err != nil {
			return err
		}
		v := unit.Out[i]
		if int(x.of) != v || x.micro != micro || x.step != step || x.count != c.v.takers[v] {
			return fmt.Errorf("%s holds %s; wanted value %d, micro-batch %d of step %d and %d contributions",
				c.p.Buffers[d].Name, x, v, micro, step, c.v.takers[v])
		}
	}
	for i, d := range t.Bind.DIn {
		if d == plan.NoBuf {
			continue
		}
		x := thing{what: valueGrad, of: int32(unit.In[i]), micro: micro, step: step}
		if slices.Contains(t.Reads, d) {
			old, err := c.get(d, cp, valueGrad)
			if err != nil {
				return err
			}
			x.count = old.count
			if old != x {
				return fmt.Errorf("it adds to %s where it makes %s", old, x)
			}
		}
		x.count++
		c.fill(d, cp, x)
	}
	group, _ := c.groupOf(t.Micro)
	for i, g := range t.Bind.Grads {
		if c.p.Slabs[unit.Slabs[i]].Frozen {
			continue // bound to none (bindCheck)
		}
		x := thing{what: gradient, of: int32(unit.Slabs[i]), step: step, group: group, sums: 1}
		if t.Bind.Add[i] {
			old, err := c.get(g, cp, gradient)
			if err != nil {
				return err
			}
			x.count = old.count
			if c.p.Slabs[unit.Slabs[i]].Grad == g {
				x.group = old.group // groups add up in place
			}
			if old != x {
				return fmt.Errorf("it adds to %s where it makes %s", old, x)
			}
		}
		x.count++
		c.fill(g, cp, x)
		if t.Bind.Whole != nil && t.Bind.Whole[i] {
			if err := c.makeSquares(t, cp, g, unit.Slabs[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// leaves sets what else a compute task writes.
func (c *contents) leaves(t *plan.Task, cp int) {
	unit, micro, step := &c.p.Units[t.Unit], int32(t.Micro), int32(c.step)
	for i, id := range t.Bind.Out {
		x := thing{what: other}
		if i < len(unit.Out) {
			x = thing{what: value, of: int32(unit.Out[i]), micro: micro, step: step}
		}
		c.fill(id, cp, x)
	}
	if t.Bind.Saved != plan.NoBuf && t.Func != plan.Backward {
		c.fill(t.Bind.Saved, cp, thing{what: savedActs, fn: t.Func, of: int32(t.Unit), micro: micro, step: step})
	}
	if t.Bind.Work != plan.NoBuf {
		c.fill(t.Bind.Work, cp, thing{what: other})
	}
	if t.Bind.State != plan.NoBuf {
		c.fill(t.Bind.State, cp, thing{what: other})
	}
	if t.Bind.Partials != plan.NoBuf {
		c.partials[t.Micro] = step
		c.fill(t.Bind.Partials, cp, thing{what: other})
	}
}

// carry moves a value between units to the host or back. What it holds is checked where it is
// read; here, that it is of this step.
func (c *contents) carry(t *plan.Task, cp int) error {
	x, err := c.read(t.Src, cp)
	if err == nil && x.what != savedActs {
		x, err = c.get(t.Src, cp, value)
	}
	if err != nil {
		return err
	}
	if int(x.micro) != t.Micro || x.step != int32(c.step) {
		return fmt.Errorf("it carries %s; wanted micro-batch %d of step %d", x, t.Micro, c.step)
	}
	c.fill(t.Dst, cp, x)
	return nil
}
