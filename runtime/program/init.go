package program

import (
	"hash/fnv"
	"math"
	"sync"

	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/cores"
	"github.com/megatrain/mtc/runtime/engine"
	"github.com/megatrain/mtc/runtime/plan"
)

// initialize fills the weights of a fresh model that learn; moments are zero already, and frozen
// weights are loaded. Element i of a
// parameter is a pure function of the seed, the parameter's path and i, so it does not depend
// on placement, slabs, threads or what else the model has.
func initialize(e *engine.Engine, seed int64) error {
	state := slabs{e: e, fresh: true}
	for i := range e.Plan().Trained() {
		s := &e.Plan().Slabs[i]
		initSlab(s, checkpoint.MastersOf(s, state.view), seed)
	}
	return state.end()
}

// piece is a part of a parameter that one core fills.
type piece struct {
	off, n int64 // in the slab
	key    uint64
	from   int64 // in the parameter
	init   plan.Init
}

// initPiece is the most elements of a piece; even: a pair of normals is never cut.
const initPiece = 1 << 16

// pieceRooms is memory for pieces, used again: left to the collector it would grow with what is staged.
var pieceRooms = sync.Pool{New: func() any { return new([initPiece]float32) }}

func piecesOf(s *plan.Slab, seed int64) []piece {
	var out []piece
	for _, p := range s.Params {
		n := elems(p.Shape)
		for from := int64(0); from < n; from += initPiece {
			to := min(from+initPiece, n)
			out = append(out, piece{p.Off + from, to - from, paramKey(seed, p.Name), from, p.Init})
		}
	}
	return out
}

// initSlab fills one slab's weights, on all cores. In host memory this is where they are first
// touched.
func initSlab(s *plan.Slab, masters checkpoint.Masters, seed int64) {
	pieces := piecesOf(s, seed)
	cores.Each(int64(len(pieces)), 1, func(i, _ int64) {
		p := &pieces[i]
		if !masters.Split() {
			fillInit(masters.Range(p.off, p.n), p.key, p.from, p.init)
			return
		}
		room := pieceRooms.Get().(*[initPiece]float32)
		defer pieceRooms.Put(room)
		block := room[:p.n] // masters before they are split
		fillInit(block, p.key, p.from, p.init)
		masters.Write(p.off, block)
	})
}

func elems(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}

// paramKey derives a parameter's stream from the seed and its path.
func paramKey(seed int64, path string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(path))
	return mix(mix(uint64(seed)+golden) ^ h.Sum64())
}

const golden = 0x9e3779b97f4a7c15

// mix is the finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014); of key + n * golden it
// gives that generator's n-th word, in any order.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// unit is word n of a stream as a number in [0, 1) with 53 bits.
func unit(key uint64, n int64) float64 {
	return float64(mix(key+uint64(n+1)*golden)>>11) / (1 << 53)
}

// fillInit writes elements from, from+1, ... of a parameter; from is even. Normals come in
// pairs from two uniforms (Box and Muller, 1958).
func fillInit(dst []float32, key uint64, from int64, in plan.Init) {
	switch in.Kind {
	case plan.InitZero:
		clear(dst)
	case plan.InitOne:
		for i := range dst {
			dst[i] = 1
		}
	case plan.InitUniform:
		for i := range dst {
			dst[i] = float32(in.Scale * (2*unit(key, from+int64(i)) - 1))
		}
	case plan.InitNormal:
		for i := 0; i < len(dst); i += 2 {
			n := from + int64(i)
			r := in.Scale * math.Sqrt(-2*math.Log(1-unit(key, n)))
			sin, cos := math.Sincos(2 * math.Pi * unit(key, n+1))
			dst[i] = float32(r * cos)
			if i+1 < len(dst) {
				dst[i+1] = float32(r * sin)
			}
		}
	}
}
