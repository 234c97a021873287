package schedule

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// A visit is a unit's turn with all micro-batches of a group, in backward a chain's, named by its
// highest unit: layer-major order, so that weights cross the link once for all of them.
type visit struct {
	unit, group int
	fn          plan.Func
}

// trainVisits lists a step's visits: for each group, forward through all units but the head,
// the loss, and backward through those that have one.
func (b *builder) trainVisits() []visit {
	var out []visit
	for g := range b.groups {
		out = append(out, b.forwardVisits(g)...)
		out = append(out, visit{b.head, g, plan.Loss})
		for u := b.head - 1; u >= 0; u -= b.chain[u] + 1 {
			if b.template(u).Funcs[plan.Backward] != nil {
				out = append(out, visit{u, g, plan.Backward})
			}
		}
	}
	return out
}

func (b *builder) forwardVisits(g int) []visit {
	out := make([]visit, b.head)
	for u := range out {
		out[u] = visit{u, g, plan.Forward}
	}
	return out
}

// visit emits a visit's tasks.
func (b *builder) visit(v visit) {
	lo, hi := b.group(v.group)
	switch v.fn {
	case plan.Loss, plan.Backward:
		if v.fn == plan.Loss {
			b.planRestores(v.group)
		}
		b.backwardUnit(v.unit, v.group)
	case plan.Infer:
		b.emit(b.infer(v.unit))
	default:
		for m := lo; m < hi; m++ {
			b.emit(b.compute(v.fn, v.unit, m, m-lo))
			b.saveOutputs(v.unit, m, m-lo)
		}
	}
}

// compute returns a template function's task: micro-batch m of the step, number k of its group.
func (b *builder) compute(f plan.Func, u, m, k int) plan.Task {
	p, unit, tmpl := b.p, &b.p.Units[u], b.template(u)
	t := b.bound(f, u)
	t.Micro = m
	micro := plan.BufID(m)
	input := func(v int) plan.BufID {
		switch v {
		case b.tokens:
			return p.Tokens + micro
		case b.position:
			return p.Positions
		}
		if back := b.savedBack(f, v, k); back != plan.NoBuf {
			return back
		}
		return b.value[v][k]
	}
	t.Bind.In = b.ids(len(unit.In))
	for _, v := range unit.In {
		t.Bind.In = append(t.Bind.In, input(v))
	}
	t.Reads = append(t.Reads, t.Bind.In...)
	if f == plan.Forward || f == plan.Again {
		t.Bind.Out = b.ids(len(unit.Out))
		for _, v := range unit.Out {
			out := b.value[v][k]
			if f == plan.Again {
				out = b.remade[v]
			}
			t.Bind.Out = append(t.Bind.Out, out)
		}
		t.Writes = append(t.Writes, t.Bind.Out...)
	}
	if saved := b.saved[u][k]; saved != plan.NoBuf {
		t.Bind.Saved = saved
		if f == plan.Backward {
			t.Reads = append(t.Reads, saved)
		} else {
			t.Writes = append(t.Writes, saved)
		}
	}
	if f == plan.Loss || f == plan.EvalLoss {
		t.Bind.Targets, t.Bind.Partials, t.Bind.Scalars = p.Targets+micro, p.Partials, p.Scalars
		t.Reads = append(t.Reads, t.Bind.Targets, p.Scalars)
		t.Writes = append(t.Writes, p.Partials)
	}
	if f == plan.Backward || f == plan.Loss {
		b.bindGrads(&t, u, m, k)
		t.Bind.DOut = b.ids(len(unit.Out))
		for i, v := range unit.Out {
			d := plan.NoBuf
			if tmpl.DOut[i] {
				d = b.dvalue[v][k]
				t.Reads = append(t.Reads, d)
			}
			t.Bind.DOut = append(t.Bind.DOut, d)
		}
	}
	b.bindRouted(&t)
	return b.withWork(t)
}

