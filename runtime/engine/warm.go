package engine

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// warm lets a device prepare the kernels of all lists before the first step.
func (e *Engine) warm() error {
	w, ok := e.dev.(device.Warmer)
	if !ok {
		return nil
	}
	return w.Warm(func(q device.Queue) {
		for l := range plan.NumLists {
			for i := range e.lists[l][0] {
				e.rehearse(q, l, &e.lists[l][0][i])
			}
		}
	})
}

// rehearse launches what a command of the compute lane would, on another queue.
func (e *Engine) rehearse(q device.Queue, l plan.List, c *command) {
	if c.queue != e.queues[device.Compute] {
		return
	}
	if b := c.bind; b != nil {
		switch l {
		case plan.Prefill:
			b.Rows = int(e.plan.Prefill)
		case plan.Decode:
			b.Rows = 1
		}
	}
	e.enqueue(q, c)
}
