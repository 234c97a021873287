package crossentropy

import (
	_ "embed"

	"github.com/megatrain/mtc/runtime/device"
)

//go:embed crossentropy.cu
var text string

var (
	evalCUDA = &device.Source{Text: text, Func: "crossentropy_eval", Grid: grid(0), Spec: spec(0), Work: work, Next: sumCUDA}
	lossCUDA = &device.Source{Pick: pick}
	losses   = [...]*device.Source{lossOf(0), lossOf(keeps[1]), lossOf(keeps[2]), lossOf(keeps[3]), lossOf(keeps[4])}
	sumCUDA  = &device.Source{
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

func lossOf(kib int64) *device.Source {
	return &device.Source{Text: text, Func: "crossentropy_loss", Grid: grid(kib), Spec: spec(kib), Work: work, Next: sumCUDA}
}

// Rows up to shortRow elements take a small block, those up to longRow half of a large one: two of
// them hold such rows in bf16 on one multiprocessor.
const (
	shortRow = 8192
	longRow  = 104 << 10 / 2
)

// A block takes a row of I[1] logits.

func threads(a *device.Args) int64 {
	switch {
	case a.I[1] <= shortRow:
		return 256
	case a.I[1] <= longRow:
		return 512
	}
	return 1024
}

func spec(kib int64) func(a *device.Args) [4]int64 {
	return func(a *device.Args) [4]int64 { return [4]int64{threads(a), kib} }
}

func grid(kib int64) func(a *device.Args) device.Grid {
	return func(a *device.Args) device.Grid {
		return device.Grid{X: int32(a.I[0]), Y: 1, Z: 1, Threads: int32(threads(a)), Shared: int32(kib << 10)}
	}
}

// work holds the loss of each row.
func work(a *device.Args) int64 { return 8 * a.I[0] }
