package crossentropy

import (
	_ "embed"

	"github.com/megatrain/mtc/runtime/device"
)

//go:embed crossentropy.cu
var text string

var (
	evalCUDA = &device.Source{Text: text, Func: "crossentropy_eval", Grid: rows(0), Spec: spec(0), Work: work, Next: sumCUDA}
	lossCUDA = &device.Source{Pick: pick}
	losses   = [...]*device.Source{lossOf(0), lossOf(96), lossOf(160), lossOf(224)}
	sumCUDA  = &device.Source{
		Text: text, Func: "crossentropy_sum", Spec: spec(0),
		Grid: func(*device.Args) device.Grid { return device.Grid{X: 1, Y: 1, Z: 1, Threads: 256} },
	}
	// keeps is the KiB in which losses keep a row: what blocks of common GPUs may have.
	keeps = [...]int32{0, 96, 160, 224}
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
		if threads(a) < 1024 || kib<<10+static > t.Shared {
			break
		}
		best = i
		if int64(kib)<<10 >= row {
			break
		}
	}
	return losses[best]
}

func lossOf(kib int32) *device.Source {
	return &device.Source{Text: text, Func: "crossentropy_loss", Grid: rows(kib), Spec: spec(int64(kib)), Work: work, Next: sumCUDA}
}

// A block takes a row of I[1] logits.

func threads(a *device.Args) int64 {
	if a.I[1] > 8192 {
		return 1024
	}
	return 256
}

func spec(kib int64) func(a *device.Args) [4]int64 {
	return func(a *device.Args) [4]int64 { return [4]int64{threads(a), kib} }
}

func rows(kib int32) func(a *device.Args) device.Grid {
	return func(a *device.Args) device.Grid {
		return device.Grid{X: int32(a.I[0]), Y: 1, Z: 1, Threads: int32(threads(a)), Shared: kib << 10}
	}
}

// work holds the loss of each row.
func work(a *device.Args) int64 { return 8 * a.I[0] }
