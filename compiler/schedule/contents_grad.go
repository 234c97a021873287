// This file follows the tasks that round, send and sum gradients.

package schedule

import (
	"fmt"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

func (c *contents) offload(t *plan.Task, cp int) error {
	x, err := c.get(t.Src, cp, gradient)
	if err != nil {
		return err
	}
	if c.atHome(t.Slab) {
		step := int32(c.step - t.Back)
		if t.Src != c.p.Slabs[t.Slab].Grad || c.offloaded[t.Slab] == step {
			return fmt.Errorf("it sends %s, which is not at home or was sent before", x)
		}
		c.offloaded[t.Slab] = step
		if err := c.whole(t.Src, cp, t.Slab, step); err != nil {
			return err
		}
		c.fill(t.Dst, cp, x)
		return nil
	}
	if x.half != c.p.Slabs[t.Slab].HalfGrad {
		return fmt.Errorf("it sends %s, which is not what crosses the link", x)
	}
	_, size := c.groupOf(0)
	if x.group >= int32(c.p.Micros%c.p.Groups) && c.p.Micros%c.p.Groups != 0 {
		size--
	}
	if int(x.of) != t.Slab || x.step != int32(c.step) || x.count != size*c.v.needs[t.Slab] {
		return fmt.Errorf("it sends %s; wanted slab %d, step %d and %d contributions", x, t.Slab, c.step, size*c.v.needs[t.Slab])
	}
	if x.group != c.groups[t.Slab] {
		return fmt.Errorf("it sends group %d of the gradient where group %d is next", x.group, c.groups[t.Slab])
	}
	c.groups[t.Slab]++
	c.fill(t.Dst, cp, x)
	return nil
}

// atHome reports whether the whole gradient of a slab waits on the device.
func (c *contents) atHome(slab int) bool {
	return c.p.Arenas[c.p.Buffers[c.p.Slabs[slab].Grad].Arena].Memory == device.DeviceMemory
}

// round makes of a whole gradient what crosses the link.
func (c *contents) round(t *plan.Task, cp int) error {
	x, err := c.get(t.Src, cp, gradient)
	if err != nil {
		return err
	}
	if int(x.of) != t.Slab || x.step != int32(c.step) || x.half || x.count != c.v.needs[t.Slab]*int32(c.p.Micros) {
		return fmt.Errorf("it rounds %s; wanted slab %d, step %d and %d contributions", x, t.Slab, c.step, c.v.needs[t.Slab]*int32(c.p.Micros))
	}
	x.half = true
	c.fill(t.Dst, cp, x)
	return c.makeSquares(t, cp, t.Dst, t.Slab)
}

func (c *contents) accumulate(t *plan.Task, cp int) error {
	x, err := c.get(t.Src, cp, gradient)
	if err != nil {
		return err
	}
	y, err := c.get(t.Dst, cp, gradient)
	if err != nil {
		return err
	}
	if t.Dst != c.p.Slabs[t.Slab].Grad || int(x.of) != t.Slab || x.of != y.of || x.step != int32(c.step) ||
		x.step != y.step || x.group != y.sums || len(t.Bind.Add) != 1 || !t.Bind.Add[0] {
		return fmt.Errorf("it adds %s to %s", x, y)
	}
	y.sums++
	y.count += x.count
	c.fill(t.Dst, cp, y)
	if t.Bind.Squares != plan.NoBuf {
		return c.makeSquares(t, cp, t.Dst, t.Slab)
	}
	return nil
}
