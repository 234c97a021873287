package moe

import (
	"math"
	"sync/atomic"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/loops"
	"github.com/megatrain/mtc/runtime/plan"
)

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// softmax sets p to that of a token's logits and returns their log-sum-exp.
func softmax(p []float64, l []float32) float64 {
	top := math.Inf(-1)
	for _, x := range l {
		top = max(top, float64(x))
	}
	sum := 0.0
	for i, x := range l {
		p[i] = math.Exp(float64(x) - top)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return top + math.Log(sum)
}

// scores sets s to a token's scores: p of a softmax over all experts, or sigmoids.
func (r *router) scores(s []float64, l []float32) {
	if r.Kind == TopK && !r.Sigmoid {
		softmax(s, l)
		return
	}
	for i, x := range l {
		s[i] = sigmoid(float64(x))
	}
}

func gateCPU(c device.CPU, a *device.Args) {
	k := routerOf(a)
	n, e, s := int64(k.Rows), int64(k.Experts), int64(k.Slots)
	l, r, y := c.F32(a.P[0], n*e), routingAt(c, a.P[1], n, e, s), c.F32(a.P[2], n*s)
	loops.Rows(c, n, 8*e, func(lo, hi int64) {
		score := make([]float64, e)
		for t := lo; t < hi; t++ {
			rows := r.of(t)
			if len(rows) == 0 {
				continue
			}
			k.scores(score, l[t*e:(t+1)*e])
			f := k.factor(score, r, rows)
			for _, i := range rows {
				y[i] = float32(f * score[r.expert[i]])
			}
		}
	})
}

// factor is what makes gates of a token's scores.
func (r *router) factor(score []float64, at *routing, rows []int32) float64 {
	if r.Kind != TopK {
		return 1
	}
	if !r.Renorm {
		return float64(r.Scale)
	}
	sum := 0.0
	for _, i := range rows {
		sum += score[at.expert[i]]
	}
	return float64(r.Scale) / max(sum, 1e-20)
}

func gateBackwardCPU(c device.CPU, a *device.Args) {
	k := routerOf(a)
	n, e, s := int64(k.Rows), int64(k.Experts), int64(k.Slots)
	l, r := c.F32(a.P[0], n*e), routingAt(c, a.P[1], n, e, s)
	targets := c.I32(a.P[2], n)
	dy, add, dl := c.F32(a.P[5], n*s), c.F32(a.P[6], n*e), c.F32(a.P[7], n*e)
	inv := 0.0
	if sc := c.F64(a.P[3], plan.NumScalars); sc != nil {
		inv = sc[plan.ScalarInvTokens]
	}
	usage := k.usage(c, a, r, targets)
	st := stateAt(c, a.P[4], e, k.hist())
	loops.Rows(c, n, 16*e, func(lo, hi int64) {
		var balance, z int64
		score, g := make([]float64, e), make([]float64, e)
		p := make([]float64, e)
		for t := lo; t < hi; t++ {
			row := l[t*e : (t+1)*e]
			k.scores(score, row)
			clear(g)
			k.gateGradient(g, score, r, r.of(t), dy)
			if targets == nil || targets[t] >= 0 {
				if usage != nil {
					balance += parts(k.auxGradient(g, score, usage, float64(k.Alpha)*inv))
				}
				if k.ZLoss != 0 {
					lse := softmax(p, row)
					z += parts(lse * lse)
					for i := range g {
						g[i] += 2 * float64(k.ZLoss) * inv * lse * p[i]
					}
				}
			}
			to := dl[t*e : (t+1)*e]
			for i := range to {
				v := float32(g[i])
				if add != nil {
					v += add[t*e+int64(i)]
				}
				to[i] = v
			}
		}
		if st != nil && (balance != 0 || z != 0) {
			atomic.AddInt64(&st.losses[LossBalance], balance)
			atomic.AddInt64(&st.losses[LossZ], z)
		}
	})
}

// parts is x in whole parts of LossPart; 0 for what is no number or beyond all reason.
func parts(x float64) int64 {
	if !(math.Abs(x) < 1<<31) {
		return 0
	}
	return int64(math.RoundToEven(x / LossPart))
}

// gateGradient adds the gradient of a token's logits from those of its gates.
func (r *router) gateGradient(g, score []float64, at *routing, rows []int32, dy []float32) {
	if len(rows) == 0 {
		return
	}
	f := r.factor(score, at, rows)
	mean := 0.0 // sum over the token's experts of dgate * gate
	for _, i := range rows {
		mean += float64(dy[i]) * f * score[at.expert[i]]
	}
	switch {
	case r.Kind != TopK || r.Sigmoid:
		if !r.Renorm {
			mean = 0
		}
		for _, i := range rows {
			s := score[at.expert[i]]
			d := float64(dy[i]) * f
			if r.Renorm {
				d -= mean * f / float64(r.Scale)
			}
			g[at.expert[i]] += d * s * (1 - s)
		}
	case r.Renorm: // a softmax over the chosen
		for _, i := range rows {
			gate := f * score[at.expert[i]]
			g[at.expert[i]] += gate * (float64(dy[i]) - mean/float64(r.Scale))
		}
	default:
		for j := range g {
			g[j] -= mean * score[j]
		}
		for _, i := range rows {
			g[at.expert[i]] += float64(dy[i]) * f * score[at.expert[i]]
		}
	}
}

// usage is E / (k n) times the pairs of each expert, over what the balance loss counts; nil
// without one.
func (r *router) usage(c device.CPU, a *device.Args, at *routing, targets []int32) []float64 {
	if r.Balance != AuxMicro && r.Balance != AuxStep || r.Alpha == 0 {
		return nil
	}
	out := make([]float64, r.Experts)
	tokens := 0.0
	if r.Balance == AuxStep {
		s := stateAt(c, a.P[4], int64(r.Experts), r.hist())
		tokens = float64(s.counters[CountTokens])
		for i := range out {
			out[i] = float64(s.count[i])
		}
	} else {
		for t := range int64(r.Rows) {
			if targets == nil || targets[t] >= 0 {
				tokens++
				for _, i := range at.of(t) {
					out[at.expert[i]]++
				}
			}
		}
	}
	for i := range out {
		out[i] *= float64(r.Experts) / (float64(r.K) * max(tokens, 1))
	}
	return out
}

// auxGradient adds w times the gradient of sum over i of usage[i] * u[i], u being the token's
// scores divided by their sum, and returns that sum.
func (r *router) auxGradient(g, score, usage []float64, w float64) float64 {
	sum, mean := 0.0, 0.0
	for i, s := range score {
		sum += s
		mean += usage[i] * s
	}
	sum = max(sum, 1e-20)
	mean /= sum
	for i, s := range score {
		d := w * (usage[i] - mean) * s / sum
		if r.Sigmoid {
			d *= 1 - s
		}
		g[i] += d
	}
	return mean
}
