package mul

import (
	_ "embed"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/grid"
)

//go:embed mul.cu
var text string

var (
	forwardCUDA = &device.Source{Text: text, Func: "mul_forward", Grid: grid.Map}
	// Either gradient is dy times the other factor.
	backwardCUDA = &device.Source{Text: text, Func: "mul_backward", Grid: grid.Map}
)
