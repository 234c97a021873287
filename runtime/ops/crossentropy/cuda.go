package crossentropy

import (
	_ "embed"

	"github.com/megatrain/mtc/runtime/device"
)

//go:embed crossentropy.cu
var text string

var (
	evalCUDA = &device.Source{Text: text, Func: "crossentropy_eval", Grid: rows, Spec: spec, Work: work, Next: sumCUDA}
	lossCUDA = &device.Source{Text: text, Func: "crossentropy_loss", Grid: rows, Spec: spec, Work: work, Next: sumCUDA}
	sumCUDA  = &device.Source{
		Text: text, Func: "crossentropy_sum", Spec: spec,
		Grid: func(*device.Args) device.Grid { return device.Grid{X: 1, Y: 1, Z: 1, Threads: 256} },
	}
)

// A block takes a row of I[1] logits.

func threads(a *device.Args) int64 {
	if a.I[1] > 8192 {
		return 1024
	}
	return 256
}

func spec(a *device.Args) [4]int64 { return [4]int64{threads(a)} }

func rows(a *device.Args) device.Grid {
	return device.Grid{X: int32(a.I[0]), Y: 1, Z: 1, Threads: int32(threads(a))}
}

// work holds the loss of each row.
func work(a *device.Args) int64 { return 8 * a.I[0] }
