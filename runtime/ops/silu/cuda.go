package silu

import (
	_ "embed"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/grid"
)

//go:embed silu.cu
var text string

var (
	forwardCUDA  = &device.Source{Text: text, Func: "silu_forward", Grid: grid.Map}
	backwardCUDA = &device.Source{Text: text, Func: "silu_backward", Grid: grid.Map}
)
