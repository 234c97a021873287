package moe_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/megatrain/mtc/runtime/ops/moe"
	"github.com/megatrain/mtc/runtime/plan"
)

// fill draws a layer's weights, and x, dy and targets of micro-batches.
func (l *layer) fill(seed uint64, ks ...*tokens) {
	r := rand.New(rand.NewPCG(seed, 7))
	draw := func(v []float32, s float64) {
		for i := range v {
			v[i] = float32(s * r.NormFloat64())
		}
	}
	e, d, h := l.experts, l.width, l.hidden
	draw(l.f32(l.weight, e*d), 1/math.Sqrt(float64(d)))
	draw(l.f32(l.up, e*d*h), 0.5)
	draw(l.f32(l.down, e*d*h), 0.5)
	for _, k := range ks {
		draw(l.f32(k.x, k.n*d), 1)
		draw(l.f32(k.dy, k.n*d), 1)
		clear(view[int32](l, k.targets, k.n))
	}
}

// routers are the kinds of routers with every balance and loss, 4 experts.
var routers = map[string]moe.SelectArgs{
	"threshold":                {Kind: moe.Cutoff, Rate: 0.25, EMA: 0.9, Capacity: -1, Scale: 1, Slots: 4},
	"expert choice, sequence":  {Kind: moe.Cutoff, Rate: 0.25, EMA: 0.9, Capacity: -1, Scale: 1, Slots: 4, Pool: moe.Sequence, Choice: -1},
	"expert choice, step":      {Kind: moe.Cutoff, Rate: 0.25, EMA: 0.9, Capacity: -1, Scale: 1, Slots: 4, Pool: moe.Step, Choice: -1, Observed: true},
	"softmax":                  {Kind: moe.TopK, K: 2, Slots: 2, Scale: 1},
	"softmax renorm aux zloss": {Kind: moe.TopK, K: 2, Slots: 2, Scale: 1, Renorm: true, Balance: moe.AuxStep, Alpha: 0.4, ZLoss: 0.1},
	"sigmoid aux micro":        {Kind: moe.TopK, K: 2, Slots: 2, Scale: 1, Sigmoid: true, Balance: moe.AuxMicro, Alpha: 0.4},
	"sigmoid renorm scale":     {Kind: moe.TopK, K: 3, Slots: 3, Scale: 2, Sigmoid: true, Renorm: true, Balance: moe.LossFree, U: 0.01},
	"quantile":                 {Kind: moe.TopK, K: 1, Slots: 1, Scale: 1, Balance: moe.QuantileTop},
}

func routerOf(name string) moe.SelectArgs {
	r := routers[name]
	r.Experts = 4
	return r
}

// step routes and runs micro-batches in training.
func (l *layer) step(ks ...*tokens) {
	n := 0
	for _, k := range ks {
		for _, x := range view[int32](l, k.targets, k.n) {
			if x >= 0 {
				n++
			}
		}
	}
	l.scalar(plan.ScalarRoute, moe.RouteTrain)
	l.scalar(plan.ScalarInvTokens, 1/float64(n))
	for _, k := range ks {
		l.logitsOf(k)
		if l.r.Observed {
			l.observe(k)
		}
	}
	for _, k := range ks {
		l.route(k)
		l.run(k)
	}
	for i, k := range ks {
		l.backward(k, i > 0)
	}
	l.sync()
}

