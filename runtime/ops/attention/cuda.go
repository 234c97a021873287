package attention

import (
	_ "embed"

	"github.com/megatrain/mtc/runtime/device"
)

// The CUDA kernels: plain.cu for any head in f32 arithmetic, mma.cu on tensor cores, wgmma.cu
// on those of Hopper.
var (
	//go:embed plain.cu
	plainText string
	//go:embed mma.cu
	mmaText string
	//go:embed wgmma.cu
	wgmmaText string
)

const (
	plainRows  = 4   // rows of a block of plain.cu, a warp each
	mmaMaxHead = 256 // of mma.cu, whose heads are multiples of 16
	statRows   = 128 // rows of scratch are padded to a multiple of it
	copyBlock  = 256 // threads of a block that copies

	// wgmma.cu starts as many blocks as the largest Hopper has multiprocessors, one each. Those
	// that find no tile left end at once.
	wgmmaBlocks  = 132
	wgmmaScratch = 1024      // maps and counters
	wgmmaShared  = 227 << 10 // what a block of Hopper may have
)

var (
	plainForward  = &device.Source{Text: plainText, Func: "attention_forward", Grid: plainGrid(heads), Spec: spec}
	plainBackward = &device.Source{Text: plainText, Func: "attention_stats", Grid: plainGrid(heads), Spec: spec, Work: plainWork,
		Next: &device.Source{Text: plainText, Func: "attention_dkdv", Grid: plainGrid(kvHeads), Spec: spec,
			Next: &device.Source{Text: plainText, Func: "attention_dq", Grid: plainGrid(heads), Spec: spec}}}
	plainCached = &device.Source{Text: plainText, Func: "attention_store", Grid: storeGrid(1), Spec: spec,
		Next: &device.Source{Text: plainText, Func: "attention_cached", Grid: plainGrid(heads), Spec: spec}}

	mmaForward  = &device.Source{Text: mmaText, Func: "attention_forward", Grid: mmaForwardGrid, Spec: spec}
	mmaBackward = &device.Source{Text: mmaText, Func: "attention_stats", Grid: statsGrid, Spec: spec, Work: statsWork,
		Next: &device.Source{Text: mmaText, Func: "attention_dkdv", Grid: mmaKeysGrid, Spec: spec,
			Next: &device.Source{Text: mmaText, Func: "attention_dq", Grid: mmaQueriesGrid, Spec: spec}}}
	mmaCached = &device.Source{Text: mmaText, Func: "attention_store", Grid: storeGrid(8), Spec: spec,
		Next: &device.Source{Text: mmaText, Func: "attention_cached", Grid: mmaCachedGrid, Spec: spec}}

	wgmmaForward = &device.Source{Text: wgmmaText, Func: "attention_maps", Grid: mapsGrid, Spec: spec, Work: mapsWork,
		Next: &device.Source{Text: wgmmaText, Func: "attention_forward", Grid: wgmmaForwardGrid, Spec: spec}}
	wgmmaBackward = &device.Source{Text: wgmmaText, Func: "attention_stats", Grid: wgmmaStatsGrid, Spec: spec, Work: wgmmaWork,
		Next: &device.Source{Text: wgmmaText, Func: "attention_dkdv", Grid: wgmmaBackwardGrid, Spec: spec,
			Next: &device.Source{Text: wgmmaText, Func: "attention_dq", Grid: wgmmaBackwardGrid, Spec: spec}}}
	wgmmaCached = &device.Source{Text: wgmmaText, Func: "attention_store", Grid: wgmmaStoreGrid, Spec: spec, Work: mapsWork,
		Next: &device.Source{Text: wgmmaText, Func: "attention_cached", Grid: wgmmaForwardGrid, Spec: spec}}
)

// kind is a family of kernels. Forward and ForwardCached of a program are of one family, since
// their rows have the same bits.
type kind uint8

const (
	plain kind = iota
	mma
	wgmma
)

// kindOf chooses the fastest family that takes the call.
func kindOf(t device.Target, a *device.Args) kind {
	hd := a.I[5]
	if t.F32 || hd%16 != 0 || hd > mmaMaxHead || mmaShared(hd) > t.Shared {
		return plain
	}
	// wgmma.cu takes no rows of several documents.
	if a.I[8] == 0 && t.Major == 9 && (hd == 64 || hd == 128) && t.Shared >= wgmmaShared {
		return wgmma
	}
	return mma
}

// pick makes a source of the families' sources.
func pick(of ...*device.Source) *device.Source {
	return &device.Source{Pick: func(t device.Target, a *device.Args) *device.Source { return of[kindOf(t, a)] }}
}

var (
	forwardCUDA  = pick(plainForward, mmaForward, wgmmaForward)
	backwardCUDA = pick(plainBackward, mmaBackward, wgmmaBackward)
	cachedCUDA   = pick(plainCached, mmaCached, wgmmaCached)
)

// spec: S0 is the head dim, S1 says whether there is a soft cap, S2 whether documents share rows.
func spec(a *device.Args) [4]int64 {
	s := [4]int64{a.I[5], 0, a.I[8]}
	if a.F[0] > 0 {
		s[1] = 1
	}
	return s
}

