package moe_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/grouped"
	"github.com/megatrain/mtc/runtime/ops/moe"
	"github.com/megatrain/mtc/runtime/ops/optest"
	"github.com/megatrain/mtc/runtime/plan"
)

// gpuRouters are routers whose kernels take every way through a selection.
var gpuRouters = []struct {
	name string
	r    moe.SelectArgs
}{
	{"threshold", moe.SelectArgs{Experts: 5, Slots: 5, Rate: 0.2, EMA: 0.9, Capacity: -1, Start: 0.5}},
	{"threshold, causal", moe.SelectArgs{Experts: 40, Slots: 40, Rate: 0.05, EMA: 0.99, Capacity: -1, Causal: 10}},
	{"threshold, flooded", moe.SelectArgs{Experts: 8, Slots: 2, Rate: 0.2, EMA: 0.9, Capacity: -1, Start: -9}},
	{"threshold, capacity", moe.SelectArgs{Experts: 5, Slots: 5, Rate: 0.3, EMA: 0.9, Capacity: 0.1, Start: 0.2}},
	{"threshold, capacity of a rate that f32 rounds", moe.SelectArgs{Experts: 3, Slots: 3, Rate: 0.7, EMA: 0.9, Start: -9}},
	{"expert choice, sequence", moe.SelectArgs{Experts: 6, Slots: 6, Rate: 0.25, EMA: 0.9, Capacity: -1, Pool: moe.Sequence, Choice: -1}},
	{"expert choice, micro, 2 steps", moe.SelectArgs{Experts: 6, Slots: 3, Rate: 0.4, EMA: 0.9, Capacity: -1, Pool: moe.Micro, Choice: 2}},
	{"expert choice, step", moe.SelectArgs{Experts: 6, Slots: 6, Rate: 0.25, EMA: 0.9, Capacity: -1, Pool: moe.Step, Choice: -1, Observed: true}},
	{"topk", moe.SelectArgs{Experts: 33, Slots: 3, Kind: moe.TopK, K: 3, Scale: 1}},
	{"topk, renorm, aux of a step", moe.SelectArgs{Experts: 8, Slots: 2, Kind: moe.TopK, K: 2, Renorm: true, Scale: 1, Balance: moe.AuxStep, Alpha: 0.1, ZLoss: 0.01}},
	{"topk, aux of a micro-batch", moe.SelectArgs{Experts: 8, Slots: 2, Kind: moe.TopK, K: 2, Scale: 2.5, Balance: moe.AuxMicro, Alpha: 0.1}},
	{"topk, sigmoid, lossfree", moe.SelectArgs{Experts: 8, Slots: 2, Kind: moe.TopK, K: 2, Sigmoid: true, Renorm: true, Scale: 2, Balance: moe.LossFree, U: 0.01}},
	{"topk, sigmoid, aux", moe.SelectArgs{Experts: 8, Slots: 2, Kind: moe.TopK, K: 2, Sigmoid: true, Scale: 1, Balance: moe.AuxStep, Alpha: 0.1}},
	{"topk, quantile", moe.SelectArgs{Experts: 9, Slots: 2, Kind: moe.TopK, K: 2, Scale: 1, Balance: moe.QuantileTop}},
}

// routed is what a device made of some steps.
type routed struct {
	routing        [][]int32 // of each micro-batch: offsets, first, rows, token, expert, those in use
	gates, dlogits [][]float32
	state          []byte
}

