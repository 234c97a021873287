package rmsnorm

import (
	_ "embed"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/grid"
)

//go:embed rmsnorm.cu
var text string

var (
	forwardCUDA       = &device.Source{Text: text, Func: "rmsnorm_forward", Grid: teams, Spec: spec}
	backwardInputCUDA = &device.Source{Text: text, Func: "rmsnorm_backward_input", Grid: teams, Spec: spec}
	// The sums over rows do not depend on how rows are held, but share the text.
	backwardWeightCUDA = &device.Source{
		Text: text, Func: "rmsnorm_weight_terms", Spec: spec,
		Grid: func(a *device.Args) device.Grid { return grid.Columns(a.I[0], a.I[1]) },
		Work: func(a *device.Args) int64 { return grid.ColumnWork(a.I[0], a.I[1]) },
		Next: &device.Source{
			Text: text, Func: "rmsnorm_weight_sums", Spec: spec,
			Grid: func(a *device.Args) device.Grid { return grid.ColumnsEnd(a.I[2]) },
		},
	}
)

// A team of threads takes a group: I[2] elements of the row's I[1].

func spec(a *device.Args) [4]int64 {
	lanes, units := grid.Team(a.I[2])
	return [4]int64{lanes, units}
}

func teams(a *device.Args) device.Grid {
	lanes, _ := grid.Team(a.I[2])
	return grid.Rows(a.I[0]*(a.I[1]/a.I[2]), lanes)
}
