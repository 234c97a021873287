package rmsnorm

import (
	_ "embed"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/grid"
)

//go:embed rmsnorm.cu
var text string

var (
	forwardCUDA  = &device.Source{Text: text, Func: "rmsnorm_forward", Grid: forwardTeams, Spec: forwardSpec}
	backwardCUDA = &device.Source{Pick: pick}
	sweepCUDA    = &device.Source{
		Text: text, Func: "rmsnorm_backward", Spec: spec,
		Grid: func(a *device.Args) device.Grid {
			lanes, units := grid.SweepTeam(a.I[2])
			return grid.Sweep(groups(a), lanes, units, 1)
		},
		Work: func(a *device.Args) int64 {
			lanes, units := grid.SweepTeam(a.I[2])
			return grid.SweepWork(groups(a), lanes, units, 1, a.I[2])
		},
		Next: &device.Source{Text: text, Func: "rmsnorm_backward_sums", Spec: spec, Grid: ends},
	}
	inputCUDA = &device.Source{Text: text, Func: "rmsnorm_backward_input", Grid: teams, Spec: spec}
	apartCUDA = &device.Source{
		Text: text, Func: "rmsnorm_weight_terms", Spec: spec,
		Grid: func(a *device.Args) device.Grid { return grid.Columns(a.I[0], a.I[1]) },
		Work: func(a *device.Args) int64 { return grid.ColumnWork(a.I[0], a.I[1]) },
		Next: &device.Source{Text: text, Func: "rmsnorm_weight_sums", Spec: spec, Grid: ends, Next: inputCUDA},
	}
)

// pick takes the sweep where groups are held and aligned.
func pick(_ device.Target, a *device.Args) *device.Source {
	lanes, units := grid.SweepTeam(a.I[2])
	switch {
	case a.P[7].Nil():
		return inputCUDA
	case grid.Sweeps(lanes, units) && grid.Aligned(a.P[0], a.P[1], a.P[3], a.P[4], a.P[5]):
		return sweepCUDA
	}
	return apartCUDA
}

// A team of threads takes a group: I[2] elements of the row's I[1].

// Forward holds one tensor.
func forwardSpec(a *device.Args) [4]int64 {
	lanes, units := grid.ForwardTeam(a.I[2])
	return [4]int64{lanes, units}
}

func forwardTeams(a *device.Args) device.Grid {
	lanes, _ := grid.ForwardTeam(a.I[2])
	return grid.Rows(groups(a), lanes)
}

func spec(a *device.Args) [4]int64 {
	lanes, units := grid.SweepTeam(a.I[2])
	return [4]int64{lanes, units}
}

func teams(a *device.Args) device.Grid {
	lanes, _ := grid.SweepTeam(a.I[2])
	return grid.Rows(groups(a), lanes)
}

func groups(a *device.Args) int64 { return a.I[0] * (a.I[1] / a.I[2]) }

func ends(a *device.Args) device.Grid { return grid.ColumnsEnd(a.I[2]) }
