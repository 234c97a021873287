package lower

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/runtime/op"
)

// lowering runs all passes but the last.
func lowering(t *testing.T, m *ir.Model, o Options) *Lowering {
	t.Helper()
	var diags diag.List
	Prune(m, &diags)
	Fuse(m)
	Recompute(m, o, &diags)
	Microbatch(m, o, &diags)
	l := Templates(m, o, &diags)
	Gradients(l)
	Head(l)
	Infer(l)
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	return l
}

// placeApart gives every value a place of its own: nothing shares, nothing works in place.
func placeApart(f *fn) *placement {
	p := &placement{at: map[*value]ir.Place{}}
	for _, in := range f.insts {
		for _, list := range [][]operand{in.reads, in.adds, in.writes} {
			for _, o := range list {
				if _, ok := p.at[o.v]; ok || o.v == nil {
					continue
				}
				if q, ok := f.pins[o.v]; ok {
					p.at[o.v] = ir.Place{Region: q.region, Index: q.index, Off: q.off}
					continue
				}
				p.at[o.v] = ir.Place{Region: ir.RWork, Off: p.work}
				p.work += align(o.v.bytes)
			}
		}
	}
	return p
}

// randomModel is a chain of units whose bodies are random graphs over a few values, with
// values read many times, passed on unchanged, returned twice, and read by later units.
func randomModel(t *testing.T, seed uint64) *ir.Model {
	rng := rand.New(rand.NewPCG(seed, 99))
	const d, vocab = 6, 9
	mb := newModel(t, 4, 5, vocab)
	e := mb.unit(ir.EmbedUnit, "embed", -1)
	ids := e.in(mb.tokens)
	between := []*ir.Value{e.out(e.embed("wte", vocab, d, ids)), e.out(e.embed("wte2", vocab, d, ids))}
	pick := func(list []*ir.Value) *ir.Value { return list[rng.IntN(len(list))] }
	body := func(u *unitBuilder, pool []*ir.Value, n int) []*ir.Value {
		linears := 0
		for range n {
			a, b := pick(pool), pick(pool)
			var y *ir.Value
			switch rng.IntN(11) {
			case 0, 1:
				y = u.add(a, b)
			case 2:
				y = u.mul(u.op("softcap", "", attrs{"cap": *op.FloatValue(1.5)}, a), b)
			case 3:
				y = u.op("sub", "", nil, a, b)
			case 4:
				y = u.op("scale", "", attrs{"by": *op.FloatValue(-0.6)}, a)
			case 5:
				y = u.mul(u.op("silu", "", nil, a), u.op("softcap", "", attrs{"cap": *op.FloatValue(2)}, b))
			case 6:
				y = u.op("gelu", "", nil, a)
			case 7:
				y = u.op("rmsnorm", fmt.Sprintf("n%d", linears), nil, a)
				linears++
			case 8:
				y = u.op("attention", "", attrs{"heads": *op.IntValue(2), "causal": *op.BoolValue(true)}, a, b, pick(pool))
			case 9:
				y = u.op("rope", "", attrs{"hd": *op.IntValue(2)}, a)
			default:
				y = u.op("linear", fmt.Sprintf("l%d", linears), attrs{"out": *op.IntValue(d), "bias": *op.BoolValue(rng.IntN(2) == 0)}, a)
				linears++
			}
			pool = append(pool, y)
		}
		return pool
	}
	for i := range 3 {
		u := mb.unit(ir.LayerUnit, "layer", i)
		var pool []*ir.Value
		for range 1 + rng.IntN(2) {
			pool = append(pool, u.in(pick(between)))
		}
		in := pool
		pool = body(u, pool, 2+rng.IntN(7))
		// The sum of a late value and an input is an output; at times others are too.
		y := u.add(u.op("rmsnorm", "out", nil, pool[len(pool)-1]), in[0])
		between = append(between, u.out(y))
		if rng.IntN(2) == 0 {
			between = append(between, u.out(pick(pool)))
		}
	}
	h := mb.unit(ir.HeadUnit, "head", -1)
	var sum *ir.Value
	for _, v := range between {
		x := h.in(v)
		if sum != nil {
			x = h.add(sum, x)
		}
		sum = x
	}
	pool := body(h, []*ir.Value{sum}, rng.IntN(4))
	n := h.op("layernorm", "norm", nil, h.add(pool[len(pool)-1], sum))
	y := h.linear("head", vocab, n)
	switch rng.IntN(3) {
	case 0:
		y = h.op("softcap", "", attrs{"cap": *op.FloatValue(4)}, y)
	case 1:
		y = h.add(y, h.tied("linear", "again", "wte.weight", attrs{"out": *op.IntValue(vocab)}, h.op("silu", "", nil, n)))
	}
	h.out(y)
	return spans(mb.m)
}

