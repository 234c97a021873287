// This file follows the tasks that move, sum and update whole slabs and scalars.

package schedule

import (
	"fmt"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

func (c *contents) feed(t *plan.Task, cp int) error {
	p := c.p
	x, err := c.read(t.Src, cp)
	if err != nil {
		return err
	}
	switch t.Src {
	case p.HostTokens, p.HostTargets:
		n := p.Buffers[t.Dst].Bytes
		first := p.Tokens
		if t.Src == p.HostTargets {
			first = p.Targets
		}
		if t.Dst != first+plan.BufID(t.Micro) || t.SrcOff != int64(t.Micro)*n || t.DstOff != 0 || t.Bytes != n {
			return fmt.Errorf("it does not feed the part of its micro-batch")
		}
		x.micro = int32(t.Micro)
	case p.HostScalars:
		if t.Dst != p.Scalars && t.Dst != p.Results {
			return fmt.Errorf("scalars do not go to %s", p.Buffers[t.Dst].Name)
		}
	case p.Results:
		if t.Dst != p.Scalars || t.Lane != device.H2D {
			return fmt.Errorf("results do not go to %s", p.Buffers[t.Dst].Name)
		}
	case p.HostGenTokens, p.HostGenPositions:
		if t.Dst != p.GenTokens && t.Dst != p.GenPositions {
			return fmt.Errorf("generation does not read %s", p.Buffers[t.Dst].Name)
		}
	}
	c.fill(t.Dst, cp, x)
	return nil
}

func (c *contents) prefetch(t *plan.Task, cp int) error {
	x, err := c.get(t.Src, cp, weights)
	if err != nil {
		return err
	}
	if t.Src != c.p.Slabs[t.Slab].Weight || int(x.of) != t.Slab {
		return fmt.Errorf("%s is not the home of slab %s", c.p.Buffers[t.Src].Name, c.p.Slabs[t.Slab].Name)
	}
	if v := c.version(t.Slab); x.step != v {
		return fmt.Errorf("it fetches %s, and the step computes with %d", x, v)
	}
	c.fill(t.Dst, cp, x)
	return nil
}

// version is how many updates the weights of a slab have seen in this list.
func (c *contents) version(slab int) int32 {
	if c.p.Slabs[slab].Frozen {
		return 0
	}
	if c.list == plan.First || c.list == plan.Steady {
		return int32(c.step)
	}
	return 0
}

func (c *contents) norm(t *plan.Task, cp int) error {
	step := int32(c.step - t.Back)
	if c.p.Slabs[t.Slab].Frozen {
		return fmt.Errorf("what is frozen has no gradient")
	}
	if c.normed[t.Slab] == step {
		return fmt.Errorf("the slab's norm of this step is made twice")
	}
	c.normed[t.Slab] = step
	made := c.squares
	if t.Bind.Squares == c.p.HostSquares {
		made = c.hostSquares
	}
	if made[t.Slab] != step {
		return fmt.Errorf("the sums of squares of slab %s are missing in %s", c.p.Slabs[t.Slab].Name, c.p.Buffers[t.Bind.Squares].Name)
	}
	c.fill(t.Bind.Norms, cp, thing{what: other})
	switch t.Bind.Norms {
	case c.p.Norms:
		c.norms[t.Slab] = step
	case c.p.DeviceNorms:
		c.devNorms[t.Slab] = step
	default:
		return fmt.Errorf("norms do not go to %s", c.p.Buffers[t.Bind.Norms].Name)
	}
	if c.p.Clip {
		return nil
	}
	if err := c.scalarsAt(t.Bind.Scalars, cp, step, lossKnown); err != nil {
		return err
	}
	x, err := c.get(t.Bind.Scalars, cp, scalars)
	x.count++
	c.seen[t.Slab] = x.count
	c.fill(t.Bind.Scalars, cp, x)
	return err
}

// makeSquares notes that the sums of squares of a slab are made, of the whole gradient in a buffer,
// which is what the update will be given.
func (c *contents) makeSquares(t *plan.Task, cp int, grad plan.BufID, slab int) error {
	made := c.squares
	switch t.Bind.Squares {
	case plan.NoBuf:
		return fmt.Errorf("it makes no sums of squares of slab %s", c.p.Slabs[slab].Name)
	case c.p.Squares:
	case c.p.HostSquares:
		made = c.hostSquares
	default:
		return fmt.Errorf("sums of squares do not go to %s", c.p.Buffers[t.Bind.Squares].Name)
	}
	if err := c.whole(grad, cp, slab, int32(c.step)); err != nil {
		return err
	}
	made[slab] = int32(c.step)
	c.fill(t.Bind.Squares, cp, thing{what: other})
	return nil
}

// whole shows that a buffer holds the gradient of a whole step.
func (c *contents) whole(id plan.BufID, cp, slab int, step int32) error {
	x, err := c.get(id, cp, gradient)
	if err != nil {
		return err
	}
	if x.half != c.p.Slabs[slab].HalfGrad {
		return fmt.Errorf("%s holds %s, which is not what crosses the link", c.p.Buffers[id].Name, x)
	}
	if int(x.of) != slab || x.step != step || x.count != c.v.needs[slab]*int32(c.p.Micros) {
		return fmt.Errorf("%s holds %s; wanted slab %d, step %d and %d contributions",
			c.p.Buffers[id].Name, x, slab, step, c.v.needs[slab]*int32(c.p.Micros))
	}
	return nil
}

// scalarsAt shows that a block is the step's and complete as far as needed.
func (c *contents) scalarsAt(id plan.BufID, cp int, step, level int32) error {
	if id == plan.NoBuf {
		return fmt.Errorf("no scalars are bound")
	}
	x, err := c.get(id, cp, scalars)
	if err == nil && (x.step != step || x.sums < level) {
		err = fmt.Errorf("%s holds %s; wanted step %d, completed to %d", c.p.Buffers[id].Name, x, step, level)
	}
	return err
}

func (c *contents) reduce(t *plan.Task, cp int) error {
	step := int32(c.step - t.Back)
	x, err := c.get(t.Bind.Scalars, cp, scalars)
	if err != nil {
		return err
	}
	if x.step != step {
		return fmt.Errorf("it completes %s in step %d", x, step)
	}
	made := c.partials
	if t.Bind.Partials == c.p.HostPartials {
		made = c.hostPartials
	}
	for m, s := range made {
		if s != step {
			return fmt.Errorf("the loss of micro-batch %d is missing", m)
		}
	}
	x.sums = max(x.sums, lossKnown)
	if t.Bind.Norms != plan.NoBuf {
		for s, n := range c.norms[:c.p.Trained()] {
			if n != step {
				return fmt.Errorf("the norm of slab %s is missing", c.p.Slabs[s].Name)
			}
		}
		if x.sums == complete {
			return fmt.Errorf("the step's scalars are completed twice")
		}
		x.sums = complete
	}
	c.fill(t.Bind.Scalars, cp, x)
	return nil
}

func (c *contents) report(t *plan.Task, cp int) error {
	if c.p.HostRouters != plan.NoBuf && t.Dst == c.p.HostRouters {
		return c.routerReport(t, cp)
	}
	x, err := c.read(t.Src, cp)
	if err != nil {
		return err
	}
	switch t.Src {
	case c.p.Partials:
		copy(c.hostPartials, c.partials)
	case c.p.DeviceNorms:
		if t.Dst != c.p.Norms || t.SrcOff != t.DstOff {
			return fmt.Errorf("norms are not reported to %s", c.p.Buffers[t.Dst].Name)
		}
		copy(c.norms[t.DstOff/8:(t.DstOff+t.Bytes)/8], c.devNorms[t.SrcOff/8:])
	case c.p.Scalars:
		if t.Dst != c.p.Results && (t.Slab < 0 || t.Dst != c.p.Slabs[t.Slab].Scalars) {
			return fmt.Errorf("scalars are not reported to %s", c.p.Buffers[t.Dst].Name)
		}
	}
	c.fill(t.Dst, cp, x)
	return nil
}

func (c *contents) update(t *plan.Task, cp int) error {
	step, slab := int32(c.step-t.Back), &c.p.Slabs[t.Slab]
	if slab.Frozen {
		return fmt.Errorf("it updates what is frozen")
	}
	if c.updates[t.Slab] == step {
		return fmt.Errorf("the slab is updated twice in step %d", step)
	}
	if c.updates[t.Slab] != step-1 {
		return fmt.Errorf("the slab's update of step %d is missing", c.updates[t.Slab]+1)
	}
	c.updates[t.Slab] = step
	if t.Bind.Weights[0] != slab.Weight || t.Bind.Lo != slab.Lo || t.Bind.Moments != [2]plan.BufID{slab.M, slab.V} {
		return fmt.Errorf("it does not update the slab's state at home")
	}
	x, err := c.get(slab.Weight, cp, weights)
	if err != nil {
		return err
	}
	if x.step != step {
		return fmt.Errorf("it updates %s in step %d", x, step)
	}
	if err := c.whole(t.Bind.Grads[0], cp, t.Slab, step); err != nil {
		return err
	}
	level := int32(complete)
	if !c.p.Clip {
		level = lossKnown
		if c.normed[t.Slab] != step {
			return fmt.Errorf("the slab's norm, which may tell it to skip, is missing")
		}
	}
	if err := c.scalarsAt(t.Bind.Scalars, cp, step, level); err != nil {
		return err
	}
	if flags, err := c.get(t.Bind.Scalars, cp, scalars); err != nil || !c.p.Clip && flags.count < c.seen[t.Slab] {
		return fmt.Errorf("%s was copied before the slab's norm, which may tell it to skip", c.p.Buffers[t.Bind.Scalars].Name)
	}
	x.step++
	c.fill(slab.Weight, cp, x)
	return nil
}
