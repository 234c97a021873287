package moe_test

import (
	"testing"
	"unsafe"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/device/cpu"
	"github.com/megatrain/mtc/runtime/ops/grouped"
	"github.com/megatrain/mtc/runtime/ops/moe"
	"github.com/megatrain/mtc/runtime/ops/relu2"
	"github.com/megatrain/mtc/runtime/plan"
)

// layer is one mixture of experts on the CPU: its launches over memory of its own.
type layer struct {
	t    testing.TB
	d    device.Device
	q    device.Queue
	base device.Ptr
	top  int64

	batch, seq, width, hidden, experts int
	r                                  moe.SelectArgs // the router's constants
	hist                               bool

	scalars, state, weight, up, down device.Ptr
	dweight, dup, ddown              device.Ptr
}

const arena = 4 << 20

func newLayer(t testing.TB, r moe.SelectArgs, batch, seq, width, hidden int) *layer {
	l := &layer{t: t, d: cpu.New(), batch: batch, seq: seq, width: width, hidden: hidden, experts: r.Experts, r: r}
	t.Cleanup(func() { l.d.Close() })
	var err error
	if l.base, err = l.d.Alloc(device.DeviceMemory, arena); err != nil {
		t.Fatal(err)
	}
	l.q = l.d.Queue(device.Compute)
	l.hist = moe.HasHist(int64(r.Kind), int64(r.Balance))
	l.scalars = l.alloc(8 * plan.NumScalars)
	l.state = l.alloc(int(moe.StateOf(int64(r.Experts), l.hist).Bytes))
	e := r.Experts
	l.weight, l.up, l.down = l.alloc(4*e*width), l.alloc(4*e*width*hidden), l.alloc(4*e*width*hidden)
	l.dweight, l.dup, l.ddown = l.alloc(4*e*width), l.alloc(4*e*width*hidden), l.alloc(4*e*width*hidden)
	l.r.Seq = seq
	return l
}

func (l *layer) alloc(bytes int) device.Ptr {
	p := l.base.At(l.top)
	l.top += int64(bytes+255) &^ 255
	if l.top > arena {
		l.t.Fatal("the test's arena is full")
	}
	return p
}

