package squares

import (
	_ "embed"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/grid"
	"github.com/megatrain/mtc/runtime/plan"
)

//go:embed squares.cu
var text string

var (
	partsCUDA = &device.Source{Text: text, Func: "squares_parts", Grid: func(a *device.Args) device.Grid { return grid.Of(max(1, a.I[2]+a.I[4]), threads) }}
	totalCUDA = &device.Source{Text: text, Func: "squares_total", Grid: func(*device.Args) device.Grid { return grid.Of(1, final) }}
	roundCUDA = &device.Source{Text: text, Func: "squares_round", Grid: func(a *device.Args) device.Grid {
		return grid.Of(max(1, plan.SquaresBlocks(a.I[0])), threads)
	}}
)