// steps runs three steps of two micro-batches of 300 tokens.
func steps(m *optest.Machine, r moe.SelectArgs) (out routed) {
	const n, seq = 300, 100
	r.Rows, r.Seq = n, seq
	rnd := rand.New(rand.NewPCG(7, uint64(r.Experts)))
	hist := moe.HasHist(int64(r.Kind), int64(r.Balance))
	lay := moe.StateOf(int64(r.Experts), hist)
	state := m.F32(make([]float32, lay.Bytes/4)...)
	for range 3 {
		scalars := make([]float64, plan.NumScalars)
		scalars[plan.ScalarRoute], scalars[plan.ScalarInvTokens] = moe.RouteTrain, 1.0/500
		s := m.F64(scalars...)
		type micro struct{ logits, targets, routing device.Ptr }
		var micros []micro
		for range 2 {
			l, targets := make([]float32, n*r.Experts), make([]int32, n)
			for i := range l { // some are equal
				l[i] = float32(math.Round(rnd.NormFloat64()*40) / 40)
			}
			for i := range targets {
				targets[i] = int32(rnd.IntN(12)) - 1
			}
			micros = append(micros, micro{m.F32(l...), m.I32(targets...), m.Bytes(4 * n * moe.RoutingWords(int64(r.Experts), int64(r.Slots)))})
		}
		if r.Observed {
			for _, k := range micros {
				moe.Observe(m.Queue, moe.ObserveArgs{
					Logits: k.logits, Targets: k.targets, Scalars: s, Router: state, Y: m.Bytes(4 * n), Rows: n, Seq: seq, Experts: r.Experts, Slots: r.Slots,
					Kind: r.Kind, K: r.K, Pool: r.Pool, Choice: r.Choice, Rate: r.Rate, EMA: r.EMA, Capacity: r.Capacity, Start: r.Start,
				})
			}
		}
		for _, k := range micros {
			a := r
			a.Logits, a.Targets, a.Scalars, a.Router, a.Y = k.logits, k.targets, s, state, k.routing
			moe.Select(m.Queue, a)
		}
		for _, k := range micros {
			m.Sync()
			lay := moe.RoutingOf(n, int64(r.Experts), int64(r.Slots))
			w := ints(m, k.routing, lay.Words)
			used := int64(w[r.Experts])
			got := slices.Concat(w[:r.Experts+1], w[lay.First:lay.First+n+1])
			for _, at := range []int64{lay.Rows, lay.Token, lay.Expert} {
				got = append(got, w[at:at+used]...)
			}
			out.routing = append(out.routing, got)
			gates, dgates, dlogits := m.Bytes(4*n*int64(r.Slots)), make([]float32, n*r.Slots), m.Bytes(4*n*int64(r.Experts))
			for i := range dgates {
				dgates[i] = float32(rnd.NormFloat64())
			}
			add := make([]float32, n*r.Experts)
			for i := range add {
				add[i] = float32(rnd.NormFloat64())
			}
			g := moe.GateArgs{
				Logits: k.logits, Routing: k.routing, Y: gates, Rows: n, Seq: seq, Experts: r.Experts, Slots: r.Slots, Kind: r.Kind, K: r.K,
				Sigmoid: r.Sigmoid, Renorm: r.Renorm, Balance: r.Balance, Scale: r.Scale,
			}
			moe.Gate(m.Queue, g)
			moe.GateBackward(m.Queue, moe.GateBackwardArgs{
				Logits: k.logits, Routing: k.routing, Targets: k.targets, Scalars: s, Router: state, DY: m.F32(dgates...), AddDLogits: m.F32(add...), DLogits: dlogits,
				Rows: n, Seq: seq, Experts: r.Experts, Slots: r.Slots, Kind: r.Kind, K: r.K, Sigmoid: r.Sigmoid, Renorm: r.Renorm, Balance: r.Balance,
				Alpha: r.Alpha, ZLoss: r.ZLoss, Scale: r.Scale,
			})
			m.Sync()
			out.gates = append(out.gates, m.ReadF32(gates, used))
			out.dlogits = append(out.dlogits, m.ReadF32(dlogits, n*int64(r.Experts)))
		}
		moe.Advance(m.Queue, moe.AdvanceArgs{
			Scalars: s, Router: state, Rows: n, Seq: seq, Experts: r.Experts, Slots: r.Slots, Kind: r.Kind, K: r.K, Sigmoid: r.Sigmoid, Observed: r.Observed,
			Balance: r.Balance, Pool: r.Pool, Choice: r.Choice, Causal: r.Causal, Rate: r.Rate, EMA: r.EMA, Start: r.Start, U: r.U,
		})
	}
	m.Sync()
	out.state = m.ReadBytes(state, lay.Bytes)
	return out
}

func ints(m *optest.Machine, p device.Ptr, n int64) []int32 {
	out := make([]int32, n)
	for i, x := range m.ReadF32(p, n) {
		out[i] = int32(math.Float32bits(x))
	}
	return out
}

func TestRoutersOnGPU(t *testing.T) {
	for _, c := range gpuRouters {
		t.Run(c.name, func(t *testing.T) {
			gpu := optest.GPU(t, true)
			want, got := steps(optest.NewMachine(t, 1), c.r), steps(gpu, c.r)
			for i := range want.routing {
				if !slices.Equal(want.routing[i], got.routing[i]) {
					t.Fatalf("micro-batch %d is routed otherwise than on the CPU, from word %d on", i, firstOther(want.routing[i], got.routing[i]))
				}
				within(t, fmt.Sprint("gates of micro-batch ", i), want.gates[i], got.gates[i], 1e-6)
				within(t, fmt.Sprint("gradient of the logits of micro-batch ", i), want.dlogits[i], got.dlogits[i], 1e-6)
			}
			if i := firstOther(want.state, got.state); i >= 0 {
				t.Errorf("the states differ from byte %d on: %+v", i, moe.StateOf(int64(c.r.Experts), true))
			}
		})
	}
}

