package scale

import (
	_ "embed"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/grid"
)

//go:embed scale.cu
var text string

var (
	forwardCUDA  = &device.Source{Text: text, Func: "scale_forward", Grid: grid.Map}
	backwardCUDA = &device.Source{Text: text, Func: "scale_backward", Grid: grid.Map}
)
