package moe_test

import (
	"math"
	"slices"
	"testing"

	"github.com/megatrain/mtc/runtime/ops/moe"
)

// loss is what the gradients of a step are those of, with the choice held fixed, in float64
// from the values in memory.
func (l *layer) loss(ks []*tokens, routed [][]int32, usage [][]float64) float64 {
	e, d := l.experts, l.width
	total, n := 0.0, 0.0
	for _, k := range ks {
		for _, x := range view[int32](l, k.targets, k.n) {
			if x >= 0 {
				n++
			}
		}
	}
	for i, k := range ks {
		copy(view[int32](l, k.routing, len(routed[i])), routed[i])
		l.logitsOf(k)
		l.run(k)
		l.sync()
		y, dy := l.f32(k.y, k.n*d), l.f32(k.dy, k.n*d)
		for j := range y {
			total += float64(y[j]) * float64(dy[j])
		}
		logits := l.f32(k.logits, k.n*e)
		for t, target := range view[int32](l, k.targets, k.n) {
			if target < 0 {
				continue
			}
			sum, lse := 0.0, 0.0
			u := make([]float64, e)
			for j, x := range logits[t*e : (t+1)*e] {
				lse += math.Exp(float64(x))
				u[j] = math.Exp(float64(x))
				if l.r.Sigmoid {
					u[j] = 1 / (1 + math.Exp(-float64(x)))
				}
				sum += u[j]
			}
			for j := range u {
				if usage != nil {
					total += float64(l.r.Alpha) * usage[i][j] * u[j] / sum / n
				}
			}
			total += float64(l.r.ZLoss) * math.Log(lse) * math.Log(lse) / n
		}
	}
	return total
}

// TestGradientsAreFiniteDifferences: of the input, the router, and the experts, for every router
// and each of its losses, over two micro-batches with padding.
func TestGradientsAreFiniteDifferences(t *testing.T) {
	for name := range routers {
		t.Run(name, func(t *testing.T) {
			l := newLayer(t, routerOf(name), 2, 8, 5, 6)
			ks := []*tokens{l.tokens(16), l.tokens(16)}
			l.fill(11, ks...)
			for i, k := range ks {
				view[int32](l, k.targets, k.n)[3+i] = -1
			}
			if l.r.Kind == moe.Cutoff {
				l.r.Start = 0.3
			}
			l.step(ks...)
			var routed [][]int32
			var usage [][]float64
			words := int(moe.RoutingOf(16, 4, int64(l.r.Slots)).Words)
			step, tokens := make([]float64, 4), 0.0
			for i, k := range ks {
				routed = append(routed, slices.Clone(view[int32](l, k.routing, words)))
				micro, n := make([]float64, 4), 0.0
				r := moe.RoutingOf(16, 4, int64(l.r.Slots))
				targets := view[int32](l, k.targets, k.n)
				for j := range routed[i][4] {
					if targets[routed[i][r.Token+int64(j)]] >= 0 {
						micro[routed[i][r.Expert+int64(j)]]++
					}
				}
				for _, x := range targets {
					if x >= 0 {
						n++
					}
				}
				tokens += n
				for e := range micro {
					step[e] += micro[e]
					micro[e] *= 4 / (float64(l.r.K) * n)
				}
				usage = append(usage, micro)
			}
			for e := range step {
				step[e] *= 4 / (float64(l.r.K) * tokens)
			}
			switch l.r.Balance {
			case moe.AuxMicro:
			case moe.AuxStep:
				usage = [][]float64{step, step}
			default:
				usage = nil
			}
			l.compare(ks, routed, usage)
		})
	}
}

func (l *layer) compare(ks []*tokens, routed [][]int32, usage [][]float64) {
	l.t.Helper()
	e, d, h := l.experts, l.width, l.hidden
	for _, c := range []struct {
		what string
		v, g []float32
	}{
		{"x", l.f32(ks[1].x, 16*d), slices.Clone(l.f32(ks[1].dx, 16*d))},
		{"router", l.f32(l.weight, e*d), slices.Clone(l.f32(l.dweight, e*d))},
		{"up", l.f32(l.up, e*d*h), slices.Clone(l.f32(l.dup, e*d*h))},
		{"down", l.f32(l.down, e*d*h), slices.Clone(l.f32(l.ddown, e*d*h))},
	} {
		for i := range c.v {
			const eps = 2e-3
			x := c.v[i]
			c.v[i] = x + eps
			up := l.loss(ks, routed, usage)
			c.v[i] = x - eps
			down := l.loss(ks, routed, usage)
			c.v[i] = x
			if d := (up - down) / (2 * eps); math.Abs(d-float64(c.g[i])) > 4e-3*(1+math.Abs(d)) {
				l.t.Errorf("d.%s[%d] = %v, the difference quotient is %v", c.what, i, c.g[i], d)
			}
		}
	}
}
