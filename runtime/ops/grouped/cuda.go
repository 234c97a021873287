package grouped

import (
	_ "embed"

	"github.com/megatrain/mtc/runtime/device"
	teams "github.com/megatrain/mtc/runtime/ops/internal/grid"
)

// The CUDA kernels of the products: plain.cu for any width in f32 arithmetic, mma.cu on tensor cores, wgmma.cu
// on those of Hopper.
var (
	//go:embed plain.cu
	plainText string
	//go:embed mma.cu
	mmaText string
	//go:embed wgmma.cu
	wgmmaText string
	//go:embed bias.cu
	biasText string
)

const (
	plainTile = 64
	mmaTile   = 128
	mmaShared = 3 * 2 * 128 * 40 * 2 // stages of two operands of 128 padded rows

	// wgmma.cu starts as many blocks as the largest Hopper has multiprocessors, one each. Its
	// scratch holds the maps and the order of up to maxExperts experts.
	wgmmaBlocks  = 132
	wgmmaShared  = 1024 + 4*48<<10
	wgmmaScratch = 16 << 10
	maxExperts   = 1024
)

// side is one of the three products.
type side uint8

const (
	rows   side = iota // of X and Y: forward
	inputs             // of DX
	weight             // of DWeight
)

var (
	forwardCUDA = pick(rows, "grouped_forward")
	inputCUDA   = pick(inputs, "grouped_input")
	weightCUDA  = pick(weight, "grouped_weight")
)

// pick makes the source that takes the fastest kernels that the GPU and the widths allow.
func pick(s side, name string) *device.Source {
	plain := &device.Source{Text: plainText, Func: name, Grid: grid(s, plainTile, 0)}
	mma := &device.Source{Text: mmaText, Func: name, Grid: grid(s, mmaTile, mmaShared)}
	wgmma := &device.Source{Text: wgmmaText, Func: name + "_prepare",
		Grid: func(*device.Args) device.Grid {
			return device.Grid{X: 1, Y: 1, Z: 1, Threads: 256, Shared: 1024}
		},
		Work: func(*device.Args) int64 { return wgmmaScratch },
		Next: &device.Source{Text: wgmmaText, Func: name,
			Grid: func(*device.Args) device.Grid {
				return device.Grid{X: wgmmaBlocks, Y: 1, Z: 1, Threads: 384, Shared: wgmmaShared}
			}}}
	return &device.Source{Pick: func(t device.Target, a *device.Args) *device.Source {
		in, out, experts := a.I[1], a.I[2], a.I[3]
		switch {
		case t.F32 || in%8 != 0 || out%8 != 0 || t.Shared < mmaShared:
			return plain
		case t.Major == 9 && t.Shared >= wgmmaShared && experts <= maxExperts:
			return wgmma
		}
		return mma
	}}
}

// grid covers the result with tiles. How many tiles of rows there are is known on the device
// alone, rows / tile + E at most; a block without one ends at once.
func grid(s side, tile int64, shared int32) func(*device.Args) device.Grid {
	tiles := func(n int64) int64 { return (n + tile - 1) / tile }
	return func(a *device.Args) (g device.Grid) {
		in, out, experts := a.I[1], a.I[2], a.I[3]
		switch s {
		case rows:
			g = teams.Tall(tiles(out), a.I[0]*a.I[4]/tile+experts, 256)
		case inputs:
			g = teams.Tall(tiles(in), a.I[0]*a.I[4]/tile+experts, 256)
		case weight:
			g = device.Grid{X: int32(tiles(in)), Y: int32(tiles(out)), Z: int32(experts), Threads: 256}
		}
		g.Shared = shared
		return g
	}
}

// biasParts is into how many parts bias.cu cuts the rows of an expert.
const biasParts = 16

func biasWork(a *device.Args) int64 { return 4 * biasParts * a.I[2] * a.I[3] }

var biasCUDA = &device.Source{
	Text: biasText, Func: "grouped_bias_parts",
	Grid: func(a *device.Args) device.Grid {
		return device.Grid{X: int32((a.I[2] + 255) / 256), Y: int32(a.I[3]), Z: biasParts, Threads: 256}
	},
	Work: biasWork,
	Next: &device.Source{Text: biasText, Func: "grouped_bias",
		Grid: func(a *device.Args) device.Grid {
			return device.Grid{X: int32((a.I[2]*a.I[3] + 255) / 256), Y: 1, Z: 1, Threads: 256}
		}},
}
