package sub

import (
	_ "embed"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/grid"
)

//go:embed sub.cu
var text string

var (
	forwardCUDA   = &device.Source{Text: text, Func: "sub_forward", Grid: grid.Map}
	backwardACUDA = &device.Source{Text: text, Func: "sub_backward_a", Grid: grid.Map}
	backwardBCUDA = &device.Source{Text: text, Func: "sub_backward_b", Grid: grid.Map}
)