func view[E int32 | float32 | float64](l *layer, p device.Ptr, n int) []E {
	var x E
	b := l.d.View(p, int64(n)*int64(unsafe.Sizeof(x)))
	return unsafe.Slice((*E)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

func (l *layer) f32(p device.Ptr, n int) []float32 { return view[float32](l, p, n) }

func (l *layer) set(p device.Ptr, v []float64) {
	to := l.f32(p, len(v))
	for i, x := range v {
		to[i] = float32(x)
	}
}

// scalar sets one of the step's scalars.
func (l *layer) scalar(i int, x float64) { view[float64](l, l.scalars, plan.NumScalars)[i] = x }

// tokens is one micro-batch of a layer.
type tokens struct {
	n                                        int
	x, targets, seen, logits, routing, gates device.Ptr
	rows, hidden, act, out, y                device.Ptr
	dy, dout, dact, dhidden, drows, dgates   device.Ptr
	dx, dlogits                              device.Ptr
}

func (l *layer) tokens(n int) *tokens {
	m := n * l.r.Slots
	f := func(k int) device.Ptr { return l.alloc(4 * k) }
	return &tokens{
		n: n, x: f(n * l.width), targets: f(n), seen: f(n), logits: f(n * l.experts), routing: f(n * int(moe.RoutingWords(int64(l.experts), int64(l.r.Slots)))),
		gates: f(m), rows: f(m * l.width), hidden: f(m * l.hidden), act: f(m * l.hidden), out: f(m * l.width), y: f(n * l.width),
		dy: f(n * l.width), dout: f(m * l.width), dact: f(m * l.hidden), dhidden: f(m * l.hidden), drows: f(m * l.width), dgates: f(m),
		dx: f(n * l.width), dlogits: f(n * l.experts),
	}
}

// route computes logits and routing. With observed the histograms are counted before.
func (l *layer) logitsOf(k *tokens) {
	moe.Logits(l.q, moe.LogitsArgs{X: k.x, Weight: l.weight, Y: k.logits, Rows: k.n, D: l.width, Experts: l.experts})
}

func (l *layer) observe(k *tokens) {
	r := l.r
	moe.Observe(l.q, moe.ObserveArgs{
		Logits: k.logits, Targets: k.targets, Scalars: l.scalars, Router: l.state, Y: k.seen,
		Rows: k.n, Seq: r.Seq, Experts: r.Experts, Slots: r.Slots, Kind: r.Kind, K: r.K, Sigmoid: r.Sigmoid, Renorm: r.Renorm,
		Balance: r.Balance, Pool: r.Pool, Choice: r.Choice, Causal: r.Causal,
		Rate: r.Rate, EMA: r.EMA, Capacity: r.Capacity, Start: r.Start, U: r.U, Alpha: r.Alpha, ZLoss: r.ZLoss, Scale: r.Scale,
	})
}

func (l *layer) route(k *tokens) {
	a := l.r
	a.Logits, a.Targets, a.Scalars, a.Router, a.Y, a.Rows = k.logits, k.targets, l.scalars, l.state, k.routing, k.n
	moe.Select(l.q, a)
}

// run computes the experts and the result of a routed micro-batch.
func (l *layer) run(k *tokens) {
	r := l.r
	moe.Gate(l.q, moe.GateArgs{
		Logits: k.logits, Routing: k.routing, Y: k.gates,
		Rows: k.n, Seq: r.Seq, Experts: r.Experts, Slots: r.Slots, Kind: r.Kind, K: r.K, Sigmoid: r.Sigmoid, Renorm: r.Renorm, Scale: r.Scale,
	})
	moe.Gather(l.q, moe.GatherArgs{X: k.x, Routing: k.routing, Y: k.rows, Rows: k.n, D: l.width, Experts: r.Experts, Slots: r.Slots})
	grouped.Forward(l.q, grouped.ForwardArgs{X: k.rows, Weight: l.up, Routing: k.routing, Y: k.hidden, Rows: k.n, In: l.width, Out: l.hidden, Experts: r.Experts, Slots: r.Slots})
	relu2.Forward(l.q, relu2.ForwardArgs{X: k.hidden, Y: k.act, Rows: k.n, D: r.Slots * l.hidden})
	grouped.Forward(l.q, grouped.ForwardArgs{X: k.act, Weight: l.down, Routing: k.routing, Y: k.out, Rows: k.n, In: l.hidden, Out: l.width, Experts: r.Experts, Slots: r.Slots})
	moe.Combine(l.q, moe.CombineArgs{X: k.out, Gates: k.gates, Routing: k.routing, Y: k.y, Rows: k.n, D: l.width, Experts: r.Experts, Slots: r.Slots})
}

// backward computes the gradients of a micro-batch; those of weights are set, or added to.
func (l *layer) backward(k *tokens, add bool) {
	r := l.r
	addTo := func(p device.Ptr) device.Ptr {
		if add {
			return p
		}
		return device.Ptr{}
	}
	moe.CombineBackward(l.q, moe.CombineBackwardArgs{
		X: k.out, Gates: k.gates, Routing: k.routing, DY: k.dy, DX: k.dout, DGates: k.dgates, Rows: k.n, D: l.width, Experts: r.Experts, Slots: r.Slots,
	})
	projection := func(x, w, dy, dx, dw device.Ptr, in, out int) {
		grouped.BackwardInput(l.q, grouped.BackwardInputArgs{Weight: w, Routing: k.routing, DY: dy, DX: dx, Rows: k.n, In: in, Out: out, Experts: r.Experts, Slots: r.Slots})
		grouped.BackwardWeight(l.q, grouped.BackwardWeightArgs{X: x, Routing: k.routing, DY: dy, DWeight: dw, AddDWeight: addTo(dw), Rows: k.n, In: in, Out: out, Experts: r.Experts, Slots: r.Slots})
	}
	projection(k.act, l.down, k.dout, k.dact, l.ddown, l.hidden, l.width)
	relu2.Backward(l.q, relu2.BackwardArgs{X: k.hidden, DY: k.dact, DX: k.dhidden, Rows: k.n, D: r.Slots * l.hidden})
	projection(k.rows, l.up, k.dhidden, k.drows, l.dup, l.width, l.hidden)
	moe.GatherBackward(l.q, moe.GatherBackwardArgs{Routing: k.routing, DY: k.drows, DX: k.dx, Rows: k.n, D: l.width, Experts: r.Experts, Slots: r.Slots})
	moe.GateBackward(l.q, moe.GateBackwardArgs{
		Logits: k.logits, Routing: k.routing, Targets: k.targets, Scalars: l.scalars, Router: l.state, DY: k.dgates, DLogits: k.dlogits,
		Rows: k.n, Seq: r.Seq, Experts: r.Experts, Slots: r.Slots, Kind: r.Kind, K: r.K, Sigmoid: r.Sigmoid, Renorm: r.Renorm,
		Balance: r.Balance, Alpha: r.Alpha, ZLoss: r.ZLoss, Scale: r.Scale,
	})
	moe.LogitsBackwardInput(l.q, moe.LogitsBackwardInputArgs{Weight: l.weight, DY: k.dlogits, DX: k.dx, AddDX: k.dx, Rows: k.n, D: l.width, Experts: r.Experts})
	moe.LogitsBackwardWeight(l.q, moe.LogitsBackwardWeightArgs{X: k.x, DY: k.dlogits, DWeight: l.dweight, AddDWeight: addTo(l.dweight), Rows: k.n, D: l.width, Experts: r.Experts})
}

func (l *layer) advance() {
	r := l.r
	moe.Advance(l.q, moe.AdvanceArgs{
		Scalars: l.scalars, Router: l.state,
		Rows: r.Rows, Seq: r.Seq, Experts: r.Experts, Slots: r.Slots, Kind: r.Kind, K: r.K, Sigmoid: r.Sigmoid, Renorm: r.Renorm, Observed: r.Observed,
		Balance: r.Balance, Pool: r.Pool, Choice: r.Choice, Causal: r.Causal,
		Rate: r.Rate, EMA: r.EMA, Capacity: r.Capacity, Start: r.Start, U: r.U, Alpha: r.Alpha, ZLoss: r.ZLoss, Scale: r.Scale,
	})
}

func (l *layer) sync() {
	l.t.Helper()
	if err := l.d.Sync(); err != nil {
		l.t.Fatal(err)
	}
}

// part is a list of a state.
func (l *layer) part(off int64) []float32 { return l.f32(l.state.At(off), l.experts) }

func (l *layer) parts() moe.State { return moe.StateOf(int64(l.experts), l.hist) }

func (l *layer) report() moe.Report {
	f := view[float64](l, l.state.At(l.parts().Report), int(moe.ReportLen(int64(l.experts))))
	return moe.ReportOf(f, int64(l.experts))
}
