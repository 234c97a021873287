package grouped

import (
	_ "embed"

	"github.com/megatrain/mtc/runtime/device"
	teams "github.com/megatrain/mtc/runtime/ops/internal/grid"
)

//go:embed norm.cu
var normText string

var (
	normCUDA       = &device.Source{Text: normText, Func: "grouped_norm", Grid: normGrid(teams.ForwardTeam), Spec: normSpec(teams.ForwardTeam)}
	normInputCUDA  = &device.Source{Text: normText, Func: "grouped_norm_input", Grid: normGrid(teams.Team), Spec: normSpec(teams.Team)}
	normWeightCUDA = &device.Source{
		Text: normText, Func: "grouped_norm_parts",
		Grid: func(a *device.Args) device.Grid {
			return device.Grid{X: int32((a.I[1] + 255) / 256), Y: int32(a.I[2]), Z: biasParts, Threads: 256}
		},
		Work: normWork,
		Next: &device.Source{Text: normText, Func: "grouped_norm_sums",
			Grid: func(a *device.Args) device.Grid { return teams.Of((a.I[1]*a.I[2]+255)/256, 256) }},
	}
)

func normWork(a *device.Args) int64 { return 2 * 4 * biasParts * a.I[1] * a.I[2] }

// A team of threads takes a group of I[4] elements of a row; blocks behind the last row in use end at once.

func normGrid(team func(int64) (int64, int64)) func(*device.Args) device.Grid {
	return func(a *device.Args) device.Grid {
		lanes, _ := team(a.I[4])
		return teams.Rows(a.I[0]*a.I[3]*(a.I[1]/a.I[4]), lanes)
	}
}

func normSpec(team func(int64) (int64, int64)) func(*device.Args) [4]int64 {
	return func(a *device.Args) [4]int64 {
		lanes, units := team(a.I[4])
		return [4]int64{lanes, units}
	}
}
