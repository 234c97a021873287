package sigmoid

import (
	_ "embed"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/grid"
)

//go:embed sigmoid.cu
var text string

var (
	forwardCUDA  = &device.Source{Text: text, Func: "sigmoid_forward", Grid: grid.Map}
	backwardCUDA = &device.Source{Text: text, Func: "sigmoid_backward", Grid: grid.Map}
)
