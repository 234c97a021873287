package schedule

import (
	"fmt"

	"github.com/megatrain/mtc/compiler/memplan"
	"github.com/megatrain/mtc/runtime/plan"
)

// Where inputs of layers are kept for every K-th layer, backward visits K layers together, a
// chain: for a micro-batch it runs the lower ones forward again from the input that was kept,
// each keeping what its own backward reads, then the chain's backward from the top. So no
// forward is run once more than recompute runs it anyway, and K slots of weights and of
// gradients are in use at a time.

// chains finds which units go together, from the last layer down: consecutive ones that
// recompute, with one value between them that nothing else reads.
func (b *builder) chains(o *Options) error {
	b.chain = make([]int, len(b.p.Units))
	if o.InputEvery < 1 {
		return fmt.Errorf("the input of every %d layers cannot be kept", o.InputEvery)
	}
	if b.every == 1 {
		return nil
	}
	readers := map[int]int{}
	for _, unit := range b.p.Units {
		for _, v := range unit.In {
			readers[v]++
		}
	}
	longest := 1
	for u := b.head - 1; u >= 0; u -= b.chain[u] + 1 {
		for n := 0; n+1 < b.every && u-n > 0 && b.follows(u-n, readers); n++ {
			b.chain[u]++
		}
		longest = max(longest, b.chain[u]+1)
	}
	if b.streams && (o.Slots < int64(longest) || o.GradSlots < int64(longest)) {
		return fmt.Errorf("%d weight and %d gradient slots: backward visits %d layers together and needs as many of each", o.Slots, o.GradSlots, longest)
	}
	return nil
}

// follows reports whether the input of unit u can be made again by the unit before it.
func (b *builder) follows(u int, readers map[int]int) bool {
	up, down := b.template(u), b.template(u-1)
	out := b.p.Units[u-1].Out
	if !up.Recompute || !down.Recompute || down.Funcs[plan.Again] == nil || up.Funcs[plan.Backward] == nil || down.Funcs[plan.Backward] == nil {
		return false
	}
	if len(out) != 1 || readers[out[0]] != 1 {
		return false
	}
	for _, v := range b.p.Units[u].In {
		if v == out[0] {
			return true
		}
	}
	return false
}

// layoutRemade makes the buffers of values that are made again, one for each place in a chain.
func (b *builder) layoutRemade() {
	b.remade = make([]plan.BufID, len(b.value))
	var at []plan.BufID
	size := func(k int) (n int64) {
		for u, below := range b.chain {
			if below > k {
				n = max(n, b.p.Buffers[b.value[b.p.Units[u-below+k].Out[0]][0]].Bytes)
			}
		}
		return n
	}
	for k := 0; size(k) > 0; k++ {
		at = append(at, b.buffer(devActivations, fmt.Sprintf("remade[%d]", k), size(k), memplan.Static))
	}
	for u, below := range b.chain {
		for k := range below {
			b.remade[b.p.Units[u-below+k].Out[0]] = at[k]
		}
	}
}

// place is a unit's place in its chain, counted from the lowest.
func (b *builder) place(u int) int {
	for top := u + 1; top < len(b.chain); top++ {
		if top-b.chain[top] <= u {
			return u - top + b.chain[top]
		}
	}
	return b.chain[u] // the highest of its own
}

// visitUnits lists the units of a visit, the lowest first, as backward comes to need them.
func (b *builder) visitUnits(v visit) []int {
	lo := v.unit
	if v.fn == plan.Backward {
		lo -= b.chain[v.unit]
	}
	var out []int
	for u := lo; u <= v.unit; u++ {
		out = append(out, u)
	}
	return out
}

// backwardMicro runs one micro-batch of a unit's chain backward, or through the head's loss.
func (b *builder) backwardMicro(u, m, k int) {
	if u == b.head {
		b.emit(b.compute(plan.Loss, u, m, k))
		return
	}
	for low := u - b.chain[u]; low < u; low++ {
		b.emit(b.compute(plan.Again, low, m, k))
	}
	if b.template(u).Recompute {
		b.emit(b.compute(plan.Recompute, u, m, k))
	}
	for x := u; x >= u-b.chain[u]; x-- {
		b.emit(b.compute(plan.Backward, x, m, k))
	}
}
