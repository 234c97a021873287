package relu

import (
	_ "embed"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/grid"
)

//go:embed relu.cu
var text string

var (
	forwardCUDA  = &device.Source{Text: text, Func: "relu_forward", Grid: grid.Map}
	backwardCUDA = &device.Source{Text: text, Func: "relu_backward", Grid: grid.Map}
)
