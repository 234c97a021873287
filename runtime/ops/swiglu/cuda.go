package swiglu

import (
	_ "embed"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/grid"
)

//go:embed swiglu.cu
var text string

var (
	forwardCUDA  = &device.Source{Text: text, Func: "swiglu_forward", Grid: grid.Map}
	backwardCUDA = &device.Source{Text: text, Func: "swiglu_backward", Grid: grid.Map}
)
