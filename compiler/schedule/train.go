package schedule

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// train makes the list of a training step. Steady differs from first only in the updates
// that the step before left over, so that every other task has its twin there.
func (b *builder) train(list plan.List) {
	b.begin(list)
	b.feedStep()
	visits := b.trainVisits()
	fetches := b.fetches(visits)
	for i, v := range visits {
		if list == plan.Steady && b.clip {
			for _, u := range b.visitUnits(v) {
				for _, s := range b.p.Units[u].Slabs {
					if b.p.Slabs[s].Resident {
						b.leftover(s)
					}
				}
			}
		}
		fetches = b.prefetch(fetches, i, list == plan.Steady && b.clip)
		b.visit(v)
	}
	b.endStep()
}

// drain makes the list of the updates that the last step left over, in the order in which
// the next forward would have needed them.
func (b *builder) drain() {
	b.begin(plan.Drain)
	if !b.clip {
		return
	}
	for _, u := range b.p.Units {
		for _, s := range u.Slabs {
			b.leftover(s)
		}
	}
}

// feedStep sends the step's scalars and tokens to the device.
func (b *builder) feedStep() {
	p := b.p
	scalars := p.Buffers[p.Scalars].Bytes
	b.copyTask(b.task(plan.Feed, device.H2D), p.Scalars, 0, p.HostScalars, 0, scalars)
	if b.hostNorms() && b.list != plan.Eval {
		b.copyTask(b.task(plan.Feed, device.Host), p.Results, 0, p.HostScalars, 0, scalars)
	}
	for m := range b.micros {
		t := b.task(plan.Feed, device.H2D)
		t.Micro = m
		n := p.Buffers[p.Tokens].Bytes
		b.copyTask(t, p.Tokens+plan.BufID(m), 0, p.HostTokens, int64(m)*n, n)
		n = p.Buffers[p.Targets].Bytes
		b.copyTask(t, p.Targets+plan.BufID(m), 0, p.HostTargets, int64(m)*n, n)
	}
}

// leftover emits the update of a slab with the gradient of the step before, once a list.
func (b *builder) leftover(s int) {
	if !b.updated[s] && !b.p.Slabs[s].Frozen {
		b.updated[s] = true
		if b.home[s] {
			b.sendHome(s)
		}
		b.update(s, 1)
	}
}

// update emits the optimizer on one slab, on the lane where its state is at home.
func (b *builder) update(s, back int) {
	slab := &b.p.Slabs[s]
	lane, scalars := device.Compute, b.p.Scalars
	switch {
	case b.early(s):
		lane, scalars = device.Host, slab.Scalars
	case !slab.Resident:
		lane, scalars = device.Host, b.p.Results
	}
	t := b.task(plan.Update, lane)
	t.Unit, t.Slab, t.Back = b.first[s], s, back
	t.Bind = plan.Bind{
		Weights: append(b.ids(1), slab.Weight), Grads: append(b.ids(1), b.updateGrad(s)),
		Lo: slab.Lo, Moments: [2]plan.BufID{slab.M, slab.V}, Scalars: scalars,
	}
	t.Writes = append(b.writes[:0], slab.Weight, slab.M, slab.V)
	if slab.Lo != plan.NoBuf {
		t.Writes = append(t.Writes, slab.Lo)
	}
	t.Reads = append(append(b.reads[:0], b.updateGrad(s), scalars), t.Writes...)
	// AdamW: about 14 operations an element; reads w (or hi and lo), m, v, g and writes w, m, v.
	t.FLOPs, t.Moved = 14*slab.Elems, 7*f32*slab.Elems
	if slab.HalfGrad {
		t.Moved -= (f32 - bf16) * slab.Elems
	}
	b.emit(t)
}

