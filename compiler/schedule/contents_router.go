package schedule

import (
	"fmt"
	"slices"

	"github.com/megatrain/mtc/runtime/plan"
)

// routerOf is the router whose state a buffer holds, -1 when there is none.
func (c *contents) routerOf(id plan.BufID) int {
	return slices.IndexFunc(c.p.Routers, func(r plan.Router) bool { return r.State == id })
}

// routed checks what a function of a router's unit is bound to: no state that has moved already
// in the step, the targets of its micro-batch and the scalars of its step.
func (c *contents) routed(t *plan.Task, cp int) error {
	step := int32(c.step)
	if id := t.Bind.Router; id != plan.NoBuf {
		r := c.routerOf(id)
		if r < 0 {
			return fmt.Errorf("%s is the state of no router", c.p.Buffers[id].Name)
		}
		if c.advanced[r] == step {
			return fmt.Errorf("the router of %s has moved already", c.p.Routers[r].Name)
		}
	}
	if t.Func == plan.Loss || t.Func == plan.EvalLoss {
		return nil // checked with the loss
	}
	if id := t.Bind.Targets; id != plan.NoBuf {
		x, err := c.get(id, cp, targets)
		if err != nil {
			return err
		}
		if x.micro != int32(t.Micro) || x.step != step {
			return fmt.Errorf("it reads %s", x)
		}
	}
	if t.Bind.Scalars != plan.NoBuf {
		return c.scalarsAt(t.Bind.Scalars, cp, step, fed)
	}
	return nil
}

// advance checks that a router moves once a step, after all of its micro-batches, forward and
// backward, and when the outcome is known.
func (c *contents) advance(t *plan.Task, cp int) error {
	r := c.routerOf(t.Bind.Router)
	if r < 0 || c.p.Routers[r].Unit != t.Unit {
		return fmt.Errorf("it does not move the router of its unit")
	}
	if c.list != plan.First && c.list != plan.Steady {
		return fmt.Errorf("routers move in training only")
	}
	if c.advanced[r] == int32(c.step) {
		return fmt.Errorf("the router moves twice in the step")
	}
	for m := range int(c.p.Micros) {
		if c.done[plan.Forward][t.Unit*int(c.p.Micros)+m] != int32(c.step) {
			return fmt.Errorf("micro-batch %d is not routed yet", m)
		}
	}
	if err := c.scalarsAt(t.Bind.Scalars, cp, int32(c.step), complete); err != nil {
		return err
	}
	c.advanced[r] = int32(c.step)
	c.fill(t.Bind.Router, cp, thing{what: other})
	return nil
}

// routerReport checks the copy of a router's report to the host.
func (c *contents) routerReport(t *plan.Task, cp int) error {
	r := c.routerOf(t.Src)
	if r < 0 || c.advanced[r] != int32(c.step) {
		return fmt.Errorf("it reports a router that has not moved")
	}
	q := &c.p.Routers[r]
	if t.SrcOff != q.Report || t.DstOff != q.At || t.Bytes != q.Reports {
		return fmt.Errorf("it does not copy the report of %s", q.Name)
	}
	c.told[r] = int32(c.step)
	c.fill(t.Dst, cp, thing{what: other})
	return nil
}