func tokens(a *device.Args) int64  { return a.I[0] * a.I[1] }
func heads(a *device.Args) int64   { return a.I[3] }
func kvHeads(a *device.Args) int64 { return a.I[4] }

func blocks(n, size int64) int32 { return int32((n + size - 1) / size) }

// plainGrid has a warp for every row of that many heads.
func plainGrid(heads func(*device.Args) int64) func(*device.Args) device.Grid {
	return func(a *device.Args) device.Grid {
		return device.Grid{X: blocks(tokens(a)*heads(a), plainRows), Y: 1, Z: 1, Threads: 32 * plainRows}
	}
}

// storeGrid has a thread for every vec elements of the new keys.
func storeGrid(vec int64) func(*device.Args) device.Grid {
	return func(a *device.Args) device.Grid {
		return device.Grid{X: blocks(tokens(a)*kvHeads(a)*a.I[5], vec*copyBlock), Y: 1, Z: 1, Threads: copyBlock}
	}
}

// plainWork is a float32 for every row of every head.
func plainWork(a *device.Args) int64 { return 4 * tokens(a) * heads(a) }

func paddedSeq(a *device.Args) int64 { return (a.I[1] + statRows - 1) / statRows * statRows }

// statsWork is two float32 for every row of every head, rows padded.
func statsWork(a *device.Args) int64 { return 8 * a.I[0] * heads(a) * paddedSeq(a) }

// statsGrid has enough lanes to read a row of a head in pieces of 16 bytes.
func statsGrid(a *device.Args) device.Grid {
	lanes := int64(2)
	for lanes*8 < a.I[5] && lanes < 32 {
		lanes *= 2
	}
	return device.Grid{X: blocks(a.I[0]*heads(a)*paddedSeq(a)*lanes, 256), Y: 1, Z: 1, Threads: 256}
}

// mmaShared is the shared memory of mma.cu's blocks: 256 padded rows, 192 of wide heads.
func mmaShared(hd int64) int32 {
	if hd <= 128 {
		return int32(256 * (hd + 8) * 2)
	}
	return int32(192 * (hd + 8) * 2)
}

// mmaQueries is the number of queries of a block of mma.cu's forward pass.
func mmaQueries(a *device.Args) int64 {
	if a.I[5] <= 128 {
		return 128
	}
	return 64
}

func mmaForwardGrid(a *device.Args) device.Grid {
	m := mmaQueries(a)
	return device.Grid{X: int32(a.I[0] * heads(a)), Y: blocks(a.I[1], m), Z: 1, Threads: int32(2 * m), Shared: mmaShared(a.I[5])}
}

func mmaCachedGrid(a *device.Args) device.Grid {
	m := mmaQueries(a)
	return device.Grid{X: int32(heads(a)), Y: blocks(tokens(a), m), Z: 1, Threads: int32(2 * m), Shared: mmaShared(a.I[5])}
}

func mmaKeysGrid(a *device.Args) device.Grid {
	g := device.Grid{X: int32(a.I[0] * kvHeads(a)), Y: blocks(a.I[1], 64), Z: 1, Threads: 128, Shared: mmaShared(a.I[5])}
	if a.I[5] > 128 {
		g.Z = 2
	}
	return g
}

func mmaQueriesGrid(a *device.Args) device.Grid {
	return device.Grid{X: int32(a.I[0] * heads(a)), Y: blocks(a.I[1], 64), Z: 1, Threads: 128, Shared: mmaShared(a.I[5])}
}

func mapsGrid(*device.Args) device.Grid {
	return device.Grid{X: 1, Y: 1, Z: 1, Threads: 32, Shared: 1024}
}

func mapsWork(*device.Args) int64 { return wgmmaScratch }

func wgmmaWork(a *device.Args) int64 { return wgmmaScratch + statsWork(a) }

// wgmmaForwardGrid: a tile of 64 queries for each of two or three computing groups, and six
// tiles of 128 keys or values.
func wgmmaForwardGrid(a *device.Args) device.Grid {
	groups := int64(2)
	if a.I[5] == 64 {
		groups = 3
	}
	return device.Grid{X: wgmmaBlocks, Y: 1, Z: 1, Threads: int32(128 * (groups + 1)),
		Shared: int32(1024 + 2*a.I[5]*(64*groups+6*128))}
}

// wgmmaBackwardGrid: 128 rows of two tensors that a block owns, and four slots of rows of two
// tensors that it streams, 256 of heads of 64 and 128 of heads of 128.
func wgmmaBackwardGrid(a *device.Args) device.Grid {
	streamed := int64(512)
	if a.I[5] == 64 {
		streamed = 1024
	}
	return device.Grid{X: wgmmaBlocks, Y: 1, Z: 1, Threads: 384, Shared: int32(5120 + 2*a.I[5]*(256+streamed))}
}

func wgmmaStatsGrid(a *device.Args) device.Grid {
	g := statsGrid(a)
	g.Shared = 1024
	return g
}

func wgmmaStoreGrid(a *device.Args) device.Grid {
	g := storeGrid(8)(a)
	g.Shared = 1024
	return g
}
