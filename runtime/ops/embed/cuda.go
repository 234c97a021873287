package embed

import (
	_ "embed"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/grid"
)

//go:embed embed.cu
var text string

var forwardCUDA = &device.Source{
	Text: text, Func: "embed_forward",
	Grid: func(a *device.Args) device.Grid {
		g, _ := grid.Items(a.I[0], (a.I[2]+7)/8)
		return g
	},
}

// The backward pass is a chain of launches, told in embed.cu, whose constants these are.
const (
	bins  = 512
	chunk = 512
	tile  = 64
)

var backwardWeightCUDA = chain(
	device.Source{Func: "embed_start", Grid: start, Work: work},
	device.Source{Func: "embed_count0", Grid: chunks}, device.Source{Func: "embed_scan0", Grid: one}, device.Source{Func: "embed_place0", Grid: chunks},
	device.Source{Func: "embed_count1", Grid: chunks}, device.Source{Func: "embed_scan1", Grid: one}, device.Source{Func: "embed_place1", Grid: chunks},
	device.Source{Func: "embed_count2", Grid: chunks}, device.Source{Func: "embed_scan2", Grid: one}, device.Source{Func: "embed_place2", Grid: chunks},
	device.Source{Func: "embed_tiles", Grid: tiles},
	device.Source{Func: "embed_join", Grid: tiles},
)

// chain links launches of this room's text.
func chain(launches ...device.Source) *device.Source {
	var next *device.Source
	for i := len(launches) - 1; i >= 0; i-- {
		l := &launches[i]
		next = &device.Source{Text: text, Func: l.Func, Grid: l.Grid, Work: l.Work, Next: next}
	}
	return next
}

// start goes over the whole table, unless what is added to is the table itself.
func start(a *device.Args) device.Grid {
	if a.P[2] == a.P[3] {
		return grid.Of(1, 256)
	}
	return grid.Elements(a.I[1] * a.I[2])
}

func chunks(a *device.Args) device.Grid { return grid.Of(ceil(a.I[0], chunk), 32) }

func one(*device.Args) device.Grid { return grid.Of(1, 1024) }

// tiles cuts the columns into equal slices of up to 256 threads with 8 columns each.
func tiles(a *device.Args) device.Grid {
	units := ceil(a.I[2], 8)
	slices := ceil(units, 256)
	return device.Grid{X: int32(ceil(a.I[0], tile)), Y: int32(slices), Z: 1, Threads: int32(ceil(ceil(units, slices), 32) * 32)}
}

// work holds two lists of sorted rows, the counts of the sort, and the parts of long runs.
func work(a *device.Args) int64 {
	rows := a.I[0]
	round := func(n int64) int64 { return ceil(n, 16) * 16 }
	return 2*round(8*rows) + round(4*bins*ceil(rows, chunk)) + 2*4*ceil(rows, tile)*a.I[2]
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }
