package layernorm

import (
	_ "embed"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/grid"
)

var (
	//go:embed layernorm.cu
	text string
	//go:embed teams.cu
	teamsText string
)

var (
	forwardCUDA  = &device.Source{Text: text, Func: "layernorm_forward", Grid: forwardTeams, Spec: forwardSpec}
	backwardCUDA = &device.Source{Pick: pick}
	sweepCUDA    = &device.Source{
		Text: text, Func: "layernorm_backward", Spec: spec,
		Grid: func(a *device.Args) device.Grid {
			lanes, units := grid.Team(a.I[1])
			return grid.Sweep(a.I[0], lanes, units, 2)
		},
		Work: func(a *device.Args) int64 {
			lanes, units := grid.Team(a.I[1])
			return grid.SweepWork(a.I[0], lanes, units, 2, a.I[1])
		},
		Next: &device.Source{
			Text: text, Func: "layernorm_backward_sums", Spec: spec,
			Grid: func(a *device.Args) device.Grid { return grid.ColumnsEnd(2 * a.I[1]) },
		},
	}
	teamsCUDA = &device.Source{
		Text: teamsText, Func: "layernorm_teams", Spec: warps,
		Grid: func(a *device.Args) device.Grid {
			g := grid.Of(teamBlocks(a), teamThreads)
			g.Shared = int32(4*teamParts + teamThreads/(32*warps(a)[0])*2*4*a.I[1])
			return g
		},
		Work: func(a *device.Args) int64 { return teamBlocks(a) * 2 * 4 * a.I[1] },
		Next: &device.Source{
			Text: teamsText, Func: "layernorm_teams_sums", Spec: warps,
			Grid: func(a *device.Args) device.Grid { return grid.Of(2*a.I[1]/16, 256) },
		},
	}
	inputCUDA = &device.Source{Text: text, Func: "layernorm_backward_input", Grid: teams, Spec: spec}
	apartCUDA = columns("layernorm_weight_terms", "layernorm_weight_sums", columns("layernorm_bias_terms", "layernorm_bias_sums", inputCUDA))
)

// pick takes a sweep where rows are held and aligned.
func pick(t device.Target, a *device.Args) *device.Source {
	lanes, units := grid.Team(a.I[1])
	whole := grid.Aligned(a.P[0], a.P[1], a.P[4], a.P[5], a.P[6])
	switch {
	case a.P[8].Nil() && a.P[10].Nil():
		return inputCUDA
	case whole && !t.F32 && lanes == 32 && units >= 2 && teamShared <= t.Shared:
		return teamsCUDA
	case whole && grid.Sweeps(lanes, units):
		return sweepCUDA
	}
	return apartCUDA
}

// The sweep of teams.cu, whose constants these are: rows that have 2 to 4 warps, of up to 256 elements each.
const (
	teamThreads = 768
	teamMost    = 132 // blocks
	teamParts   = 4 * teamThreads / 32
	teamShared  = 4*teamParts + 2*4*256*teamThreads/32 // at most
)

func warps(a *device.Args) [4]int64 { return [4]int64{(a.I[1] + 255) / 256} }

func teamBlocks(a *device.Args) int64 {
	teams := teamThreads / (32 * warps(a)[0])
	return max(1, min(teamMost, (a.I[0]+teams-1)/teams))
}

// A team of threads takes a row of I[1] elements.

// Forward holds one tensor.
func forwardSpec(a *device.Args) [4]int64 {
	lanes, units := grid.ForwardTeam(a.I[1])
	return [4]int64{lanes, units}
}

func forwardTeams(a *device.Args) device.Grid {
	lanes, _ := grid.ForwardTeam(a.I[1])
	return grid.Rows(a.I[0], lanes)
}

func spec(a *device.Args) [4]int64 {
	lanes, units := grid.Team(a.I[1])
	return [4]int64{lanes, units}
}

func teams(a *device.Args) device.Grid {
	lanes, _ := grid.Team(a.I[1])
	return grid.Rows(a.I[0], lanes)
}

func columns(terms, sums string, next *device.Source) *device.Source {
	return &device.Source{
		Text: text, Func: terms, Spec: spec,
		Grid: func(a *device.Args) device.Grid { return grid.Columns(a.I[0], a.I[1]) },
		Work: func(a *device.Args) int64 { return grid.ColumnWork(a.I[0], a.I[1]) },
		Next: &device.Source{
			Text: text, Func: sums, Spec: spec, Next: next,
			Grid: func(a *device.Args) device.Grid { return grid.ColumnsEnd(a.I[1]) },
		},
	}
}
