package engine

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// kept is commands of the compute lane between two waits, which follow each other there and only
// launch. A device may enqueue them all at once (device.Keeper).
type kept struct {
	members []*command
	first   *command
	seen    int         // steps that enqueued them
	again   func() bool // nil: one by one
}

const (
	// keepMost bounds what a device keeps in one piece.
	keepMost = 64
	// keepAfter is how many steps enqueue them one by one first.
	keepAfter = 1
)

// group finds the commands of a list that may be kept together. Between the first, which alone
// may wait, and the last, which alone may be waited for, nothing on another lane can tell when each of
// them was enqueued.
func (e *Engine) group(cs []command) {
	if q, ok := e.queues[device.Compute].(device.Keeper); !ok || !q.Keeps() {
		return
	}
	var k *kept
	end := func() {
		if k != nil {
			for _, m := range k.members {
				m.kept = k
			}
		}
		k = nil
	}
	for i := range cs {
		c := &cs[i]
		if c.queue != e.queues[device.Compute] {
			continue
		}
		if !launches(c.kind) || len(c.waits) > 0 || k != nil && len(k.members) == keepMost {
			end()
		}
		if !launches(c.kind) {
			continue
		}
		if k == nil {
			k = &kept{first: c}
		}
		k.members = append(k.members, c)
		if c.record != nil {
			end()
		}
	}
	end()
}

// launches tells the tasks that are launches and nothing else.
func launches(k plan.Kind) bool {
	switch k {
	case plan.Compute, plan.Norm, plan.Accumulate, plan.Reduce, plan.Update, plan.Round:
		return true
	}
	return false
}

// submitKept enqueues them, with the first one's waits and the last one's record.
func (e *Engine) submitKept(k *kept) {
	q := k.first.queue
	if k.first.tag != nil {
		k.first.tag.Tag(k.first.task)
	}
	for _, w := range k.first.waits {
		q.Wait(w)
	}
	if k.seen++; k.seen == keepAfter+1 {
		k.again = q.(device.Keeper).Keep(func() { e.enqueueAll(k) })
	}
	if k.again == nil || !k.again() {
		k.again = nil
		e.enqueueAll(k)
	}
	if r := k.members[len(k.members)-1].record; r != nil {
		q.Record(r)
	}
}

func (e *Engine) enqueueAll(k *kept) {
	for _, c := range k.members {
		if c.tag != nil {
			c.tag.Tag(c.task)
		}
		e.enqueue(c.queue, c)
	}
}
