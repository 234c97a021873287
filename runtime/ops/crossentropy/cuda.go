package crossentropy

import (
	_ "embed"

	"github.com/megatrain/mtc/runtime/device"
	ops "github.com/megatrain/mtc/runtime/ops/internal/grid"
)

//go:embed crossentropy.cu
var text string

var (
	evalCUDA  = &device.Source{Text: text, Func: "crossentropy_eval", Grid: grid(0), Spec: spec(0), Work: work, Next: sumCUDA}
	lossCUDA  = &device.Source{Pick: pick}
	losses    = [...]*device.Source{lossOf(0), lossOf(keeps[1]), lossOf(keeps[2]), lossOf(keeps[3]), lossOf(keeps[4])}
	rowsCUDA  = [...]*device.Source{layouts[0].source(rowsName), layouts[1].source(rowsName), layouts[2].source(rowsName)}
	looseCUDA = layouts[0].source("crossentropy_loose") // no units in registers
	sumCUDA   = &device.Source{
		Text: text, Func: "crossentropy_sum", Spec: spec(0),
		Grid: func(*device.Args) device.Grid { return device.Grid{X: 1, Y: 1, Z: 1, Threads: 1024} },
	}
	// keeps are the KiB in which losses keep a row: what blocks of common GPUs may have. Two blocks
	// with up to 104 share a multiprocessor of Hopper, so that one reads while the other writes.
	keeps = [...]int64{0, 96, 104, 160, 224}
)

// static is more than the kernel's static shared memory.
const static = 1 << 10

// pick takes the least memory that holds a row, or else the most that there is. Short rows are
// not kept: several of them share a multiprocessor.
func pick(t device.Target, a *device.Args) *device.Source {
	if !t.F32 && a.I[1] > shortRow && a.I[2]%8 == 0 && ops.Aligned(a.P[0], a.P[4]) {
		for i, l := range layouts {
			if a.I[1] <= l.holds() && l.kib<<10+static <= int64(t.Shared) {
				return rowsCUDA[i]
			}
		}
	}
	if l := layouts[0]; !t.F32 && a.I[1] > shortRow && (a.P[0].Off-a.P[4].Off)%16 == 0 && a.I[1] <= l.holdsLoose() && l.kib<<10+static <= int64(t.Shared) {
		return looseCUDA
	}
	row := 2 * a.I[1]
	if t.F32 {
		row *= 2
	}
	best := 0
	for i, kib := range keeps {
		if a.I[1] <= shortRow || kib<<10+static > int64(t.Shared) {
			break
		}
		best = i
		if kib<<10 >= row {
			break
		}
	}
	return losses[best]
}

const rowsName = "crossentropy_rows"

// layout is how a block holds rows that it takes one after the other: in the KiB of its shared memory, and in
// registers, a number of units of each thread. share blocks have a multiprocessor of Hopper.
type layout struct{ threads, kib, units, share int64 }

var layouts = [...]layout{{512, 104, 0, 2}, {384, 104, 5, 2}, {1024, 224, 5, 1}}

// holds is how many elements in bf16 there is room for.
func (l layout) holds() int64 { return 8 * l.threads * (l.kib<<10/16/l.threads + l.units) }

// holdsLoose is the same where rows begin anywhere: a vector more, and one is read behind.
func (l layout) holdsLoose() int64 { return l.holds() - 16 }

func (l layout) source(name string) *device.Source {
	return &device.Source{
		Text: text, Func: name, Work: work, Next: sumCUDA,
		Spec: func(a *device.Args) [4]int64 { return [4]int64{l.threads, l.kib, capped(a)} },
		Grid: func(a *device.Args) device.Grid {
			return device.Grid{X: int32(min(a.I[0], 132*l.share)), Y: 1, Z: 1, Threads: int32(l.threads), Shared: int32(l.kib << 10)}
		},
	}
}

func lossOf(kib int64) *device.Source {
	return &device.Source{Text: text, Func: "crossentropy_loss", Grid: grid(kib), Spec: spec(kib), Work: work, Next: sumCUDA}
}

// Rows up to shortRow elements take a small block.
const shortRow = 8192

// threads is the size of a block that takes a row of I[1] logits: whatever kernel does it, so that losses have
// the same bits.
func threads(a *device.Args) int64 {
	if a.I[1] <= shortRow {
		return 256
	}
	for _, l := range layouts {
		if a.I[1] <= l.holds() {
			return l.threads
		}
	}
	return layouts[len(layouts)-1].threads
}

func spec(kib int64) func(a *device.Args) [4]int64 {
	return func(a *device.Args) [4]int64 { return [4]int64{threads(a), kib, capped(a)} }
}

func grid(kib int64) func(a *device.Args) device.Grid {
	return func(a *device.Args) device.Grid {
		return device.Grid{X: int32(a.I[0]), Y: 1, Z: 1, Threads: int32(threads(a)), Shared: int32(kib << 10)}
	}
}

// capped tells whether logits have a soft cap.
func capped(a *device.Args) int64 {
	if a.F[0] != 0 {
		return 1
	}
	return 0
}

// work holds the loss of each row.
func work(a *device.Args) int64 { return 8 * a.I[0] }
