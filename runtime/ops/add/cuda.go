package add

import (
	_ "embed"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/grid"
)

//go:embed add.cu
var text string

var forwardCUDA = &device.Source{Text: text, Func: "add_forward", Grid: grid.Map}
