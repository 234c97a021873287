package qkrope

import (
	_ "embed"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/grid"
)

//go:embed qkrope.cu
var text string

var (
	forwardCUDA  = &device.Source{Pick: pickForward}
	backwardCUDA = &device.Source{Pick: pickBackward}

	turnCUDA     = turning(0)
	turnBackCUDA = turning(1)

	normCUDA = &device.Source{
		Text: text, Func: "qk_forward",
		Spec: func(a *device.Args) [4]int64 {
			lanes, units := grid.ForwardTeam(a.I[5])
			return [4]int64{lanes, units, a.I[7], a.I[6]}
		},
		Grid: func(a *device.Args) device.Grid {
			lanes, _ := grid.ForwardTeam(a.I[5])
			return grid.Rows(a.I[0]*(a.I[3]+a.I[4]), lanes)
		},
	}
	inputCUDA = &device.Source{
		Text: text, Func: "qk_backward",
		Spec: func(a *device.Args) [4]int64 {
			s := sweepSpec(a)
			s[2] += 4
			return s
		},
		Grid: func(a *device.Args) device.Grid {
			lanes, _ := grid.Team(a.I[5])
			g := grid.Rows(a.I[0]*a.I[3], lanes)
			if a.I[4] > 0 {
				g.X += grid.Rows(a.I[0]*a.I[4], lanes).X
			}
			return g
		},
	}
	sweepCUDA = &device.Source{
		Text: text, Func: "qk_backward", Spec: sweepSpec, Grid: sweepGrid, Work: sweepWork,
		Next: &device.Source{Text: text, Func: "qk_backward_sums", Spec: sweepSpec, Grid: func(a *device.Args) device.Grid {
			g := grid.ColumnsEnd(a.I[5])
			g.Y = 2
			return g
		}},
	}
)

func pickForward(_ device.Target, a *device.Args) *device.Source {
	if a.I[7] == None {
		return turnCUDA
	}
	return normCUDA
}

func pickBackward(_ device.Target, a *device.Args) *device.Source {
	switch {
	case a.I[7] == None:
		return turnBackCUDA
	case a.P[16].Nil() && a.P[17].Nil():
		return inputCUDA
	}
	return sweepCUDA
}

// sharedHeads is qkrope.cu's HEADS.
const sharedHeads = 4

// turning is the launch without norms; back turns the other way.
func turning(back int64) *device.Source {
	return &device.Source{
		Text: text, Func: "qk_turn",
		Spec: func(a *device.Args) [4]int64 { return [4]int64{back, 0, None, a.I[6]} },
		Grid: func(a *device.Args) device.Grid {
			g, _ := grid.Items(a.I[0], a.I[5]/16*((a.I[3]+a.I[4]+sharedHeads-1)/sharedHeads))
			return g
		},
	}
}

func sweepSpec(a *device.Args) [4]int64 {
	lanes, units := grid.Team(a.I[5])
	return [4]int64{lanes, units, a.I[7], a.I[6]}
}

// sweepGrid has the blocks that rmsnorm would have for q, then those for k.
func sweepGrid(a *device.Args) device.Grid {
	lanes, units := grid.Team(a.I[5])
	g := grid.Sweep(a.I[0]*a.I[3], lanes, units, 1)
	if a.I[4] > 0 {
		g.X += grid.Sweep(a.I[0]*a.I[4], lanes, units, 1).X
	}
	return g
}

func sweepWork(a *device.Args) int64 { return 4 * int64(sweepGrid(a).X) * a.I[5] }
