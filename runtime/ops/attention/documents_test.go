package attention

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/optest"
)

// call runs forward and backward on a machine and gives y and the gradients; starts may be nil.
func call(m *optest.Machine, s shape, batch, seq int, starts []int32, q, k, v, dy []float32) (out [4][]float32) {
	rows, size := int64(batch*seq), m.ActSize()
	nq, nk := rows*int64(s.heads*s.hd), rows*int64(s.kv*s.hd)
	var at device.Ptr
	if starts != nil {
		at = m.I32(starts...)
	}
	f := ForwardArgs{Q: m.Act(q...), K: m.Act(k...), V: m.Act(v...), Y: m.Bytes(size * nq), Lse: m.Bytes(4 * rows * int64(s.heads)), Starts: at,
		Batch: batch, Seq: seq, Heads: s.heads, KV: s.kv, HD: s.hd, Window: s.window, Causal: s.causal,
		Cap: float32(s.cap), Scale: float32(1 / math.Sqrt(float64(s.hd)))}
	Forward(m.Queue, f)
	b := BackwardArgs{Q: f.Q, K: f.K, V: f.V, Y: f.Y, Lse: f.Lse, DY: m.Act(dy...), Starts: at,
		DQ: m.Bytes(size * nq), DK: m.Bytes(size * nk), DV: m.Bytes(size * nk),
		Batch: batch, Seq: seq, Heads: s.heads, KV: s.kv, HD: s.hd, Window: s.window, Causal: s.causal, Cap: f.Cap, Scale: f.Scale}
	Backward(m.Queue, b)
	m.Sync()
	return [4][]float32{m.ReadAct(f.Y, nq), m.ReadAct(b.DQ, nq), m.ReadAct(b.DK, nk), m.ReadAct(b.DV, nk)}
}

// rowsOfDocuments are lengths that fill rows of seq positions, and the starts they give.
func rowsOfDocuments(lengths ...[]int) (starts []int32) {
	for _, row := range lengths {
		at := 0
		for _, n := range row {
			for range n {
				starts = append(starts, int32(at))
			}
			at += n
		}
	}
	return starts
}

// Documents that share a row give what they give in rows of their own: on the CPU the same
// bits.
func TestDocumentsThatShareRows(t *testing.T) {
	lengths := [][]int{{1, 130, 2, 600, 67}, {800}, {399, 401}}
	small := [][]int{{1, 5, 2, 30}, {38}, {19, 19}}
	for _, c := range []struct {
		shape
		lengths [][]int
	}{
		{shape{heads: 2, kv: 1, hd: 8, causal: true}, lengths},
		{shape{heads: 2, kv: 2, hd: 16, causal: true, window: 70, cap: 20}, lengths},
		{shape{heads: 4, kv: 2, hd: 20, causal: true}, small},
		{shape{heads: 1, kv: 1, hd: 64, causal: true, window: 7, cap: 20}, small},
	} {
		n := 0
		for _, l := range c.lengths[0] {
			n += l
		}
		r := rand.New(rand.NewPCG(3, 4))
		rows := n * len(c.lengths)
		q, dy := random(r, rows*c.heads*c.hd), random(r, rows*c.heads*c.hd)
		k, v := random(r, rows*c.kv*c.hd), random(r, rows*c.kv*c.hd)
		starts := rowsOfDocuments(c.lengths...)
		alone := func(x [][]float32, at, n int) [][]float32 { // the rows of one document
			out := make([][]float32, len(x))
			for i, all := range x {
				w := len(all) / rows
				out[i] = all[at*w : (at+n)*w]
			}
			return out
		}
		check := func(t *testing.T, m func() *optest.Machine, limit float64) {
			got := call(m(), c.shape, len(c.lengths), n, starts, q, k, v, dy)
			at := 0
			for _, row := range c.lengths {
				for _, l := range row {
					in := alone([][]float32{q, k, v, dy}, at, l)
					want := call(m(), c.shape, 1, l, nil, in[0], in[1], in[2], in[3])
					for i, g := range alone(got[:], at, l) {
						for e := range g {
							if d := math.Abs(float64(g[e] - want[i][e])); !(d <= limit*(1+math.Abs(float64(want[i][e])))) {
								t.Fatalf("%s of the document at row %d, element %d: %v, alone %v", []string{"y", "dq", "dk", "dv"}[i], at, e, g[e], want[i][e])
							}
						}
					}
					at += l
				}
			}
		}
		check(t, func() *optest.Machine { return optest.NewMachine(t, 3) }, 0)
		if n > 100 {
			continue // the kernels for a GPU have no blocks, and their emulation is slow
		}
		optest.OnGPU(t, func(t *testing.T, f32 bool) {
			limit := 1e-5
			if !f32 {
				limit = 0.02 // rows alone take the tensor cores
			}
			check(t, func() *optest.Machine { return optest.GPU(t, f32) }, limit)
		})
	}
}
