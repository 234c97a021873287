package layernorm

import (
	_ "embed"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/grid"
)

//go:embed layernorm.cu
var text string

var (
	forwardCUDA       = &device.Source{Text: text, Func: "layernorm_forward", Grid: teams, Spec: spec}
	backwardInputCUDA = &device.Source{Text: text, Func: "layernorm_backward_input", Grid: teams, Spec: spec}
	// The sums over rows do not depend on how rows are held, but share the text.
	backwardWeightCUDA = columns("layernorm_weight_terms", "layernorm_weight_sums")
	backwardBiasCUDA   = columns("layernorm_bias_terms", "layernorm_bias_sums")
)

// A team of threads takes a row of I[1] elements.

func spec(a *device.Args) [4]int64 {
	lanes, units := grid.Team(a.I[1])
	return [4]int64{lanes, units}
}

func teams(a *device.Args) device.Grid {
	lanes, _ := grid.Team(a.I[1])
	return grid.Rows(a.I[0], lanes)
}

func columns(terms, sums string) *device.Source {
	return &device.Source{
		Text: text, Func: terms, Spec: spec,
		Grid: func(a *device.Args) device.Grid { return grid.Columns(a.I[0], a.I[1]) },
		Work: func(a *device.Args) int64 { return grid.ColumnWork(a.I[0], a.I[1]) },
		Next: &device.Source{
			Text: text, Func: sums, Spec: spec,
			Grid: func(a *device.Args) device.Grid { return grid.ColumnsEnd(a.I[1]) },
		},
	}
}
