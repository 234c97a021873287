package program

import (
	"fmt"
	"math"
	"sync"

	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/cores"
	"github.com/megatrain/mtc/runtime/engine"
	"github.com/megatrain/mtc/runtime/plan"
)

// moved compares weights with the first values that a seed gives, which init can make again.
type moved struct {
	Weights int64
	Changed int64   // whose f32 differs
	Upper   int64   // whose upper half, a bfloat16, differs: what the GPU computes with
	Most    float64 // largest change
}

func (m moved) String() string {
	share := func(n int64) float64 { return 100 * float64(n) / math.Max(1, float64(m.Weights)) }
	return fmt.Sprintf("%.2f %% of the weights differ from their first values, %.2f %% in bfloat16; the largest change is %.2g",
		share(m.Changed), share(m.Upper), m.Most)
}

// movedWeights looks at every weight that learns of a drained engine, a slab at a time.
func movedWeights(e *engine.Engine, seed int64) (moved, error) {
	state := slabs{e: e, readOnly: true}
	var m moved
	for i := range e.Plan().Trained() {
		s := &e.Plan().Slabs[i]
		movedSlab(&m, s, checkpoint.MastersOf(s, state.view), seed)
	}
	return m, state.end()
}

func movedSlab(m *moved, s *plan.Slab, masters checkpoint.Masters, seed int64) {
	pieces := piecesOf(s, seed)
	var mu sync.Mutex
	cores.Each(int64(len(pieces)), 1, func(i, _ int64) {
		p := &pieces[i]
		a, b := pieceRooms.Get().(*[initPiece]float32), pieceRooms.Get().(*[initPiece]float32)
		defer pieceRooms.Put(a)
		defer pieceRooms.Put(b)
		first, now := a[:p.n], b[:p.n]
		fillInit(first, p.key, p.from, p.init)
		masters.Read(now, p.off)
		var own moved
		own.add(first, now)
		mu.Lock()
		defer mu.Unlock()
		m.Weights, m.Changed, m.Upper = m.Weights+own.Weights, m.Changed+own.Changed, m.Upper+own.Upper
		m.Most = math.Max(m.Most, own.Most)
	})
}

func (m *moved) add(first, now []float32) {
	m.Weights += int64(len(first))
	for i, x := range first {
		a, b := math.Float32bits(x), math.Float32bits(now[i])
		if a == b {
			continue
		}
		m.Changed++
		if (a+0x8000)>>16 != (b+0x8000)>>16 {
			m.Upper++
		}
		m.Most = math.Max(m.Most, math.Abs(float64(now[i])-float64(x)))
	}
}
