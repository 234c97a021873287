package attention

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/optest"
	"github.com/megatrain/mtc/runtime/tensor"
)

// shape is the static part of a case.
type shape struct {
	heads, kv, hd, window int
	causal                bool
	cap, scale            float64
}

func (s shape) attr() map[string]op.Value {
	a := map[string]op.Value{
		"heads": *op.IntValue(int64(s.heads)), "kv": *op.IntValue(int64(s.kv)), "causal": *op.BoolValue(s.causal),
	}
	if s.window > 0 {
		a["window"] = *op.IntValue(int64(s.window))
	}
	if s.cap > 0 {
		a["cap"] = *op.FloatValue(s.cap)
	}
	if s.scale > 0 {
		a["scale"] = *op.FloatValue(s.scale)
	}
	return a
}

// reference is attention in float64, with whole rows of scores.
func (s shape) reference(q, k, v []float64, batch, seq int) []float64 {
	scale := s.scale
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(s.hd))
	}
	y := make([]float64, len(q))
	for b := range batch {
		for h := range s.heads {
			for t := range seq {
				at := func(u, heads, h int) int { return ((b*seq+u)*heads + h) * s.hd }
				g := h / (s.heads / s.kv)
				p, sum := make([]float64, seq), 0.0
				for u := range seq {
					if s.causal && u > t || s.window > 0 && (t-u >= s.window || u-t >= s.window) {
						continue
					}
					var x float64
					for d := range s.hd {
						x += q[at(t, s.heads, h)+d] * k[at(u, s.kv, g)+d]
					}
					if x *= scale; s.cap > 0 {
						x = s.cap * math.Tanh(x/s.cap)
					}
					p[u] = math.Exp(x)
					sum += p[u]
				}
				for u := range seq {
					for d := range s.hd {
						y[at(t, s.heads, h)+d] += p[u] / sum * v[at(u, s.kv, g)+d]
					}
				}
			}
		}
	}
	return y
}

var funcs = map[string]any{"Forward": Forward, "Backward": Backward, "ForwardCached": ForwardCached}

