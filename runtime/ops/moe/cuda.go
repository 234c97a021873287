package moe

import (
	_ "embed"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/grid"
)

var (
	//go:embed rows.cu
	rowsText string
	//go:embed logits.cu
	logitsText string
	//go:embed logits_mma.cu
	logitsMMAText string
	//go:embed router.cu
	routerText string
)

const (
	unit        = 8    // elements that a thread of rows.cu and logits.cu moves at once
	block       = 256  // threads, and tokens of a block
	wideBlock   = 1024 // threads of kernels of one block a pool or layer
	weightLanes = 128  // threads of its blocks, of one or two columns each
	histTokens  = 4096
	digits      = 2048
	manyBlocks  = 1 << 16
	// mmaShared is less than the shared memory of every GPU with tensor cores for bf16, and more than
	// that of the emulation, which has none.
	mmaShared = 64 << 10
	// MaxExperts is how many experts a layer may have on a GPU.
	MaxExperts = 1024
)

func ceil(n, size int64) int64 { return (n + size - 1) / size }

// weightParts is the parts of the tokens, in logits.cu.
func weightParts(a *device.Args) int64 { return max(8, min(128, 1<<25/(a.I[1]*a.I[2]))) }

// weightWork is the sums of all parts.
func weightWork(a *device.Args) int64 { return 4 * weightParts(a) * a.I[1] * a.I[2] }

// units is the number of pieces of n rows of d elements.
func units(n, d int64) int64 {
	if d%unit == 0 {
		return n * d / unit
	}
	return n * d
}

// threads covers n pieces of work, with loops where there are very many.
func threads(n func(a *device.Args) int64) func(a *device.Args) device.Grid {
	return func(a *device.Args) device.Grid { return grid.Of(max(1, min(ceil(n(a), block), manyBlocks)), block) }
}

// tokens has a thread for every token, of kernels without such loops.
func tokens(a *device.Args) device.Grid { return grid.Of(max(1, ceil(a.I[0], block)), block) }

func rowsSource(name string, n func(a *device.Args) int64) *device.Source {
	return &device.Source{Text: rowsText, Func: name, Grid: threads(n)}
}

var (
	gatherCUDA          = rowsSource("moe_gather", func(a *device.Args) int64 { return units(a.I[0]*a.I[3], a.I[1]) })
	gatherBackwardCUDA  = rowsSource("moe_gather_backward", func(a *device.Args) int64 { return units(a.I[0], a.I[1]) })
	combineCUDA         = rowsSource("moe_combine", func(a *device.Args) int64 { return units(a.I[0], a.I[1]) })
	combineBackwardCUDA = rowsSource("moe_combine_backward", func(a *device.Args) int64 { return 32 * a.I[0] * a.I[3] })
)

var (
	logitsPlain = &device.Source{Text: logitsText, Func: "moe_logits_plain", Grid: threads(func(a *device.Args) int64 { return 32 * a.I[0] })}
	logitsMMA   = &device.Source{Text: logitsMMAText, Func: "moe_logits_mma", Grid: func(a *device.Args) device.Grid { return grid.Of(ceil(a.I[0], 16*block/32), block) }}
	logitsCUDA  = &device.Source{Pick: func(t device.Target, a *device.Args) *device.Source {
		if t.F32 || a.I[1]%16 != 0 || t.Major < 8 || t.Shared < mmaShared {
			return logitsPlain
		}
		return logitsMMA
	}}
	logitsInputCUDA = &device.Source{Text: logitsText, Func: "moe_logits_input",
		Grid: threads(func(a *device.Args) int64 { return units(ceil(a.I[0], 4), a.I[1]) })}
	logitsWeightCUDA = &device.Source{Text: logitsText, Func: "moe_logits_weight_parts",
		Grid: func(a *device.Args) device.Grid {
			size := ceil(a.I[0], weightParts(a))
			columns := weightLanes * (2 - a.I[1]%2)
			return device.Grid{X: int32(ceil(a.I[1], columns)), Y: int32(ceil(a.I[0], size)), Z: int32(ceil(a.I[2], 8)), Threads: weightLanes}
		},
		Work: weightWork,
		Next: &device.Source{Text: logitsText, Func: "moe_logits_weight", Grid: threads(func(a *device.Args) int64 { return a.I[1] * a.I[2] })}}
)

// selectWork is the scratch of a selection: Scratch of router.cu.
func selectWork(a *device.Args) int64 {
	r := routerOf(a)
	n, e := int64(r.Rows), int64(r.Experts)
	blocks := ceil(n, block)
	var at int64
	take := func(bytes int64) { at = roundUp(at+bytes, 64) }
	take(8 * 16)
	take(4 * 3 * digits)
	take(4 * e)
	take(4 * blocks * e)
	take(4 * blocks)
	take(4 * n * ceil(e, 32))
	if r.Balance == QuantileTop {
		take(8 * n)
	}
	if r.Balance == LossFree || r.Balance == QuantileTop {
		take(8 * n * e)
	}
	return at
}