// TestStateDoesNotDependOnMicroBatches: 16 sequences as one, two, four and eight micro-batches
// leave the same state, bit for bit, and the same report.
func TestStateDoesNotDependOnMicroBatches(t *testing.T) {
	const seq, rows = 8, 16
	for name := range routers {
		t.Run(name, func(t *testing.T) {
			var want []byte
			var routed []string
			for _, parts := range []int{1, 2, 4, 8} {
				l := newLayer(t, routerOf(name), rows/parts, seq, 5, 6)
				var ks []*tokens
				for range parts {
					ks = append(ks, l.tokens(rows*seq/parts))
				}
				for range 3 {
					r := rand.New(rand.NewPCG(5, 5))
					l.fill(3)
					for _, k := range ks {
						for i := range l.f32(k.x, k.n*5) {
							l.f32(k.x, k.n*5)[i] = float32(r.NormFloat64())
						}
					}
					for _, k := range ks {
						for i := range k.n {
							view[int32](l, k.targets, k.n)[i] = int32(min(0, r.IntN(9)-1))
						}
					}
					l.step(ks...)
					l.advance()
					l.sync()
				}
				s := l.parts()
				got := slices.Clone(l.d.View(l.state, s.Persistent))
				report := slices.Clone(l.d.View(l.state.At(s.Report), s.Bytes-s.Report))
				if l.r.Balance == moe.AuxMicro { // a loss over each micro-batch, which depends on how they are cut
					clear(report[8*moe.ReportBalance : 8*moe.ReportBalance+8])
				}
				got = append(got, report...)
				var pairs []string
				for i, k := range ks {
					w := view[int32](l, k.routing, int(moe.RoutingOf(int64(k.n), 4, int64(l.r.Slots)).Words))
					p := moe.RoutingOf(int64(k.n), 4, int64(l.r.Slots))
					for j := range int64(w[4]) {
						pairs = append(pairs, fmt.Sprint(int(w[p.Token+j])+i*k.n, w[p.Expert+j]))
					}
				}
				slices.Sort(pairs)
				if want == nil {
					want, routed = got, pairs
					continue
				}
				if !bytes.Equal(got, want) {
					t.Errorf("%d micro-batches leave another state", parts)
				}
				if !slices.Equal(pairs, routed) {
					t.Errorf("%d micro-batches route otherwise", parts)
				}
			}
		})
	}
}

// TestUsageMeetsTheRate: with logits that do not drift the usage of experts of any distribution
// comes to the rate within the error of sampling.
func TestUsageMeetsTheRate(t *testing.T) {
	r := routerOf("threshold")
	r.Start, r.Causal = 1.5, 50
	l := newLayer(t, r, 4, 64, 4, 4)
	k := l.tokens(256)
	l.fill(1, k)
	g := rand.New(rand.NewPCG(8, 8))
	l.scalar(plan.ScalarRoute, moe.RouteTrain)
	var sum moe.Report
	for step := range 120 {
		logits := l.f32(k.logits, 256*4)
		for i := range logits {
			e := i % 4
			x := g.NormFloat64()
			if e == 3 {
				x = math.Exp(x) // skewed
			}
			logits[i] = float32(float64(e)*3 - 4 + x*(1+float64(e)))
		}
		l.route(k)
		l.advance()
		l.sync()
		if step >= 60 {
			sum.Add(l.report())
		}
	}
	for e, n := range sum.Count {
		if u := n / sum.Tokens; math.Abs(u-0.25) > 0.015 {
			t.Errorf("expert %d has usage %.4f", e, u)
		}
	}
	fan := 0.0
	for _, n := range sum.Fan {
		fan += n
	}
	if fan != sum.Tokens || sum.Dropped != 0 {
		t.Errorf("fan-outs of %v tokens, of %v; %v pairs dropped", fan, sum.Tokens, sum.Dropped)
	}
}

