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
	bins    = 512
	binBits = 9
	chunk   = 1024
	tile    = 64
	slice   = 128 // SLICE
	width   = 4   // COLUMNS
)

// Up to sortRows rows of small enough ids are grouped by one launch, whose blocks have sortShared bytes of
// shared memory: ids, rows, and counts of 32 warps.
const (
	groups     = 128
	groupTable = 1 << 26
	sortRows   = 8192
	sortShared = 4*sortRows + 2*sortRows + 2*bins*32
	sortStatic = 1 << 10 // more than its static shared memory
)

// chains are the launches by the passes of the sort, 0 for that of one launch, and by whether the table
// is begun: it is not where what is added to is the table itself.
var chains [4][2]*device.Source

func init() {
	for passes := range chains {
		for begun := range chains[passes] {
			chains[passes][begun] = chain(passes, begun == 0)
		}
	}
}

var backwardWeightCUDA = &device.Source{Pick: func(t device.Target, a *device.Args) *device.Source {
	passes, begun := 1, 0
	for passes < 3 && (a.I[1]-1)>>(binBits*passes) != 0 {
		passes++
	}
	if a.I[0] <= sortRows && a.I[1] <= groupTable && sortShared+sortStatic <= int64(t.Shared) {
		passes = 0
	}
	if a.P[2] == a.P[3] {
		begun = 1
	}
	return chains[passes][begun]
}}

func chain(passes int, start bool) *device.Source {
	var launches []device.Source
	if start {
		launches = append(launches, device.Source{Func: "embed_start", Grid: table})
	}
	if passes == 0 {
		launches = append(launches, device.Source{Func: "embed_group", Grid: grouper})
	}
	for p := range passes {
		n := string(rune('0' + p))
		launches = append(launches, device.Source{Func: "embed_count" + n, Grid: chunks}, device.Source{Func: "embed_place" + n, Grid: chunks})
	}
	launches = append(launches, device.Source{Func: "embed_tiles", Grid: tiles, Work: work})
	var next *device.Source
	for i := len(launches) - 1; i >= 0; i-- {
		l := &launches[i]
		next = &device.Source{Text: text, Func: l.Func, Grid: l.Grid, Work: l.Work, Next: next}
	}
	return next
}

// table goes over the whole table.
func table(a *device.Args) device.Grid { return grid.Elements(a.I[1] * a.I[2]) }

func chunks(a *device.Args) device.Grid { return grid.Of(ceil(a.I[0], chunk), chunk) }

func grouper(*device.Args) device.Grid {
	return device.Grid{X: groups, Y: 1, Z: 1, Threads: 1024, Shared: sortShared}
}

// numSlices is how many equal slices of up to 128 threads with 4 columns each the columns are cut into.
func numSlices(a *device.Args) int64 { return ceil(ceil(a.I[2], width), slice) }

func tiles(a *device.Args) device.Grid {
	units, slices := ceil(a.I[2], width), numSlices(a)
	return device.Grid{X: int32(ceil(a.I[0], tile)), Y: int32(slices), Z: 1, Threads: int32(ceil(ceil(units, slices), 32) * 32)}
}

// work holds two lists of sorted rows, the counts of the sort, those of the blocks that are done with a long run,
// and its parts.
func work(a *device.Args) int64 {
	rows := a.I[0]
	round := func(n int64) int64 { return ceil(n, 16) * 16 }
	return 2*round(8*rows) + round(4*bins*ceil(rows, chunk)) + round(4*ceil(rows, tile)*numSlices(a)) + 2*4*ceil(rows, tile)*a.I[2]
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }
