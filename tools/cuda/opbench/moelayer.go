//go:build cuda

package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/grouped"
	"github.com/megatrain/mtc/runtime/ops/linear"
	"github.com/megatrain/mtc/runtime/ops/moe"
	"github.com/megatrain/mtc/runtime/ops/relu2"
	"github.com/megatrain/mtc/runtime/plan"
)

// moeShape is one mixture of experts: the published d12 layer, 16 routed experts and a shared one.
type moeShape struct{ tokens, width, hidden, experts, slots int }

// part is a piece of the layer's forward or backward.
type part struct {
	name  string
	flops float64
	run   func()
}

// moeLayer times forward and backward of one mixture of experts, the launches that the compiler
// makes for models/et_moe.mt, part by part and as a whole: with equal shares, and with three
// times the mean at one expert. The floor is that of its products at 790 TFLOP/s.
func moeLayer(m *memory, r *relay, emulate bool) error {
	s := moeShape{tokens: 65536, width: 768, hidden: 1536, experts: 16, slots: 2}
	if emulate {
		s = moeShape{tokens: 512, width: 64, hidden: 128, experts: 16, slots: 2}
	}
	type load struct {
		name  string
		first float64 // share of expert 0, in means
	}
	loads := []load{{"equal shares", 1}, {"one expert with 3 times the mean", 3}}
	if err := warm(m, r, []bench{{setup: func() func(int) {
		parts, _ := s.parts(m, 1)
		return func(int) {
			for _, p := range parts {
				p.run()
			}
		}
	}}}); err != nil {
		return err
	}
	for _, l := range loads {
		m.reset()
		parts, routing := s.parts(m, l.first)
		all, err := measure(m.dev, func(int) {
			for _, p := range parts {
				p.run()
			}
		}, emulate, true)
		if err != nil {
			return err
		}
		routed, largest, err := s.rows(m, routing)
		if err != nil {
			return err
		}
		fmt.Printf("\n%s, %d tokens, width %d, %d experts of %d and a shared one; %d rows, %d at the largest\n",
			l.name, s.tokens, s.width, s.experts, s.hidden, routed, largest)
		sum, flops := 0.0, 0.0
		for _, p := range parts {
			t, err := measure(m.dev, func(int) { p.run() }, emulate, true)
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			sum += t.Seconds()
			flops += p.flops
			rate := ""
			if p.flops > 0 {
				rate = fmt.Sprintf("%9.1f TFLOP/s", p.flops/t.Seconds()/1e12)
			}
			fmt.Printf("  %-34s %9.1f us %s\n", p.name, t.Seconds()*1e6, rate)
		}
		fmt.Printf("  %-34s %9.1f us\n", "sum of the parts", sum*1e6)
		verdict := "within"
		if all.Seconds() > 5e-3 {
			verdict = "ABOVE"
		}
		fmt.Printf("forward and backward: %.2f ms, %s the bar of 5 ms; products alone at 790 TFLOP/s: %.2f ms\n", all.Seconds()*1e3, verdict, flops/790e12*1e3)
	}
	return nil
}

// rows reads how many rows a routing has, and how many of them the largest expert.
func (s moeShape) rows(m *memory, routing device.Ptr) (all, largest int32, err error) {
	offsets := make([]byte, 4*(s.experts+1))
	err = m.dev.Read(offsets, routing)
	for e := range s.experts {
		next := int32(binary.LittleEndian.Uint32(offsets[4*e+4:]))
		all, largest = next, max(largest, next-all)
	}
	return all, largest, err
}