func TestAttention(t *testing.T) {
	good := func(name string, s shape, forward, backward, cached op.Cost) optest.Good {
		s.causal = true
		return optest.Good{
			Name: name,
			In: []tensor.Type{optest.F32(int64(s.heads * s.hd)), optest.F32(int64(s.kv * s.hd)),
				optest.F32(int64(s.kv * s.hd))},
			Attr: s.attr(), Out: optest.F32(int64(s.heads * s.hd)).String(), Batch: 2, Seq: 9,
			Cost: map[string]op.Cost{"Forward": forward, "Backward": backward, "ForwardCached": cached},
			Ref: func(v optest.Values) []float64 {
				return s.reference(v.F["q"], v.F["k"], v.F["v"], v.Batch, v.Seq)
			},
		}
	}
	q, kv := optest.F32(24), optest.F32(12)
	words := func(kv ...any) map[string]op.Value {
		m := map[string]op.Value{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i].(string)] = kv[i+1].(op.Value)
		}
		return m
	}
	// Pairs of 9 causal rows: 45; with window 3: 3 + 8 - 2 + ... = 1+2+7*3 = 24; with 4: 30.
	// FLOPs are 4 or 10 times batch * heads * hd * pairs; bytes 4 times the elements of
	// q, k, v, y and lse; of q, k, v, y, lse, dy, dq, dk, dv; and of q, k, v, y with the caches of
	// one sequence, [T, kv * hd].
	optest.Run(t, optest.Case{
		Def: &Def, Funcs: funcs,
		Good: []optest.Good{
			good("causal", shape{heads: 2, kv: 2, hd: 4}, op.Cost{FLOPs: 2880, Bytes: 2448}, op.Cost{FLOPs: 7200, Bytes: 4752}, op.Cost{FLOPs: 2880, Bytes: 2880}),
			good("grouped", shape{heads: 4, kv: 2, hd: 3}, op.Cost{FLOPs: 4320, Bytes: 2880}, op.Cost{FLOPs: 10800, Bytes: 5472}, op.Cost{FLOPs: 4320, Bytes: 3024}),
			good("window", shape{heads: 2, kv: 1, hd: 4, window: 3}, op.Cost{FLOPs: 1536, Bytes: 1872}, op.Cost{FLOPs: 3840, Bytes: 3600}, op.Cost{FLOPs: 1536, Bytes: 2016}),
			good("cap", shape{heads: 2, kv: 2, hd: 4, cap: 0.7}, op.Cost{FLOPs: 2880, Bytes: 2448}, op.Cost{FLOPs: 7200, Bytes: 4752}, op.Cost{FLOPs: 2880, Bytes: 2880}),
			good("scale", shape{heads: 2, kv: 2, hd: 4, scale: 0.3}, op.Cost{FLOPs: 2880, Bytes: 2448}, op.Cost{FLOPs: 7200, Bytes: 4752}, op.Cost{FLOPs: 2880, Bytes: 2880}),
			good("all", shape{heads: 4, kv: 2, hd: 5, window: 4, cap: 1.5, scale: 0.9}, op.Cost{FLOPs: 4800, Bytes: 4608}, op.Cost{FLOPs: 12000, Bytes: 8928}, op.Cost{FLOPs: 4800, Bytes: 5040}),
		},
		Wide: manyHeads(),
		Bad: []optest.Bad{
			{Name: "heads that do not divide", In: []tensor.Type{q, q, q}, Attr: words("heads", *op.IntValue(5)), Arg: "q", Want: "heads = 5 divides"},
			{Name: "kv that does not divide", In: []tensor.Type{q, kv, kv}, Attr: words("heads", *op.IntValue(4), "kv", *op.IntValue(3)), Arg: "kv", Want: "divisor of heads = 4"},
			{Name: "keys of another width", In: []tensor.Type{q, kv, q}, Attr: words("heads", *op.IntValue(4)), Arg: "k", Want: "kv * hd = 4 * 6 = 24"},
			{Name: "values of another width", In: []tensor.Type{q, kv, q}, Attr: words("heads", *op.IntValue(4), "kv", *op.IntValue(2)), Arg: "v", Want: "2 * 6 = 12"},
			{Name: "no heads", In: []tensor.Type{q, q, q}, Attr: words("heads", *op.IntValue(0)), Arg: "heads", Want: "positive"},
			{Name: "an empty window", In: []tensor.Type{q, q, q}, Attr: words("heads", *op.IntValue(4), "window", *op.IntValue(0)), Arg: "window", Want: "positive"},
			{Name: "a cap of zero", In: []tensor.Type{q, q, q}, Attr: words("heads", *op.IntValue(4), "cap", *op.FloatValue(0)), Arg: "cap", Want: "above 0"},
			{Name: "huge heads", In: []tensor.Type{optest.F32(4096), optest.F32(4096), optest.F32(4096)}, Attr: words("heads", *op.IntValue(2)), Arg: "heads", Want: "at most 1024"},
		},
	})
}

// manyHeads are calls with heads of lengths and in groups of sizes that kernels meet, causal, with a window, and
// without.
func manyHeads() (calls []optest.Good) {
	for i, s := range []shape{
		{heads: 5, kv: 1, hd: 80}, {heads: 7, kv: 1, hd: 112}, {heads: 64, kv: 1, hd: 16}, {heads: 2, kv: 2, hd: 160}, {heads: 2, kv: 1, hd: 192},
		{heads: 3, kv: 3, hd: 96, cap: 2}, {heads: 2, kv: 1, hd: 256}, {heads: 2, kv: 1, hd: 72}, {heads: 3, kv: 1, hd: 33}, {heads: 1, kv: 1, hd: 1},
	} {
		if s.causal = i%3 != 2; i%3 == 1 {
			s.window = 19
		}
		seq := int64(67) // more than a tile; fewer where there are many heads, for the emulation's sake
		if s.heads > 3 {
			seq = int64(max(3, 100/s.heads))
		}
		width := func(n int) tensor.Type { return optest.F32(int64(n * s.hd)) }
		calls = append(calls, optest.Good{
			Name: fmt.Sprintf("%d heads of %d over %d", s.heads, s.hd, s.kv),
			In:   []tensor.Type{width(s.heads), width(s.kv), width(s.kv)}, Attr: s.attr(), Batch: 1, Seq: seq, BF16: 0.02,
		})
	}
	return calls
}

