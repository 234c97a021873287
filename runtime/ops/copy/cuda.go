package copy

import (
	_ "embed"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/grid"
)

//go:embed copy.cu
var text string

var forwardCUDA = &device.Source{Text: text, Func: "copy_forward", Grid: grid.Map}
