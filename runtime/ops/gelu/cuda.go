package gelu

import (
	_ "embed"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/grid"
)

//go:embed gelu.cu
var text string

var (
	forwardCUDA  = &device.Source{Text: text, Func: "gelu_forward", Grid: grid.Map, Spec: spec}
	backwardCUDA = &device.Source{Text: text, Func: "gelu_backward", Grid: grid.Map, Spec: spec}
)

func spec(a *device.Args) [4]int64 { return [4]int64{a.I[2]} }