func routerSource(name string, g func(a *device.Args) device.Grid) device.Source {
	return device.Source{Text: routerText, Func: name, Grid: g, Work: selectWork}
}

// chain makes launches that follow one another.
func chain(of ...device.Source) *device.Source {
	var next *device.Source
	for i := len(of) - 1; i >= 0; i-- {
		s := &device.Source{Text: of[i].Text, Func: of[i].Func, Grid: of[i].Grid, Work: of[i].Work, Next: next}
		next = s
	}
	return next
}

// The launches of a selection that a router may do without.
const (
	withPool       = 1 << iota // experts choose from sequences or micro-batches
	withBound                  // experts have a capacity
	withDrop                   // there may be more pairs than rows
	withHist                   // logits are counted
	selectVariants = 1 << iota
)

var selectChains = func() (out [selectVariants]*device.Source) {
	one := func(*device.Args) device.Grid { return grid.Of(1, wideBlock) }
	some := func(*device.Args) device.Grid { return grid.Of(132, block) }
	experts := func(a *device.Args) device.Grid { return grid.Of(a.I[2], wideBlock) }
	for v := range out {
		list := []device.Source{
			routerSource("moe_begin", threads(func(a *device.Args) int64 { return max(a.I[0]*ceil(a.I[2], 32), 32*a.I[2], digits) })),
			routerSource("moe_mark", tokens),
		}
		add := func(name string, g func(a *device.Args) device.Grid) { list = append(list, routerSource(name, g)) }
		if v&withPool != 0 {
			add("moe_choose", func(a *device.Args) device.Grid {
				g := experts(a)
				if a.I[8] == Sequence {
					g.Y = int32(min(max(1, a.I[0]/a.I[1]), grid.MaxY)) // the kernel goes on behind them
				}
				return g
			})
		}
		if v&withBound != 0 {
			add("moe_bound", experts)
		}
		add("moe_count", tokens)
		if v&withDrop != 0 {
			add("moe_keys0", some)
			add("moe_keys1", some)
			add("moe_keys2", some)
			add("moe_ties", func(*device.Args) device.Grid { return grid.Of(1, block) })
			add("moe_drop", tokens)
			add("moe_recount", tokens)
		}
		add("moe_scan", one)
		add("moe_layout", tokens)
		if v&withHist != 0 {
			add("moe_hist", histGrid)
		}
		out[v] = chain(list...)
	}
	return out
}()

func histGrid(a *device.Args) device.Grid {
	return device.Grid{X: int32(a.I[2]), Y: int32(ceil(a.I[0], histTokens)), Z: 1, Threads: block}
}

var (
	selectCUDA = &device.Source{Pick: func(_ device.Target, a *device.Args) *device.Source {
		r := routerOf(a)
		v := 0
		if r.Kind == Cutoff && (r.Pool == Sequence || r.Pool == Micro) {
			v |= withPool
		}
		if r.Kind == Cutoff && r.Capacity >= 0 {
			v |= withBound
		}
		if r.Kind == Cutoff && r.Slots < r.Experts || r.Kind == TopK && r.Slots < r.K {
			v |= withDrop
		}
		if r.hist() && !r.Observed {
			v |= withHist
		}
		return selectChains[v]
	}}
	observeCUDA = &device.Source{Text: routerText, Func: "moe_observe", Grid: histGrid, Work: selectWork}
	gateCUDA    = &device.Source{Text: routerText, Func: "moe_gate", Grid: tokens}
	advanceCUDA = &device.Source{Text: routerText, Func: "moe_advance", Grid: func(*device.Args) device.Grid { return grid.Of(1, wideBlock) }}
)

var gateBackwardCUDA = func() *device.Source {
	work := func(a *device.Args) int64 { return 4 * (1 + a.I[2]) }
	plain := &device.Source{Text: routerText, Func: "moe_gate_backward", Grid: tokens}
	counted := chain(
		device.Source{Text: routerText, Func: "moe_usage", Grid: func(*device.Args) device.Grid { return grid.Of(1, wideBlock) }, Work: work},
		device.Source{Text: routerText, Func: "moe_gate_backward", Grid: tokens, Work: work})
	return &device.Source{Pick: func(_ device.Target, a *device.Args) *device.Source {
		if r := routerOf(a); r.Balance == AuxMicro && r.Alpha != 0 {
			return counted
		}
		return plain
	}}
}()
