// Package memplan gives every buffer of a plan its place: it sizes the arenas and chooses
// offsets. In goes a plan whose buffers name their arena and size and whose tasks list what
// they touch, with a class for each buffer that says how long it needs its memory; out comes
// the same plan with Buffer.Off, Arena.Bytes and Arena.GenBytes set. It orders nothing: the
// waits are derived from the placed byte ranges afterwards, so that two buffers in one place
// are kept apart like two uses of one buffer.
package memplan

import (
	"fmt"

	"github.com/megatrain/mtc/runtime/plan"
)

// Class says when a buffer needs memory of its own.
type Class uint8

// The classes.
const (
	// Static memory belongs to one buffer for the whole run.
	Static Class = iota
	// Pooled memory is needed from the first write of a group of micro-batches to the last
	// read of it, in the order of the first list; buffers of other times share it.
	Pooled
	// Gen memory belongs to one buffer during generation and lies over pooled memory:
	// training and generation never run at the same time, and neither reads what it left
	// there before.
	Gen
	// GenPooled memory is to prefill and decode what Pooled memory is to training.
	GenPooled
)

// Align is the alignment of every buffer in bytes: a cache line on a CPU, and what copies
// and vector loads like on a GPU.
const Align = 256

func align(n int64) int64 { return (n + Align - 1) / Align * Align }

// Place sets offsets and arena sizes. class is indexed by buffer.
func Place(p *plan.Plan, class []Class) error {
	if len(class) != len(p.Buffers) {
		return fmt.Errorf("memory plan: %d classes for %d buffers", len(class), len(p.Buffers))
	}
	gen := usedBy(p, plan.Prefill, plan.Decode)
	for a := range p.Arenas {
		arena := &p.Arenas[a]
		// What generation needs stands first, so that a prefix of the arena is enough for it.
		top := placeStatic(p, class, a, func(b plan.BufID) bool { return gen[b] }, 0)
		pool := place(p, class, a, Pooled, top, p.Lists[plan.First])
		over := placeClass(p, class, a, Gen, top)
		over = place(p, class, a, GenPooled, over, p.Lists[plan.Prefill])
		arena.GenBytes = over
		arena.Bytes = placeStatic(p, class, a, func(b plan.BufID) bool { return !gen[b] }, max(pool, over))
	}
	return nil
}

// usedBy marks the buffers that tasks of the lists touch.
func usedBy(p *plan.Plan, lists ...plan.List) []bool {
	used := make([]bool, len(p.Buffers))
	for _, l := range lists {
		for i := p.Lists[l].Start; i < p.Lists[l].End; i++ {
			for _, b := range p.Tasks[i].Reads {
				used[b] = true
			}
			for _, b := range p.Tasks[i].Writes {
				used[b] = true
			}
		}
	}
	return used
}

// size is the memory of all copies of a buffer.
func size(b *plan.Buffer) int64 {
	if b.Parity {
		return align(2 * b.Bytes)
	}
	return align(b.Bytes)
}

func placeStatic(p *plan.Plan, class []Class, arena int, want func(plan.BufID) bool, top int64) int64 {
	for i := 1; i < len(p.Buffers); i++ {
		b := &p.Buffers[i]
		if b.Arena == arena && class[i] == Static && want(plan.BufID(i)) {
			b.Off = top
			top += size(b)
		}
	}
	return top
}

func placeClass(p *plan.Plan, class []Class, arena int, c Class, top int64) int64 {
	for i := 1; i < len(p.Buffers); i++ {
		if b := &p.Buffers[i]; b.Arena == arena && class[i] == c {
			b.Off = top
			top += size(b)
		}
	}
	return top
}

// Peak sums the arenas of each memory: what the plan asks of a machine.
func Peak(p *plan.Plan) (deviceBytes, hostBytes int64) {
	for _, a := range p.Arenas {
		if a.Memory == 0 {
			deviceBytes += a.Bytes
		} else {
			hostBytes += a.Bytes
		}
	}
	return deviceBytes, hostBytes
}