// TestSharingMemoryChangesNoBit compares, on random graphs, functions whose values share
// memory with the same functions where every value has its own; recomputed layers with kept
// ones; and the gradient with a finite difference along itself.
func TestSharingMemoryChangesNoBit(t *testing.T) {
	for seed := range uint64(24) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			var want [][]float32
			var wantLoss float64
			for _, c := range []struct {
				name      string
				place     func(*fn) *placement
				recompute string
			}{{"apart", placeApart, "none"}, {"shared", place, "none"}, {"recomputed", place, "all"}} {
				o := small
				o.Recompute = c.recompute
				l := lowering(t, randomModel(t, seed), o)
				placeAll(l, c.place)
				m := newMachine(t, l.Program)
				tokens, targets := batch(l.Program.Model)
				loss := m.step(tokens, targets, true)
				grads := m.grads()
				if want == nil {
					want, wantLoss = grads, loss
					alongGradient(t, m, grads, loss)
					continue
				}
				if loss != wantLoss {
					t.Errorf("%s: loss %v, want %v", c.name, loss, wantLoss)
				}
				equalBits(t, c.name, want, grads)
			}
		})
	}
}

// alongGradient compares the norm of the whole gradient with the slope of the loss along it.
func alongGradient(t *testing.T, m *machine, grads [][]float32, loss float64) {
	t.Helper()
	var norm float64
	for _, g := range grads {
		for _, x := range g {
			norm += float64(x) * float64(x)
		}
	}
	norm = math.Sqrt(norm)
	if math.IsNaN(norm) || norm == 0 {
		t.Fatalf("gradient norm %v at loss %v", norm, loss)
	}
	tokens, targets := batch(m.p.Model)
	var old [][]float32
	for s := range grads {
		old = append(old, slices.Clone(m.f32(m.w[s])))
	}
	at := func(h float64) float64 {
		for s, g := range grads {
			w := m.f32(m.w[s])
			for k := range w {
				w[k] = float32(float64(old[s][k]) + h*float64(g[k])/norm)
			}
		}
		return m.step(tokens, targets, false)
	}
	// The step is small against the curvature and large against f32.
	const eps = 1e-3
	got := (8*(at(eps)-at(-eps)) - (at(2*eps) - at(-2*eps))) / (12 * eps)
	if math.Abs(got-norm) > 5e-3*norm+2e-3 {
		t.Errorf("slope along the gradient %.6g, its norm %.6g", got, norm)
	}
	at(0)
}

// TestVerifyFindsOverlaps moves each value over each other one that lives at the same time:
// verify must object.
func TestVerifyFindsOverlaps(t *testing.T) {
	tried := 0
	for _, build := range []func(t *testing.T) *ir.Model{models["llama, untied"], models["an early value read by every layer"], models["a head with a soft cap and a scale after the last linear"]} {
		for _, tm := range lowering(t, build(t), small).tmpls {
			for _, f := range tm.funcs {
				life := lives(f)
				whole := place(f)
				for v := range life {
					for u := range life {
						a, b := whole.at[v], whole.at[u]
						if v == u || a.Region != ir.RWork || b.Region != ir.RWork || a.Off == b.Off || !life[v].meets(*life[u]) {
							continue
						}
						// Values that meet in one launch only may share it in place.
						if life[v].to == life[u].from || life[u].to == life[v].from {
							continue
						}
						p := place(f)
						p.at = moved(whole.at, v, b)
						tried++
						if err := verify(f, p); err == nil {
							t.Errorf("%s.%s: %s may lie over %s", tm.Name, f.kind, v, u)
						}
					}
				}
			}
		}
	}
	if tried < 80 {
		t.Errorf("only %d overlaps tried", tried)
	}
}

func moved(at map[*value]ir.Place, v *value, to ir.Place) map[*value]ir.Place {
	out := map[*value]ir.Place{}
	for k, p := range at {
		out[k] = p
	}
	out[v] = to
	return out
}