// parts cuts the layer's memory and lists its launches, and where the routing lies.
func (s moeShape) parts(m *memory, first float64) (list []part, routing device.Ptr) {
	n, d, f, e, c := s.tokens, s.width, s.hidden, s.experts, s.slots
	rows := n * c
	q := m.queue
	x, w := m.acts(n*d), m.acts(e*d)
	made, logits := m.f32(int64(n*e)), m.put(s.logits(first))
	scalars := make([]float64, plan.NumScalars)
	scalars[plan.ScalarRoute], scalars[plan.ScalarInvTokens] = moe.RouteTrain, 1/float64(n)
	step, targets := m.f64(scalars...), m.i32(make([]int32, n))
	// Cutoffs of 0 that an average of decay 1 leaves where they are.
	kept := make([]byte, moe.StateOf(int64(e), true).Bytes)
	binary.LittleEndian.PutUint64(kept[moe.StateOf(int64(e), true).Control+8*moe.ControlWeight:], math.Float64bits(1))
	state := m.put(kept)
	routing = m.put(make([]byte, 4*int64(n)*moe.RoutingWords(int64(e), int64(c))))
	up, down, upGrad, downGrad := m.acts(e*d*f), m.acts(e*d*f), m.f32(int64(e*d*f)), m.f32(int64(e*d*f))
	sharedUp, sharedDown, sharedUpGrad, sharedDownGrad := m.acts(d*f), m.acts(d*f), m.f32(int64(d*f)), m.f32(int64(d*f))
	routerGrad := m.f32(int64(e * d))
	gates, dgates := m.f32(int64(rows)), m.f32(int64(rows))
	in, hidden, act, out := m.acts(rows*d), m.acts(rows*f), m.acts(rows*f), m.acts(rows*d)
	sharedHidden, sharedAct, y := m.acts(n*f), m.acts(n*f), m.acts(n*d)
	dy, dx, dlogits := m.acts(n*d), m.acts(n*d), m.f32(int64(n*e))
	dsharedAct, dsharedHidden := m.acts(n*f), m.acts(n*f)
	dout, dact, dhidden, din := m.acts(rows*d), m.acts(rows*f), m.acts(rows*f), m.acts(rows*d)

	const rate = 1.0 / 16
	one := 2 * float64(n) * float64(d) * float64(f) // as many rows as tokens, in either load
	wide := func(x, weight, y device.Ptr, in, out int) func() {
		return func() {
			grouped.Forward(q, grouped.ForwardArgs{X: x, Weight: weight, Routing: routing, Y: y, Rows: n, In: in, Out: out, Experts: e, Slots: c})
		}
	}
	input := func(weight, dy, dx device.Ptr, in, out int) func() {
		return func() {
			grouped.BackwardInput(q, grouped.BackwardInputArgs{Weight: weight, Routing: routing, DY: dy, DX: dx, Rows: n, In: in, Out: out, Experts: e, Slots: c})
		}
	}
	weights := func(x, dy, dw device.Ptr, in, out int) func() {
		return func() {
			grouped.BackwardWeight(q, grouped.BackwardWeightArgs{X: x, Routing: routing, DY: dy, DWeight: dw, AddDWeight: dw, Rows: n, In: in, Out: out, Experts: e, Slots: c})
		}
	}
	list = []part{
		{"router: logits", 0, func() { moe.Logits(q, moe.LogitsArgs{X: x, Weight: w, Y: made, Rows: n, D: d, Experts: e}) }},
		{"select: mark, sort, count", 0, func() {
			moe.Select(q, moe.SelectArgs{Logits: logits, Targets: targets, Scalars: step, Router: state, Y: routing,
				Rows: n, Seq: n, Experts: e, Slots: c, Rate: rate, Capacity: -1, Scale: 1})
		}},
		{"gates", 0, func() {
			moe.Gate(q, moe.GateArgs{Logits: logits, Routing: routing, Y: gates, Rows: n, Seq: n, Experts: e, Slots: c, Rate: rate, Scale: 1})
		}},
		{"gather", 0, func() {
			moe.Gather(q, moe.GatherArgs{X: x, Routing: routing, Y: in, Rows: n, D: d, Experts: e, Slots: c})
		}},
		{"experts: up", one, wide(in, up, hidden, d, f)},
		{"experts: relu2", 0, func() {
			relu2.Forward(q, relu2.ForwardArgs{X: hidden, Y: act, Rows: n, D: c * f, Routing: routing, Experts: e, Slots: c})
		}},
		{"experts: down", one, wide(act, down, out, f, d)},
		{"combine", 0, func() {
			moe.Combine(q, moe.CombineArgs{X: out, Gates: gates, Routing: routing, Y: y, Rows: n, D: d, Experts: e, Slots: c})
		}},
		{"shared: up", one, func() {
			linear.Forward(q, linear.ForwardArgs{X: x, Weight: sharedUp, Y: sharedHidden, Rows: n, In: d, Out: f})
		}},
		{"shared: relu2", 0, func() { relu2.Forward(q, relu2.ForwardArgs{X: sharedHidden, Y: sharedAct, Rows: n, D: f}) }},
		{"shared: down, plus the routed", one, func() {
			linear.Forward(q, linear.ForwardArgs{X: sharedAct, Weight: sharedDown, AddY: y, Y: y, Rows: n, In: f, Out: d})
		}},
		{"shared: down, input", one, func() {
			linear.BackwardInput(q, linear.BackwardInputArgs{Weight: sharedDown, DY: dy, DX: dsharedAct, Rows: n, In: f, Out: d})
		}},
		{"shared: down, weight", one, func() {
			linear.BackwardWeight(q, linear.BackwardWeightArgs{X: sharedAct, DY: dy, DWeight: sharedDownGrad, AddDWeight: sharedDownGrad, Rows: n, In: f, Out: d})
		}},
		{"shared: relu2, backward", 0, func() {
			relu2.Backward(q, relu2.BackwardArgs{X: sharedHidden, DY: dsharedAct, DX: dsharedHidden, Rows: n, D: f})
		}},
		{"shared: up, input", one, func() {
			linear.BackwardInput(q, linear.BackwardInputArgs{Weight: sharedUp, DY: dsharedHidden, DX: dx, Rows: n, In: d, Out: f})
		}},
		{"shared: up, weight", one, func() {
			linear.BackwardWeight(q, linear.BackwardWeightArgs{X: x, DY: dsharedHidden, DWeight: sharedUpGrad, AddDWeight: sharedUpGrad, Rows: n, In: d, Out: f})
		}},
		{"combine, backward", 0, func() {
			moe.CombineBackward(q, moe.CombineBackwardArgs{X: out, Gates: gates, Routing: routing, DY: dy, DX: dout, DGates: dgates, Rows: n, D: d, Experts: e, Slots: c})
		}},
		{"experts: down, input", one, input(down, dout, dact, f, d)},
		{"experts: down, weight", one, weights(act, dout, downGrad, f, d)},
		{"experts: relu2, backward", 0, func() {
			relu2.Backward(q, relu2.BackwardArgs{X: hidden, DY: dact, DX: dhidden, Rows: n, D: c * f, Routing: routing, Experts: e, Slots: c})
		}},
		{"experts: up, input", one, input(up, dhidden, din, d, f)},
		{"experts: up, weight", one, weights(in, dhidden, upGrad, d, f)},
		{"gather, backward", 0, func() {
			moe.GatherBackward(q, moe.GatherBackwardArgs{Routing: routing, DY: din, AddDX: dx, DX: dx, Rows: n, D: d, Experts: e, Slots: c})
		}},
		{"gates, backward", 0, func() {
			moe.GateBackward(q, moe.GateBackwardArgs{Logits: logits, Routing: routing, Targets: targets, Scalars: step, Router: state, DY: dgates, DLogits: dlogits,
				Rows: n, Seq: n, Experts: e, Slots: c, Rate: rate, Scale: 1})
		}},
		{"router: input", 0, func() {
			moe.LogitsBackwardInput(q, moe.LogitsBackwardInputArgs{Weight: w, DY: dlogits, AddDX: dx, DX: dx, Rows: n, D: d, Experts: e})
		}},
		{"router: weight", 0, func() {
			moe.LogitsBackwardWeight(q, moe.LogitsBackwardWeightArgs{X: x, DY: dlogits, DWeight: routerGrad, AddDWeight: routerGrad, Rows: n, D: d, Experts: e})
		}},
		{"state: advance", 0, func() {
			moe.Advance(q, moe.AdvanceArgs{Scalars: step, Router: state, Rows: n, Seq: n, Experts: e, Slots: c, Rate: rate, EMA: 1, Capacity: -1, Scale: 1})
		}},
	}
	return list, routing
}

// logits are drawn so that a token passes the cutoff 0 of each expert by chance: one expert a token
// on average, and expert 0 has first times the mean.
func (s moeShape) logits(first float64) []byte {
	rnd := rand.New(rand.NewPCG(5, 6))
	out := make([]byte, 0, 4*s.tokens*s.experts)
	for range s.tokens {
		for e := range s.experts {
			p := first / float64(s.experts)
			if e > 0 {
				p = (1 - p) / float64(s.experts-1)
			}
			x := float32(0.1 + rnd.Float64())
			if rnd.Float64() >= p {
				x = -x
			}
			b := math.Float32bits(x)
			out = append(out, byte(b), byte(b>>8), byte(b>>16), byte(b>>24))
		}
	}
	return out
}