// TestDeadExpertComesBack: an expert whose logits fall by D gets nothing until its cutoff has
// followed, within the time that the average takes.
func TestDeadExpertComesBack(t *testing.T) {
	r := routerOf("threshold")
	l := newLayer(t, r, 4, 64, 4, 4)
	k := l.tokens(256)
	l.fill(1, k)
	g := rand.New(rand.NewPCG(8, 8))
	l.scalar(plan.ScalarRoute, moe.RouteTrain)
	usage := func(shift float64) float64 {
		logits := l.f32(k.logits, 256*4)
		for i := range logits {
			logits[i] = float32(g.NormFloat64())
			if i%4 == 2 {
				logits[i] += float32(shift)
			}
		}
		l.route(k)
		l.advance()
		l.sync()
		return l.report().Count[2] / 256
	}
	for range 30 {
		usage(0)
	}
	const fall = 5.0
	if u := usage(-fall); u > 0.01 {
		t.Fatalf("usage %v right after the fall", u)
	}
	// The gap is fall * ema^n: below a tenth after log(10 * fall) / (1 - ema) steps.
	n := int(math.Log(10*fall)/(1-0.9)) + 1
	for range n {
		usage(-fall)
	}
	sum := 0.0
	for range 20 {
		sum += usage(-fall) / 20
	}
	if math.Abs(sum-0.25) > 0.05 {
		t.Errorf("usage %.3f after %d steps", sum, n)
	}
}

// TestStateIsFrozen: evaluation and skipped steps move nothing, and leave no counts.
func TestStateIsFrozen(t *testing.T) {
	for name := range routers {
		l := newLayer(t, routerOf(name), 2, 8, 5, 6)
		k := l.tokens(16)
		l.fill(4, k)
		l.step(k)
		l.advance()
		l.sync()
		all := func() []byte { return slices.Clone(l.d.View(l.state, l.parts().Report)) }
		before := all()
		l.scalar(plan.ScalarRoute, moe.RouteFrozen)
		if l.r.Observed {
			l.observe(k)
		}
		l.route(k)
		l.sync()
		if !bytes.Equal(all(), before) {
			t.Errorf("%s: evaluation changes the state", name)
		}
		l.step(k)
		l.scalar(plan.ScalarSkip, 1)
		l.advance()
		l.sync()
		if !bytes.Equal(all(), before) {
			t.Errorf("%s: a skipped step changes the state", name)
		}
	}
}

// TestTokensAreApart: with frozen cutoffs a token's result is the same bits whatever stands
// behind it, beside it, and in whatever order sequences come; by an expert's choice it is not.
func TestTokensAreApart(t *testing.T) {
	for name := range routers {
		l := newLayer(t, routerOf(name), 4, 8, 5, 6)
		a, b := l.tokens(32), l.tokens(32)
		l.fill(6, a, b)
		l.r.Start = 0.4
		l.scalar(plan.ScalarRoute, moe.RouteFrozen)
		out := func(k *tokens) []float32 {
			l.logitsOf(k)
			l.route(k)
			l.run(k)
			l.sync()
			return slices.Clone(l.f32(k.y, k.n*5))
		}
		// b is a with its sequences in another order, and other tokens at the end of the last one.
		order := []int{2, 0, 3, 1}
		for i, from := range order {
			copy(l.f32(b.x, 32*5)[i*40:(i+1)*40], l.f32(a.x, 32*5)[from*40:(from+1)*40])
		}
		for i := 155; i < 160; i++ {
			l.f32(b.x, 32*5)[i] += 3
		}
		check := func() bool {
			x, y := out(a), out(b)
			same := true
			for i, from := range order {
				n := 40
				if i == 3 {
					n = 35
				}
				same = same && slices.Equal(x[from*40:from*40+n], y[i*40:i*40+n])
			}
			return same
		}
		if !check() {
			t.Errorf("%s: a token's result depends on others", name)
		}
		one := l.tokens(1)
		x := out(a)
		for i := range 32 {
			copy(l.f32(one.x, 5), l.f32(a.x, 32*5)[i*5:])
			if !slices.Equal(out(one), x[i*5:(i+1)*5]) {
				t.Errorf("%s: token %d alone has another result", name, i)
				break
			}
		}
		if name == "expert choice, sequence" {
			l.scalar(plan.ScalarRoute, moe.RouteTrain)
			if check() {
				t.Errorf("%s: changing a token changes no earlier one", name)
			}
		}
	}
}
