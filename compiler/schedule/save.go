package schedule

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/compiler/memplan"
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// saves is what waits for backward on the host: values between units, and of layers that keep
// what backward reads, that. It leaves right after the task that makes it, so that its device
// memory is free when the last unit of forward has read it, and comes back, into memory of its
// own, a few micro-batches before the first unit of backward that reads it.
type saves struct {
	values  []int          // those saved, in forward order
	last    map[int]int    // by value: the unit that reads it last in forward, first in backward
	host    [][]plan.BufID // by value, micro-batch of the group: where it waits; nil when it stays
	back    [][]plan.BufID // the same: where backward reads it
	kept    [][]plan.BufID // by unit, micro-batch of the group: where what backward reads waits; nil when it stays
	pass    [][]plan.BufID // the same: what it passes through on the device; nil where it has memory of its own
	ahead   int            // micro-batches that a value comes before it is read
	pending []pendingInput // of the group's backward, not emitted yet
	visit   int            // units of the group's backward begun, the head's loss among them
	step    int            // micro-batches of the group's backward done, as if every group had as many as the first
}

// pendingInput is a copy that must be done before a micro-batch of the group's backward.
type pendingInput struct {
	from, to         plan.BufID
	unit, micro, due int
}

// savable lists the values that backward reads again after the loss, in forward order: what
// they would hold of the device through half a step.
func (b *builder) savable() (values []int, last map[int]int) {
	last = map[int]int{}
	for u, unit := range b.p.Units {
		for _, v := range unit.In {
			last[v] = u
		}
	}
	for _, unit := range b.p.Units {
		for _, v := range unit.Out {
			if u, ok := last[v]; ok && u != b.head && (b.remade == nil || b.remade[v] == plan.NoBuf) && b.template(u).Funcs[plan.Backward] != nil {
				values = append(values, v)
			}
		}
	}
	return values, last
}

// layoutSaved makes the buffers of n saved values, All: of every one.
func (b *builder) layoutSaved(n int64) {
	values, last := b.savable()
	if n >= 0 && n < int64(len(values)) {
		values = values[:n]
	}
	s := &b.save
	s.values, s.last = values, last
	s.host, s.back = make([][]plan.BufID, len(b.value)), make([][]plan.BufID, len(b.value))
	for _, v := range values {
		for _, id := range b.value[v] {
			buf := b.p.Buffers[id]
			s.host[v] = append(s.host[v], b.buffer(hostTrain, buf.Name+".saved", buf.Bytes, memplan.Static))
			s.back[v] = append(s.back[v], b.buffer(devActivations, buf.Name+".back", buf.Bytes, memplan.Pooled))
			s.ahead = max(s.ahead, b.restoreAhead(buf.Bytes, len(b.value[v])))
		}
	}
	b.p.SavedInputs = int64(len(values))
}

// layoutKept makes the buffers of what the first n layers that keep what backward reads save, All: of every
// one. On the device they all pass through the same memory, as much as one layer's: another use of it would have
// to wait for the copies, which take as long as several layers. What passes through it last is left there.
func (b *builder) layoutKept(n int64) {
	s := &b.save
	s.kept, s.pass = make([][]plan.BufID, len(b.p.Units)), make([][]plan.BufID, len(b.p.Units))
	if n == 0 {
		return
	}
	through, last := map[int64][]plan.BufID{}, map[int64]int{} // by bytes
	_, micros := b.group(0)
	layer, layers := -1, int64(0)
	for u, unit := range b.p.Units {
		if !b.keeps(u) {
			continue
		}
		if unit.Layer != layer {
			if layer, layers = unit.Layer, layers+1; n >= 0 && layers > n+1 {
				break
			}
		}
		bytes := b.template(u).SavedBytes
		for m := range micros {
			if len(through[bytes]) < micros {
				name := fmt.Sprintf("%s.saved.pass[%d]", b.p.Templates[unit.Template], m)
				through[bytes] = append(through[bytes], b.buffer(devActivations, name, bytes, memplan.Static))
			}
		}
		s.pass[u], last[bytes] = through[bytes], u
	}
	layer = -1
	for u, unit := range b.p.Units {
		bytes := b.template(u).SavedBytes
		if s.pass[u] == nil || last[bytes] == u {
			continue
		}
		if unit.Layer != layer {
			layer = unit.Layer
			b.p.SavedLayers++
		}
		for m := range micros {
			s.kept[u] = append(s.kept[u], b.buffer(hostTrain, fmt.Sprintf("%s.saved.micro[%d]", unit.Name, m), bytes, memplan.Static))
		}
	}
}