func firstOther[E comparable](a, b []E) int {
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return i
		}
	}
	if len(b) > len(a) {
		return len(a)
	}
	return -1
}

func within(t *testing.T, what string, want, got []float32, limit float64) {
	t.Helper()
	for i := range want {
		if d := math.Abs(float64(want[i]) - float64(got[i])); !(d <= limit*(1+math.Abs(float64(want[i])))) {
			t.Errorf("%s: element %d is %g, on the CPU %g", what, i, got[i], want[i])
			return
		}
	}
}

// rowSizes are sizes of a layer: widths that fill vectors, and some that do not.
var rowSizes = []struct{ n, width, hidden, experts, slots int }{
	{300, 64, 96, 5, 2},
	{37, 24, 17, 33, 3},
	{270, 7, 13, 2, 2},
	{1, 16, 8, 4, 4},
}

// rowResults runs everything between a routing and the layer's gradients.
func rowResults(m *optest.Machine, n, width, hidden, experts, slots int) map[string][]float32 {
	rnd := rand.New(rand.NewPCG(3, uint64(n)))
	normal := func(k int) []float32 {
		v := make([]float32, k)
		for i := range v {
			v[i] = optest.RoundBF16([]float32{float32(rnd.NormFloat64())})[0]
		}
		return v
	}
	rows := n * slots
	act := func(k int) device.Ptr { return m.Act(make([]float32, k)...) }
	logits, routing := m.Bytes(4*int64(n*experts)), m.Bytes(4*int64(n)*moe.RoutingWords(int64(experts), int64(slots)))
	x, router, w, dout := m.Act(normal(n*width)...), m.Act(normal(experts*width)...), m.Act(normal(experts*width*hidden)...), m.Act(normal(n*hidden)...)
	bias := m.Act(normal(experts * hidden)...)
	q := m.Queue
	moe.Logits(q, moe.LogitsArgs{X: x, Weight: router, Y: logits, Rows: n, D: width, Experts: experts})
	// The routing is of logits that are the same on both devices.
	given := m.F32(normal(n * experts)...)
	state := m.F32(make([]float32, moe.StateOf(int64(experts), false).Bytes/4)...)
	moe.Select(q, moe.SelectArgs{Logits: given, Router: state, Y: routing, Rows: n, Seq: n, Experts: experts, Slots: slots, Kind: moe.TopK, K: slots})
	m.Sync()
	used := int64(ints(m, routing, int64(experts)+1)[experts])

	gathered, up, y := act(rows*width), act(rows*hidden), act(n*hidden)
	gates := m.F32(normal(rows)...)
	moe.Gather(q, moe.GatherArgs{X: x, Routing: routing, Y: gathered, Rows: n, D: width, Experts: experts, Slots: slots})
	grouped.Forward(q, grouped.ForwardArgs{X: gathered, Weight: w, Routing: routing, Bias: bias, Y: up, Rows: n, In: width, Out: hidden, Experts: experts, Slots: slots})
	moe.Combine(q, moe.CombineArgs{X: up, Gates: gates, Routing: routing, Y: y, Rows: n, D: hidden, Experts: experts, Slots: slots})
	dup, dgates, drows := act(rows*hidden), m.Bytes(4*int64(rows)), act(rows*width)
	moe.CombineBackward(q, moe.CombineBackwardArgs{X: up, Gates: gates, Routing: routing, DY: dout, DX: dup, DGates: dgates, Rows: n, D: hidden, Experts: experts, Slots: slots})
	dw := m.F32(normal(experts * width * hidden)...)
	grouped.BackwardWeight(q, grouped.BackwardWeightArgs{X: gathered, Routing: routing, DY: dup, AddDWeight: dw, DWeight: dw, Rows: n, In: width, Out: hidden, Experts: experts, Slots: slots})
	db := m.F32(normal(experts * hidden)...)
	grouped.BackwardBias(q, grouped.BackwardBiasArgs{Routing: routing, DY: dup, AddDBias: db, DBias: db, Rows: n, In: width, Out: hidden, Experts: experts, Slots: slots})
	plain := act(rows * hidden)
	grouped.Forward(q, grouped.ForwardArgs{X: gathered, Weight: w, Routing: routing, Y: plain, Rows: n, In: width, Out: hidden, Experts: experts, Slots: slots})
	grouped.BackwardInput(q, grouped.BackwardInputArgs{Weight: w, Routing: routing, DY: dup, DX: drows, Rows: n, In: width, Out: hidden, Experts: experts, Slots: slots})
	dx := m.Act(normal(n * width)...)
	moe.GatherBackward(q, moe.GatherBackwardArgs{Routing: routing, DY: drows, AddDX: dx, DX: dx, Rows: n, D: width, Experts: experts, Slots: slots})
	dlogits, drouter := m.F32(normal(n*experts)...), m.F32(normal(experts*width)...)
	moe.LogitsBackwardWeight(q, moe.LogitsBackwardWeightArgs{X: x, DY: dlogits, AddDWeight: drouter, DWeight: drouter, Rows: n, D: width, Experts: experts})
	m.Sync()
	before := m.ReadAct(dx, int64(n*width))
	moe.LogitsBackwardInput(q, moe.LogitsBackwardInputArgs{Weight: router, DY: dlogits, AddDX: dx, DX: dx, Rows: n, D: width, Experts: experts})
	m.Sync()
	return map[string][]float32{
		"logits": m.ReadF32(logits, int64(n*experts)), "up": m.ReadAct(up, used*int64(hidden)), "y": m.ReadAct(y, int64(n*hidden)),
		"dup": m.ReadAct(dup, used*int64(hidden)), "dgates": m.ReadF32(dgates, used), "dbias": m.ReadF32(db, int64(experts*hidden)), "without bias": m.ReadAct(plain, used*int64(hidden)),
		"dweight": m.ReadF32(dw, int64(experts*width*hidden)),
		"drows":   m.ReadAct(drows, used*int64(width)), "dx": before, "drouter": m.ReadF32(drouter, int64(experts*width)),
		"dx of logits": m.ReadAct(dx, int64(n*width)),
	}
}