// TestVisiblePairs counts by hand.
func TestVisiblePairs(t *testing.T) {
	for _, n := range []int64{1, 2, 7, 30} {
		for _, causal := range []bool{true, false} {
			for _, window := range []int64{0, 1, 3, 40} {
				g := geom{causal: causal, window: int(window)}
				var want int64
				for r := range int(n) {
					lo, hi := g.visible(r, int(n))
					want += int64(hi - lo)
				}
				if got := visiblePairs(n, causal, window); got != want {
					t.Errorf("n %d causal %v window %d: %d, want %d", n, causal, window, got, want)
				}
			}
		}
	}
}

// run gives y and the gradients of one call on a fresh machine.
func run(t *testing.T, s shape, batch, seq, threads int, q, k, v, dy []float32) (y, dq, dk, dv []float32) {
	m := optest.NewMachine(t, threads)
	rows := int64(batch * seq)
	nq, nk := rows*int64(s.heads*s.hd), rows*int64(s.kv*s.hd)
	scale := s.scale
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(s.hd))
	}
	f := ForwardArgs{Q: m.F32(q...), K: m.F32(k...), V: m.F32(v...), Y: m.Bytes(4 * nq), Lse: m.Bytes(4 * rows * int64(s.heads)),
		Batch: batch, Seq: seq, Heads: s.heads, KV: s.kv, HD: s.hd, Window: s.window, Causal: s.causal,
		Cap: float32(s.cap), Scale: float32(scale)}
	Forward(m.Queue, f)
	b := BackwardArgs{Q: f.Q, K: f.K, V: f.V, Y: f.Y, Lse: f.Lse, DY: m.F32(dy...),
		DQ: m.Bytes(4 * nq), DK: m.Bytes(4 * nk), DV: m.Bytes(4 * nk),
		Batch: batch, Seq: seq, Heads: s.heads, KV: s.kv, HD: s.hd, Window: s.window, Causal: s.causal,
		Cap: f.Cap, Scale: f.Scale}
	Backward(m.Queue, b)
	m.Sync()
	return m.ReadF32(f.Y, nq), m.ReadF32(b.DQ, nq), m.ReadF32(b.DK, nk), m.ReadF32(b.DV, nk)
}

func random(r *rand.Rand, n int) []float32 {
	s := make([]float32, n)
	for i := range s {
		s[i] = float32(r.NormFloat64())
	}
	return s
}

func wide(s []float32) []float64 {
	w := make([]float64, len(s))
	for i, x := range s {
		w[i] = float64(x)
	}
	return w
}

// TestLongSequences: several key and query blocks, with their edges, against the reference;
// gradients against directional differences of it.
func TestLongSequences(t *testing.T) {
	for name, s := range map[string]shape{
		"causal":     {heads: 2, kv: 1, hd: 16, causal: true},
		"window":     {heads: 1, kv: 1, hd: 8, causal: true, window: 70},
		"cap":        {heads: 2, kv: 2, hd: 12, causal: true, cap: 2},
		"both ways":  {heads: 2, kv: 1, hd: 8},
		"band":       {heads: 1, kv: 1, hd: 8, window: 33},
		"wide heads": {heads: 1, kv: 1, hd: 80, causal: true},
	} {
		t.Run(name, func(t *testing.T) {
			const batch, seq = 1, 275
			r := rand.New(rand.NewPCG(1, 2))
			q, dy := random(r, batch*seq*s.heads*s.hd), random(r, batch*seq*s.heads*s.hd)
			k, v := random(r, batch*seq*s.kv*s.hd), random(r, batch*seq*s.kv*s.hd)
			y, dq, dk, dv := run(t, s, batch, seq, 2, q, k, v, dy)
			optest.Compare(t, "y", y, s.reference(wide(q), wide(k), wide(v), batch, seq), 2e-6)

			loss := func(q, k, v []float64) (sum float64) {
				for i, x := range s.reference(q, k, v, batch, seq) {
					sum += x * float64(dy[i])
				}
				return sum
			}
			in := [][]float64{wide(q), wide(k), wide(v)}
			for i, grad := range [][]float32{dq, dk, dv} {
				name := []string{"dq", "dk", "dv"}[i]
				// Along a random direction, so that every element counts.
				dir, h := random(r, len(grad)), 1e-5
				var got, size float64
				for j, g := range grad {
					got += float64(g) * float64(dir[j])
					size += math.Abs(float64(g) * float64(dir[j]))
				}
				at := func(step float64) float64 {
					moved := append([]float64(nil), in[i]...)
					for j := range moved {
						moved[j] += step * float64(dir[j])
					}
					args := [3][]float64{in[0], in[1], in[2]}
					args[i] = moved
					return loss(args[0], args[1], args[2])
				}
				want := (at(h) - at(-h)) / (2 * h)
				if d := math.Abs(got - want); !(d <= 1e-6*size) {
					t.Errorf("%s along a direction: %v, want %v (off by %.1e of the terms)", name, got, want, d/size)
				}
			}
		})
	}
}