// backwardUnit runs a group's micro-batches through a unit's backward (or the head's loss)
// and sends off the gradients that are complete with it.
func (b *builder) backwardUnit(u, g int) {
	lo, hi := b.group(g)
	b.beginBackward()
	for m := lo; m < hi; m++ {
		b.restoreInputs()
		b.backwardMicro(u, m, m-lo)
	}
	if u == b.head && g == b.groups-1 {
		b.lossKnown()
	}
	for x := u; x >= u-b.chain[u]; x-- {
		for _, s := range b.p.Units[x].Slabs {
			if c := b.contributors[s]; len(c) > 0 && c[len(c)-1] == x {
				b.gradDone(s, x, g)
			}
		}
	}
}

// lossKnown emits what follows the last loss: the partial losses go where reduce runs, and
// without clipping a loss that is not finite must be known before the first update.
func (b *builder) lossKnown() {
	p := b.p
	if b.hostNorms() {
		b.copyTask(b.task(plan.Report, device.D2H), p.HostPartials, 0, p.Partials, 0, p.Buffers[p.Partials].Bytes)
	}
	if b.clip {
		return
	}
	if b.hostNorms() {
		b.reduce(device.Host, false)
	}
	if !b.hostNorms() || b.somehow(b.staying) {
		b.reduce(device.Compute, false)
	}
}

// norm emits the squared norm of a slab's whole gradient, the sum of what was made of its blocks where
// they were complete: on the device unless it is whole on the host only.
func (b *builder) norm(s, u int) {
	slab := &b.p.Slabs[s]
	t := b.task(plan.Norm, device.Compute)
	squares, scalars, norms := b.p.Squares, b.p.Scalars, b.p.Norms
	switch {
	case b.hostSum(s):
		t.Lane, squares, scalars = device.Host, b.p.HostSquares, b.p.Results
	case b.hostNorms():
		norms = b.p.DeviceNorms
	}
	t.Unit, t.Slab = u, s
	t.Bind = plan.Bind{Squares: squares, Norms: norms}
	t.Reads, t.Writes = []plan.BufID{squares}, []plan.BufID{norms}
	if !b.clip {
		t.Bind.Scalars = scalars
		t.Writes = append(t.Writes, scalars)
	}
	blocks := plan.SquaresBlocks(slab.Elems)
	t.FLOPs, t.Moved = blocks, 8*blocks
	b.emit(t)
}

// reduce completes the scalars from the partial losses and, with norms, from the norms.
func (b *builder) reduce(lane device.Lane, norms bool) int {
	p := b.p
	t := b.task(plan.Reduce, lane)
	t.Bind.Partials, t.Bind.Scalars = p.Partials, p.Scalars
	if lane == device.Host {
		t.Bind.Partials, t.Bind.Scalars = p.HostPartials, p.Results
	}
	t.Reads, t.Writes = []plan.BufID{t.Bind.Partials, t.Bind.Scalars}, []plan.BufID{t.Bind.Scalars}
	t.FLOPs = 2 * p.Micros
	if norms {
		t.Bind.Norms = p.Norms
		t.Reads = append(t.Reads, p.Norms)
		t.FLOPs += int64(p.Trained())
	}
	for _, r := range t.Reads {
		t.Moved += p.Buffers[r].Bytes
	}
	return b.emit(t)
}

// report copies the scalars to the host.
func (b *builder) report() int {
	p := b.p
	return b.copyTask(b.task(plan.Report, device.D2H), p.Results, 0, p.Scalars, 0, p.Buffers[p.Scalars].Bytes)
}

// endStep completes the step's scalars and brings them to the host.
func (b *builder) endStep() {
	lane := device.Compute
	if b.hostNorms() {
		lane = device.Host
		b.joinNorms()
	}
	id := b.reduce(lane, true)
	if b.hostNorms() && (b.clip && b.somehow(b.staying) || len(b.p.Routers) > 0) {
		// What is updated on the device needs the factor there, and routers whether the step counts.
		b.copyTask(b.task(plan.Feed, device.H2D), b.p.Scalars, 0, b.p.Results, 0, b.p.Buffers[b.p.Scalars].Bytes)
	}
	if told := b.advance(); told >= 0 {
		id = told
	}
	if !b.hostNorms() {
		id = b.report()
	}
	b.results[b.list] = id
	if b.updates != nil {
		for _, x := range b.updates.rest {
			b.update(x, 0)
		}
	}
}
