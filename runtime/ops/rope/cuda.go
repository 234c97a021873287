package rope

import (
	_ "embed"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/grid"
)

//go:embed rope.cu
var text string

var (
	forwardCUDA  = either(0)
	backwardCUDA = either(1)
)

// either takes whole units where all is aligned and all of a head turns; back turns the other way.
func either(back int64) *device.Source {
	spec := func(a *device.Args) [4]int64 { return [4]int64{a.I[5], back} }
	heads := &device.Source{Text: text, Func: "rope_heads", Grid: headsGrid, Spec: spec}
	pairs := &device.Source{Text: text, Func: "rope_pairs", Grid: pairsGrid, Spec: spec}
	part := &device.Source{Text: text, Func: "rope_part", Grid: pairsGrid, Spec: spec}
	return &device.Source{Pick: func(_ device.Target, a *device.Args) *device.Source {
		if a.I[6] != a.I[4] {
			return part
		}
		if a.I[4]%16 == 0 && grid.Aligned(a.P[0], a.P[1], a.P[2], a.P[3]) {
			return heads
		}
		return pairs
	}}
}

// sharedHeads is rope.cu's HEADS.
const sharedHeads = 4

func headsGrid(a *device.Args) device.Grid {
	heads := a.I[3] / a.I[4]
	g, _ := grid.Items(a.I[0], a.I[4]/16*((heads+sharedHeads-1)/sharedHeads))
	return g
}

// pairsGrid gives each row ceil(D / 16) threads, of 8 pairs each.
func pairsGrid(a *device.Args) device.Grid {
	g, _ := grid.Items(a.I[0], (a.I[3]+15)/16)
	return g
}
