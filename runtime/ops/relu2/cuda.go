package relu2

import (
	_ "embed"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/grid"
)

//go:embed relu2.cu
var text string

var (
	forwardCUDA  = &device.Source{Text: text, Func: "relu2_forward", Grid: grid.Map}
	backwardCUDA = &device.Source{Text: text, Func: "relu2_backward", Grid: grid.Map}
)
