package engine

import (
	"fmt"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// command is a task with every address, queue and event resolved for one parity.
type command struct {
	kind   plan.Kind
	task   int
	queue  device.Queue
	tag    device.Tagger
	waits  []device.Event
	record device.Event

	fn   TemplateFunc // compute
	bind *Binding

	dst, src device.Ptr // copies
	bytes    int64

	norm   *NormArgs
	add    *AccumulateArgs
	reduce *ReduceArgs
	update *UpdateArgs
	round  *RoundArgs

	kept *kept // what it is enqueued with, nil: nothing
}

// prepare resolves the tasks of a list for the steps of one parity.
func (e *Engine) prepare(l plan.List, parity int) error {
	r := e.plan.Lists[l]
	cs := make([]command, 0, r.End-r.Start)
	for i := r.Start; i < r.End; i++ {
		c, err := e.resolve(&e.plan.Tasks[i], parity)
		if err != nil {
			return fmt.Errorf("plan: task %s: %w", e.Describe(i), err)
		}
		cs = append(cs, c)
	}
	if l == plan.Steady {
		e.group(cs)
	}
	e.lists[l][parity] = cs
	return nil
}

func (e *Engine) resolve(t *plan.Task, parity int) (command, error) {
	c := command{kind: t.Kind, task: t.ID, queue: e.queues[t.Lane], tag: e.tags[t.Lane]}
	for _, w := range t.Waits {
		// A wait one step back is for the event that steps of the other parity record.
		c.waits = append(c.waits, e.events[(parity+w.Back)&1][w.Event])
	}
	if t.Event >= 0 {
		c.record = e.events[parity][t.Event]
	}
	copyOf := (parity + t.Back) & 1 // of parity buffers
	switch t.Kind {
	case plan.Compute:
		return c, e.resolveCompute(&c, t, copyOf)
	case plan.Norm:
		c.norm = &NormArgs{
			Squares: e.squares(t, t.Slab),
			Norm:    e.Ptr(t.Bind.Norms, copyOf).At(8 * int64(t.Slab)),
			Scalars: e.Ptr(t.Bind.Scalars, copyOf),
			Elems:   e.plan.Slabs[t.Slab].Elems,
		}
	case plan.Round:
		c.round = &RoundArgs{Half: e.Ptr(t.Dst, copyOf), Grad: e.Ptr(t.Src, copyOf), Squares: e.squares(t, t.Slab), Elems: e.plan.Slabs[t.Slab].Elems}
	case plan.Accumulate:
		c.add = &AccumulateArgs{
			Sum:     e.Ptr(t.Dst, copyOf).At(t.DstOff),
			Grad:    e.Ptr(t.Src, copyOf).At(t.SrcOff),
			Squares: e.squares(t, t.Slab),
			Elems:   t.Bytes / 4,
		}
	case plan.Reduce:
		c.reduce = &ReduceArgs{
			Norms:    e.Ptr(t.Bind.Norms, copyOf),
			Partials: e.Ptr(t.Bind.Partials, copyOf),
			Scalars:  e.Ptr(t.Bind.Scalars, copyOf),
			Slabs:    int64(e.plan.Trained()),
			Micros:   e.plan.Micros,
		}
	case plan.Update:
		s := &e.plan.Slabs[t.Slab]
		c.update = &UpdateArgs{
			Weight:  e.first(t.Bind.Weights, copyOf),
			Lo:      e.Ptr(t.Bind.Lo, copyOf),
			M:       e.Ptr(t.Bind.Moments[0], copyOf),
			V:       e.Ptr(t.Bind.Moments[1], copyOf),
			Grad:    e.first(t.Bind.Grads, copyOf),
			Scalars: e.Ptr(t.Bind.Scalars, copyOf),
			Elems:   s.Elems,
			Decay:   s.Decay,
			Half:    s.HalfGrad,
			AdamW:   e.plan.Train.Optimizer,
		}
	default: // the copies
		c.src = e.Ptr(t.Src, copyOf).At(t.SrcOff)
		c.dst = e.Ptr(t.Dst, copyOf).At(t.DstOff)
		c.bytes = t.Bytes
		if c.src.Nil() || c.dst.Nil() {
			return c, fmt.Errorf("source or target is not allocated")
		}
	}
	return c, nil
}

func (e *Engine) resolveCompute(c *command, t *plan.Task, parity int) error {
	if t.Template < 0 || t.Template >= len(e.templates) {
		return fmt.Errorf("no template %d", t.Template)
	}
	tmpl := &e.templates[t.Template]
	if c.fn = tmpl.Funcs[t.Func]; c.fn == nil {
		return fmt.Errorf("template %s has no function %s", tmpl.Name, t.Func)
	}
	b := &Binding{
		Saved:    e.Ptr(t.Bind.Saved, parity),
		Work:     e.Ptr(t.Bind.Work, parity),
		State:    e.Ptr(t.Bind.State, parity),
		Router:   e.Ptr(t.Bind.Router, parity),
		Targets:  e.Ptr(t.Bind.Targets, parity),
		Scalars:  e.Ptr(t.Bind.Scalars, parity),
		Partials: e.Ptr(t.Bind.Partials, parity),
		Tables:   e.tables,
	}
	if t.Micro > 0 {
		b.Partials = b.Partials.At(16 * int64(t.Micro))
	}
	c.bind = b
	for _, f := range []struct {
		what string
		dst  []device.Ptr
		src  []plan.BufID
	}{
		{"inputs", b.In[:], t.Bind.In}, {"outputs", b.Out[:], t.Bind.Out},
		{"input gradients", b.DIn[:], t.Bind.DIn}, {"output gradients", b.DOut[:], t.Bind.DOut},
		{"weight slabs", b.Weights[:], t.Bind.Weights}, {"gradient slabs", b.Grads[:], t.Bind.Grads},
	} {
		if len(f.src) > len(f.dst) {
			return fmt.Errorf("%d %s, more than %d", len(f.src), f.what, len(f.dst))
		}
		for i, id := range f.src {
			f.dst[i] = e.Ptr(id, parity)
		}
	}
	if len(t.Bind.Add) > len(b.Add) {
		return fmt.Errorf("%d slabs, more than %d", len(t.Bind.Add), len(b.Add))
	}
	copy(b.Add[:], t.Bind.Add)
	for i, whole := range t.Bind.Whole {
		if whole {
			b.Squares[i] = e.squares(t, e.plan.Units[t.Unit].Slabs[i])
		}
	}
	return nil
}

// squares is where the sums of squares of a slab's gradient are; nil for a task that binds none.
func (e *Engine) squares(t *plan.Task, slab int) device.Ptr {
	if t.Bind.Squares == plan.NoBuf {
		return device.Ptr{}
	}
	return e.Ptr(t.Bind.Squares, 0).At(e.plan.SquaresOff(slab))
}

// first is the address of the only buffer of a list.
func (e *Engine) first(ids []plan.BufID, parity int) device.Ptr {
	if len(ids) == 0 {
		return device.Ptr{}
	}
	return e.Ptr(ids[0], parity)
}

// Describe names a task for people: "7: forward of layer[3], micro-batch 0 (nano.mt:12)".
func (e *Engine) Describe(id int) string { return Describe(e.plan, id) }

// Describe names a task of a plan.
func Describe(p *plan.Plan, id int) string {
	if id < 0 || id >= len(p.Tasks) {
		return fmt.Sprint(id)
	}
	t := &p.Tasks[id]
	s := fmt.Sprintf("%d: %s", id, t.Kind)
	if t.Kind == plan.Compute {
		s = fmt.Sprintf("%d: %s", id, t.Func)
	}
	switch {
	case t.Unit >= 0 && t.Unit < len(p.Units):
		s += " of " + p.Units[t.Unit].Name
	case t.Slab >= 0 && t.Slab < len(p.Slabs):
		s += " of " + p.Slabs[t.Slab].Name
	}
	if t.Micro >= 0 {
		s += fmt.Sprintf(", micro-batch %d", t.Micro)
	}
	if t.Span >= 0 && t.Span < len(p.Spans) && p.Spans[t.Span] != "" {
		s += " (" + p.Spans[t.Span] + ")"
	}
	return s
}