func TestRowsOnGPU(t *testing.T) {
	for _, s := range rowSizes {
		optest.OnGPU(t, func(t *testing.T, f32 bool) {
			gpu := optest.GPU(t, f32)
			want := rowResults(optest.NewMachine(t, 1), s.n, s.width, s.hidden, s.experts, s.slots)
			got := rowResults(gpu, s.n, s.width, s.hidden, s.experts, s.slots)
			limit := 3e-6
			if !f32 {
				limit = 2e-2 // of sums of rounded sums
			}
			for name, v := range want {
				scale := 0.0
				for _, x := range v {
					scale = max(scale, math.Abs(float64(x)))
				}
				worst := 0.0
				for i := range v {
					worst = max(worst, math.Abs(float64(v[i])-float64(got[name][i]))/scale)
				}
				if !(worst <= limit) {
					t.Errorf("%v: %s differs by %.1e of its largest", s, name, worst)
				}
			}
		})
	}
}

func TestRowsInUseOnGPU(t *testing.T) {
	optest.OnGPU(t, func(t *testing.T, f32 bool) {
		inUseEqualsAll(t, func(t *testing.T) *optest.Machine { return optest.GPU(t, f32) })
	})
}

// A large router's weight gets its gradient in fewer parts, of which all are added.
func TestLargeRouterOnGPU(t *testing.T) {
	optest.OnGPU(t, func(t *testing.T, f32 bool) {
		const n, width, experts = 66, 1025, 1024 // more than 2^18 elements
		run := func(m *optest.Machine) []float32 {
			rnd := rand.New(rand.NewPCG(5, 1))
			normal := func(k int) []float32 {
				v := make([]float32, k)
				for i := range v {
					v[i] = optest.RoundBF16([]float32{float32(rnd.NormFloat64())})[0]
				}
				return v
			}
			dw := m.Bytes(4 * width * experts)
			moe.LogitsBackwardWeight(m.Queue, moe.LogitsBackwardWeightArgs{X: m.Act(normal(n * width)...), DY: m.F32(normal(n * experts)...), DWeight: dw, Rows: n, D: width, Experts: experts})
			m.Sync()
			return m.ReadF32(dw, width*experts)
		}
		within(t, "gradient of the weight", run(optest.NewMachine(t, 2)), run(optest.GPU(t, f32)), 1e-4)
	})
}
