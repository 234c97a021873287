package rope

import (
	_ "embed"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/grid"
)

//go:embed rope.cu
var text string

var (
	forwardCUDA  = &device.Source{Text: text, Func: "rope_turn", Grid: rows, Spec: func(a *device.Args) [4]int64 { return [4]int64{a.I[5], 0} }}
	backwardCUDA = &device.Source{Text: text, Func: "rope_turn", Grid: rows, Spec: func(a *device.Args) [4]int64 { return [4]int64{a.I[5], 1} }}
)

// rows gives each row ceil(D / 16) threads' work: 8 pairs each.
func rows(a *device.Args) device.Grid {
	g, _ := grid.Items(a.I[0], (a.I[3]+15)/16)
	return g
}