// TestGradientElements: single elements of gradients at block edges against differences.
func TestGradientElements(t *testing.T) {
	s := shape{heads: 2, kv: 1, hd: 4, causal: true, window: 90}
	const batch, seq = 1, 140
	r := rand.New(rand.NewPCG(3, 4))
	q, dy := random(r, seq*s.heads*s.hd), random(r, seq*s.heads*s.hd)
	k, v := random(r, seq*s.kv*s.hd), random(r, seq*s.kv*s.hd)
	_, dq, dk, dv := run(t, s, batch, seq, 2, q, k, v, dy)
	in := [][]float64{wide(q), wide(k), wide(v)}
	for i, grad := range [][]float32{dq, dk, dv} {
		width := len(grad) / seq
		for _, row := range []int{0, 55, 56, 63, 64, 111, 112, 127, 128, 139} {
			j, h := row*width+row%width, 1e-4
			loss := func(step float64) (sum float64) {
				x := in[i][j]
				in[i][j] = x + step
				for n, y := range s.reference(in[0], in[1], in[2], batch, seq) {
					sum += y * float64(dy[n])
				}
				in[i][j] = x
				return sum
			}
			want := (loss(h) - loss(-h)) / (2 * h)
			if d := math.Abs(float64(grad[j]) - want); !(d <= 3e-6*(1+math.Abs(want))) {
				t.Errorf("gradient %d row %d: %v, want %v", i, row, grad[j], want)
			}
		}
	}
}

// TestCachedChunks: prefill in chunks of any size and decoding give the bits of Forward.
func TestCachedChunks(t *testing.T) {
	for _, s := range []shape{
		{heads: 4, kv: 2, hd: 16, causal: true},
		{heads: 2, kv: 2, hd: 10, causal: true, window: 50, cap: 3},
	} {
		const seq = 250
		r := rand.New(rand.NewPCG(5, 6))
		q := random(r, seq*s.heads*s.hd)
		k, v := random(r, seq*s.kv*s.hd), random(r, seq*s.kv*s.hd)
		y, _, _, _ := run(t, s, 1, seq, 2, q, k, v, make([]float32, len(q)))
		for _, chunk := range []int{1, 7, 64, 130, seq} {
			m := optest.NewMachine(t, 2)
			wq, wk := s.heads*s.hd, s.kv*s.hd
			a := ForwardCachedArgs{Batch: 1, Heads: s.heads, KV: s.kv, HD: s.hd, Window: s.window, Causal: true,
				Cap: float32(s.cap), Scale: float32(1 / math.Sqrt(float64(s.hd))),
				Kcache: m.Bytes(int64(4 * seq * wk)), Vcache: m.Bytes(int64(4 * seq * wk))}
			qp, kp, vp, yp := m.F32(q...), m.F32(k...), m.F32(v...), m.Bytes(int64(4*seq*wq))
			for pos := 0; pos < seq; pos += chunk {
				a.Pos, a.Seq = pos, min(chunk, seq-pos)
				a.Q, a.Y = qp.At(int64(4*pos*wq)), yp.At(int64(4*pos*wq))
				a.K, a.V = kp.At(int64(4*pos*wk)), vp.At(int64(4*pos*wk))
				ForwardCached(m.Queue, a)
			}
			m.Sync()
			for i, got := range m.ReadF32(yp, int64(seq*wq)) {
				if got != y[i] {
					t.Fatalf("%+v chunks of %d: element %d is %v, in a whole sequence %v", s, chunk, i, got, y[i])
				}
			}
		}
	}
}
