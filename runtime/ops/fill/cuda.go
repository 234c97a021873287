package fill

import (
	_ "embed"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/grid"
)

//go:embed fill.cu
var text string

var forwardCUDA = &device.Source{
	Text: text, Func: "fill_forward",
	Grid: func(a *device.Args) device.Grid { return grid.Elements(a.I[0]) },
}