// bindGrads binds the gradients of inputs and slabs. The first contribution sets, later ones
// add: within a group where each group's gradient leaves, else within the step.
func (b *builder) bindGrads(t *plan.Task, u, m, k int) {
	unit, tmpl := &b.p.Units[u], b.template(u)
	t.Bind.DIn, t.Bind.Grads, t.Bind.Add = b.ids(len(unit.In)), b.ids(len(unit.Slabs)), b.mem.flags.cut(len(unit.Slabs))
	for i, v := range unit.In {
		d := plan.NoBuf
		if mode := tmpl.DIn[i]; mode != 0 {
			d = b.dvalue[v][k]
			t.Writes = append(t.Writes, d)
			if mode == gradAdd {
				t.Reads = append(t.Reads, d)
			}
		}
		t.Bind.DIn = append(t.Bind.DIn, d)
	}
	for _, s := range unit.Slabs {
		if b.p.Slabs[s].Frozen {
			t.Bind.Grads, t.Bind.Add = append(t.Bind.Grads, plan.NoBuf), append(t.Bind.Add, false)
			continue
		}
		first := m == 0 || k == 0 && b.hostSum(s)
		g, add := b.grad[s], !first || b.contributors[s][0] != u
		t.Bind.Grads = append(t.Bind.Grads, g)
		t.Bind.Add = append(t.Bind.Add, add)
		t.Writes = append(t.Writes, g)
		if add {
			t.Reads = append(t.Reads, g)
		}
	}
	if m == int(b.p.Micros)-1 {
		b.bindSquares(t, u)
	}
}

// bindSquares binds the sums of squares of the slabs whose gradients the task completes where they
// lie in f32: the last unit that adds to one, in the step's last micro-batch.
func (b *builder) bindSquares(t *plan.Task, u int) {
	whole := make([]bool, len(b.p.Units[u].Slabs))
	for i, s := range b.p.Units[u].Slabs {
		slab, c := &b.p.Slabs[s], b.contributors[s]
		if slab.Frozen || slab.HalfGrad || b.hostSum(s) || c[len(c)-1] != u {
			continue
		}
		whole[i], t.Bind.Whole, t.Bind.Squares = true, whole, b.p.Squares
		t.FLOPs, t.Moved = t.FLOPs+2*slab.Elems, t.Moved+f32*slab.Elems
	}
	if t.Bind.Squares != plan.NoBuf {
		t.Writes = append(t.Writes, t.Bind.Squares)
	}
}

// infer returns the task of a unit in generation.
func (b *builder) infer(u int) plan.Task {
	p, unit := b.p, &b.p.Units[u]
	t := b.bound(plan.Infer, u)
	for _, v := range unit.In {
		in := b.genValue[v]
		switch v {
		case b.tokens:
			in = p.GenTokens
		case b.position:
			in = p.GenPositions
		}
		t.Bind.In = append(t.Bind.In, in)
	}
	for _, v := range unit.Out {
		t.Bind.Out = append(t.Bind.Out, b.genValue[v])
	}
	if u == b.head {
		t.Bind.Out = []plan.BufID{p.GenLogits}
	}
	t.Reads = append(t.Reads, t.Bind.In...)
	t.Writes = append(t.Writes, t.Bind.Out...)
	if b.state[u] != plan.NoBuf {
		t.Bind.State = b.state[u]
		t.Reads = append(t.Reads, t.Bind.State)
		t.Writes = append(t.Writes, t.Bind.State)
	}
	b.bindRouted(&t)
	return b.withWork(t)
}

// bound returns a compute task with its weights and tables. Its Reads and Writes lie in room
// that the next one uses again; emit copies them.
func (b *builder) bound(f plan.Func, u int) plan.Task {
	t := b.task(plan.Compute, device.Compute)
	t.Func, t.Unit, t.Template = f, u, b.p.Units[u].Template
	t.Bind.Weights = b.ids(len(b.p.Units[u].Slabs))
	t.Reads, t.Writes = b.reads[:0], b.writes[:0]
	for k, s := range b.p.Units[u].Slabs {
		w := plan.NoBuf
		if b.readsSlab(f, u, k) {
			w = b.slot(s)
			t.Reads = append(t.Reads, w)
		}
		t.Bind.Weights = append(t.Bind.Weights, w)
	}
	if fn := b.template(u).Funcs[f]; fn != nil {
		t.FLOPs, t.Moved = fn.FLOPs, fn.Moved
		if b.list == plan.Decode {
			t.FLOPs, t.Moved = oneToken(fn)
		}
		for _, i := range b.tablesOf(fn) {
			t.Reads = append(t.Reads, b.tables[i])
		}
	}
	return t
}

// withWork binds the work memory where the function needs any.
func (b *builder) withWork(t plan.Task) plan.Task {
	if fn := b.template(t.Unit).Funcs[t.Func]; fn != nil && fn.WorkBytes > 0 {
		t.Bind.Work = b.work
		t.Writes = append(t.Writes, b.work)
	}
	return t
}