// keeps reports whether a unit is a layer, or the part of one with weights, whose forward keeps what
// its backward reads.
func (b *builder) keeps(u int) bool {
	t := b.template(u)
	return b.prog.Units[u].Unit.Kind == ir.LayerUnit && t.SavedBytes > 0 && !t.Recompute && t.Funcs[plan.Backward] != nil
}

// restoreAhead is how many micro-batches ahead a value of some bytes comes back, of n: the
// copies of a layer's weights, which they queue behind, take about the time in which a GPU
// computes a sixteenth of the tokens whose values have those weights' bytes.
func (b *builder) restoreAhead(bytes int64, n int) int {
	var weights int64
	for i := range b.p.Slabs {
		if s := &b.p.Slabs[i]; b.ring[i] >= 0 && b.streaming(i) {
			weights = max(weights, b.weightBytes(s))
		}
	}
	return min(n, max(2, 1+int((weights+16*bytes-1)/(16*bytes))))
}

// saveOutputs emits the copies of what a forward task made and the host keeps.
func (b *builder) saveOutputs(u, m, k int) {
	if b.list == plan.Eval || b.save.host == nil {
		return
	}
	save := func(src, dst plan.BufID) {
		t := b.task(plan.Save, device.D2H)
		t.Unit, t.Micro = u, m
		b.copyTask(t, dst, 0, src, 0, b.p.Buffers[src].Bytes)
	}
	for _, v := range b.p.Units[u].Out {
		if b.save.host[v] != nil {
			save(b.value[v][k], b.save.host[v][k])
		}
	}
	if b.save.kept[u] != nil {
		save(b.saved[u][k], b.save.kept[u][k])
	}
}

// planRestores lists what the backward of a group needs back, in the order in which it is copied. What a
// layer keeps is many times as large as its input, so it comes two visits ahead, or as soon as what it passes through
// has been read.
func (b *builder) planRestores(g int) {
	s := &b.save
	s.pending, s.visit = s.pending[:0], 0
	if len(s.values) == 0 && b.p.SavedLayers == 0 {
		return
	}
	lo, hi := b.group(g)
	_, n := b.group(0)
	read := map[plan.BufID]int{} // when it has been read last
	visit := 1                   // after the loss
	for u := b.head - 1; u >= 0; u -= b.chain[u] + 1 {
		if b.template(u).Funcs[plan.Backward] == nil {
			continue
		}
		for m := lo; m < hi; m++ {
			k, at := m-lo, visit*n+m-lo
			for x := u; x >= u-b.chain[u]; x-- {
				for _, v := range b.p.Units[x].In {
					if s.host[v] != nil && s.last[v] == x {
						s.pending = append(s.pending, pendingInput{s.host[v][k], s.back[v][k], x, m, at - s.ahead})
					}
				}
				if s.pass[x] == nil {
					continue
				}
				pass := s.pass[x][k]
				if s.kept[x] != nil {
					s.pending = append(s.pending, pendingInput{s.kept[x][k], pass, x, m, max(at-2*n, read[pass])})
				}
				read[pass] = at + 1
			}
		}
		visit++
	}
	if b.p.SavedLayers > 0 {
		slices.SortStableFunc(s.pending, func(x, y pendingInput) int { return cmp.Compare(x.due, y.due) })
	}
}

// beginBackward begins a unit's loss or backward. A group with fewer micro-batches than the
// first leaves out the last ones, so that all groups do the same in the same order.
func (b *builder) beginBackward() {
	_, n := b.group(0)
	b.save.step = b.save.visit * n
	b.save.visit++
}

// restoreInputs emits, before a micro-batch of the loss or of backward, the copies of what
// must be back that many micro-batches later.
func (b *builder) restoreInputs() {
	s := &b.save
	for len(s.pending) > 0 && s.pending[0].due <= s.step {
		r := s.pending[0]
		s.pending = s.pending[1:]
		t := b.task(plan.Restore, device.H2D)
		t.Unit, t.Micro = r.unit, r.micro
		b.copyTask(t, r.to, 0, r.from, 0, b.p.Buffers[r.to].Bytes)
	}
	s.step++
}

// savedBack is where backward reads a value; NoBuf when it is where forward left it.
func (b *builder) savedBack(f plan.Func, v, k int) plan.BufID {
	backward := f == plan.Again || f == plan.Recompute || f == plan.Backward
	if backward && b.remade[v] != plan.NoBuf {
		return b.remade[v]
	}
	if !backward || b.save.back == nil || b.save.back[v] == nil {
		return plan.NoBuf
	}
	return b.save.back[v][k]
}
