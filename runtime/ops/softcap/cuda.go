package softcap

import (
	_ "embed"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/grid"
)

//go:embed softcap.cu
var text string

var (
	forwardCUDA  = &device.Source{Text: text, Func: "softcap_forward", Grid: grid.Map}
	backwardCUDA = &device.Source{Text: text, Func: "softcap_backward", Grid: grid.Map}
)
