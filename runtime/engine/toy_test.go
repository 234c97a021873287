package engine

import (
	"math"
	"testing"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// The toy model of these tests: N values, two units that multiply by their weights,
// x1 = x0 * w0 and x2 = x1 * w1, loss sum(x2), trained by plain gradient descent with the
// gradient clipped. Its plan is written by hand as a streaming one with clipping: one weight
// slot that both units share, a gradient slot for each, updates under the next step.
const (
	toyN      = 64
	toyMicros = 2
	toyBytes  = 4 * toyN
)

// toy builds the plan; a test may change it before use.
type toy struct {
	plan.Plan
	used [2]int64 // bytes of each arena
	// skip leaves out wait number skip, counted from 1 in the order they are added.
	skip, waits int
}

func (t *toy) buffer(name string, arena int, bytes int64, parity bool) plan.BufID {
	t.Buffers = append(t.Buffers, plan.Buffer{Name: name, Arena: arena, Off: t.used[arena], Bytes: bytes, Parity: parity})
	t.used[arena] += bytes
	if parity {
		t.used[arena] += bytes
	}
	t.Arenas[arena].Bytes = t.used[arena]
	return plan.BufID(len(t.Buffers) - 1)
}

// Events of the toy's plan.
const (
	evFeed = iota
	evPrefetch
	evForward
	evPrefetch2
	evLoss
	evBackward
	evOffload
	evOffload2
	evReduce
	evResults
	evUpdate
	evUpdate2
	evPrefetch3
	numEvents
)

func newToy(skip int) *toy {
	t := &toy{skip: skip}
	t.Model, t.Batch, t.Rows, t.Seq, t.Micros, t.Groups = "toy", toyMicros, 1, toyN, toyMicros, 1
	t.Clip, t.NumParams = true, 2*toyN
	t.Events, t.ResultsEvent = numEvents, evResults
	t.Spans = []string{"", "toy.mt:7"}
	t.Templates = []string{"mul"}
	t.Units = []plan.Unit{{Name: "layer[0]", Slabs: []int{0}}, {Name: "layer[1]", Slabs: []int{1}}}
	t.Arenas = []plan.Arena{{Name: "device", Memory: device.DeviceMemory}, {Name: "host", Memory: device.HostMemory}}
	t.Buffers = make([]plan.Buffer, 1)
	const dev, host = 0, 1
	t.Tokens = t.buffer("tokens[0]", dev, toyBytes, true)
	t.buffer("tokens[1]", dev, toyBytes, true)
	t.HostTokens = t.buffer("host tokens", host, toyMicros*toyBytes, true)
	t.HostTargets = t.buffer("host targets", host, toyMicros*toyBytes, true)
	t.Scalars = t.buffer("scalars", dev, 8*plan.NumScalars, true)
	t.HostScalars = t.buffer("host scalars", host, 8*plan.NumScalars, true)
	t.Results = t.buffer("results", host, 8*plan.NumScalars, true)
	t.Partials = t.buffer("partials", dev, 16*toyMicros, false)
	t.Norms = t.buffer("norms", dev, 16, false)
	t.Squares = t.buffer("squares", dev, 16, false)
	slot := t.buffer("slot", dev, toyBytes, false)
	var grad, x1 [2]plan.BufID
	for i := range 2 {
		grad[i] = t.buffer("grad slot", dev, toyBytes, false)
		x1[i] = t.buffer("x1", dev, toyBytes, false)
		t.Slabs = append(t.Slabs, plan.Slab{Name: t.Units[i].Name, Elems: toyN,
			Weight: t.buffer("weight", host, toyBytes, false), Grad: t.buffer("grad", host, toyBytes, false)})
	}
	dx := t.buffer("dx", dev, toyMicros*toyBytes, false)

	for _, l := range []plan.List{plan.First, plan.Steady, plan.Drain, plan.Eval} {
		start := len(t.Tasks)
		t.list(l, slot, grad, x1, dx)
		t.Lists[l] = plan.Range{Start: start, End: len(t.Tasks)}
	}
	return t
}

func (t *toy) list(l plan.List, slot plan.BufID, grad, x1 [2]plan.BufID, dx plan.BufID) {
	train := l == plan.First || l == plan.Steady
	late := l == plan.Steady || l == plan.Drain // does the updates of the step before
	add := func(task plan.Task, event int, waits ...plan.Wait) {
		task.ID, task.List, task.Event, task.Span = len(t.Tasks), l, event, 1
		for _, w := range waits {
			if l != plan.Steady && l != plan.Drain && w.Back > 0 {
				continue
			}
			if t.waits++; t.waits != t.skip {
				task.Waits = append(task.Waits, w)
			}
		}
		t.Tasks = append(t.Tasks, task)
	}
	now := func(e int) plan.Wait { return plan.Wait{Event: e} }
	before := func(e int) plan.Wait { return plan.Wait{Event: e, Back: 1} }
	copyTask := func(k plan.Kind, lane device.Lane, src plan.BufID, off int64, dst plan.BufID, n int64) plan.Task {
		return plan.Task{Kind: k, Lane: lane, Unit: -1, Slab: -1, Micro: -1, Src: src, SrcOff: off, Dst: dst, Bytes: n}
	}
	compute := func(f plan.Func, unit, micro int, b plan.Bind) plan.Task {
		if len(b.Grads) > 0 && train && micro == toyMicros-1 {
			b.Squares, b.Whole = t.Squares, []bool{true}
		}
		return plan.Task{Kind: plan.Compute, Func: f, Lane: device.Compute, Unit: unit, Slab: -1, Micro: micro, Bind: b}
	}
	update := func(slab, event int, offloaded int) {
		if late {
			add(plan.Task{Kind: plan.Update, Lane: device.Host, Unit: -1, Slab: slab, Micro: -1, Back: 1, Bind: plan.Bind{
				Weights: []plan.BufID{t.Slabs[slab].Weight}, Grads: []plan.BufID{t.Slabs[slab].Grad}, Scalars: t.Results}},
				event, before(offloaded), before(evResults))
		}
	}
	if l == plan.Drain {
		update(0, evUpdate, evOffload)
		update(1, evUpdate2, evOffload2)
		return
	}
	add(copyTask(plan.Feed, device.H2D, t.HostScalars, 0, t.Scalars, 8*plan.NumScalars), -1)
	for m := range toyMicros {
		event := -1
		if m == toyMicros-1 {
			event = evFeed
		}
		add(copyTask(plan.Feed, device.H2D, t.HostTokens, int64(m)*toyBytes, t.Tokens+plan.BufID(m), toyBytes), event)
	}
	update(0, evUpdate, evOffload)
	add(copyTask(plan.Prefetch, device.H2D, t.Slabs[0].Weight, 0, slot, toyBytes), evPrefetch, now(evUpdate), before(evBackward))
	for m := range toyMicros {
		var waits []plan.Wait
		event := -1
		if m == 0 {
			waits = []plan.Wait{now(evPrefetch), now(evFeed)}
		} else {
			event = evForward
		}
		add(compute(plan.Forward, 0, m, plan.Bind{In: []plan.BufID{t.Tokens + plan.BufID(m)}, Out: []plan.BufID{x1[m]}, Weights: []plan.BufID{slot}}), event, waits...)
	}
	update(1, evUpdate2, evOffload2)
	add(copyTask(plan.Prefetch, device.H2D, t.Slabs[1].Weight, 0, slot, toyBytes), evPrefetch2, now(evUpdate2), now(evForward))
	f := plan.Loss
	if !train {
		f = plan.EvalLoss
	}
	for m := range toyMicros {
		var waits []plan.Wait
		event := -1
		if m == 0 {
			waits = []plan.Wait{now(evPrefetch2), before(evOffload2)}
		} else {
			event = evLoss
		}
		add(compute(f, 1, m, plan.Bind{In: []plan.BufID{x1[m]}, DIn: []plan.BufID{dx}, Weights: []plan.BufID{slot},
			Grads: []plan.BufID{grad[1]}, Add: []bool{m > 0}, Partials: t.Partials, Scalars: t.Scalars}), event, waits...)
	}
	if train {
		offload := func(slab, computed, event int, updated int) {
			add(copyTask(plan.Offload, device.D2H, grad[slab], 0, t.Slabs[slab].Grad, toyBytes), event, now(computed), now(updated))
		}
		norm := plan.Task{Kind: plan.Norm, Lane: device.Compute, Unit: -1, Micro: -1, Slab: 1, Bind: plan.Bind{Squares: t.Squares, Norms: t.Norms}}
		add(norm, -1)
		offload(1, evLoss, evOffload2, evUpdate2)
		add(copyTask(plan.Prefetch, device.H2D, t.Slabs[0].Weight, 0, slot, toyBytes), evPrefetch3, now(evLoss))
		for m := range toyMicros {
			var waits []plan.Wait
			event := -1
			if m == 0 {
				waits = []plan.Wait{now(evPrefetch3), before(evOffload)}
			} else {
				event = evBackward
			}
			add(compute(plan.Backward, 0, m, plan.Bind{In: []plan.BufID{t.Tokens + plan.BufID(m)}, DOut: []plan.BufID{dx}, Weights: []plan.BufID{slot},
				Grads: []plan.BufID{grad[0]}, Add: []bool{m > 0}}), event, waits...)
		}
		norm.Slab = 0
		add(norm, -1)
		offload(0, evBackward, evOffload, evUpdate)
	}
	reduce := plan.Task{Kind: plan.Reduce, Lane: device.Compute, Unit: -1, Slab: -1, Micro: -1, Bind: plan.Bind{Scalars: t.Scalars, Partials: t.Partials}}
	if train {
		reduce.Bind.Norms = t.Norms
	}
	add(reduce, evReduce)
	// Last step's updates read the other copy of Results, the step before's are in hand.
	add(copyTask(plan.Report, device.D2H, t.Scalars, 0, t.Results, 8*plan.NumScalars), evResults, now(evReduce))
}

// Kernels of the toy: P 0 in, 1 weight, 2 out or gradient, 3 what it adds to, 4 dx, 5 partials,
// 6 scalars.
func toyKernel(name string, f func(c device.CPU, a *device.Args, n int64)) *device.Kernel {
	return &device.Kernel{Name: name, CPU: func(c device.CPU, a *device.Args) { f(c, a, toyN) }}
}

var toyForward = toyKernel("toy.Forward", func(c device.CPU, a *device.Args, n int64) {
	x, w, y := c.I32(a.P[0], n), c.F32(a.P[1], n), c.F32(a.P[2], n)
	c.Parallel(n, 8, func(lo, hi int64) {
		for i := lo; i < hi; i++ {
			y[i] = float32(x[i]) * w[i]
		}
	})
})

var toyLoss = toyKernel("toy.Loss", func(c device.CPU, a *device.Args, n int64) {
	x, w, p := c.F32(a.P[0], n), c.F32(a.P[1], n), c.F64(a.P[5], 2)
	p[0], p[1] = 0, float64(n)
	for i := range x {
		p[0] += float64(x[i] * w[i])
	}
	if a.P[2].Nil() {
		return
	}
	g, dx, s := c.F32(a.P[2], n), c.F32(a.P[4], n), c.F64(a.P[6], plan.NumScalars)
	scale := float32(s[plan.ScalarInvTokens])
	for i := range g {
		d := x[i] * scale
		if a.P[3] != (device.Ptr{}) {
			d += g[i]
		}
		g[i], dx[i] = d, w[i]*scale
	}
})

var toyBackward = toyKernel("toy.Backward", func(c device.CPU, a *device.Args, n int64) {
	x, dx, g := c.I32(a.P[0], n), c.F32(a.P[4], n), c.F32(a.P[2], n)
	c.Parallel(n, 8, func(lo, hi int64) {
		for i := lo; i < hi; i++ {
			d := float32(x[i]) * dx[i]
			if a.P[3] != (device.Ptr{}) {
				d += g[i]
			}
			g[i] = d
		}
	})
})

var toySquares = toyKernel("toy.Squares", func(c device.CPU, a *device.Args, n int64) {
	var s float64
	for _, g := range c.F32(a.P[0], n) {
		s += float64(g) * float64(g)
	}
	c.F64(a.P[1], 1)[0] = s
})

// toySquaresOf makes the sum of squares of a gradient that is complete.
func toySquaresOf(q device.Queue, b *Binding) {
	if !b.Squares[0].Nil() {
		q.Launch(toySquares, ptrs(b.Grads[0], b.Squares[0]))
	}
}

var toyNorm = toyKernel("toy.Norm", func(c device.CPU, a *device.Args, n int64) {
	c.F64(a.P[1], 1)[0] = c.F64(a.P[0], 1)[0]
})

var toyReduce = toyKernel("toy.Reduce", func(c device.CPU, a *device.Args, _ int64) {
	s, p := c.F64(a.P[0], plan.NumScalars), c.F64(a.P[1], 2*toyMicros)
	s[plan.ScalarLoss], s[plan.ScalarTokens] = (p[0]+p[2])/(p[1]+p[3]), p[1]+p[3]
	if n := c.F64(a.P[2], 2); n != nil {
		norm := math.Sqrt(n[0] + n[1])
		s[plan.ScalarGradNorm], s[plan.ScalarClip] = norm, min(1, s[plan.ScalarMaxNorm]/norm)
		if math.IsNaN(norm) || math.IsInf(norm, 0) {
			s[plan.ScalarSkip] = 1
		}
	}
})

var toyUpdate = toyKernel("toy.Update", func(c device.CPU, a *device.Args, n int64) {
	w, g, s := c.F32(a.P[0], n), c.F32(a.P[1], n), c.F64(a.P[2], plan.NumScalars)
	if s[plan.ScalarSkip] != 0 {
		return
	}
	lr := float32(s[plan.ScalarLR] * s[plan.ScalarClip] / s[plan.ScalarStep])
	for i := range w {
		w[i] -= lr * g[i]
	}
})

func ptrs(p ...device.Ptr) (a device.Args) {
	copy(a.P[:], p)
	return a
}

var toyTemplates = []Template{{Name: "mul", Funcs: [plan.NumFuncs]TemplateFunc{
	plan.Forward: func(q device.Queue, b *Binding) {
		q.Launch(toyForward, ptrs(b.In[0], b.Weights[0], b.Out[0]))
	},
	plan.Loss: func(q device.Queue, b *Binding) {
		q.Launch(toyLoss, ptrs(b.In[0], b.Weights[0], b.Grad(0, 0), b.GradAdd(0, 0), b.DIn[0], b.Partials, b.Scalars))
		toySquaresOf(q, b)
	},
	plan.EvalLoss: func(q device.Queue, b *Binding) {
		q.Launch(toyLoss, ptrs(b.In[0], b.Weights[0], device.Ptr{}, device.Ptr{}, device.Ptr{}, b.Partials))
	},
	plan.Backward: func(q device.Queue, b *Binding) {
		q.Launch(toyBackward, ptrs(b.In[0], device.Ptr{}, b.Grad(0, 0), b.GradAdd(0, 0), b.DOut[0]))
		toySquaresOf(q, b)
	},
}}}

var toySteps = Steps{
	Norm:   func(q device.Queue, a *NormArgs) { q.Launch(toyNorm, ptrs(a.Squares, a.Norm)) },
	Reduce: func(q device.Queue, a *ReduceArgs) { q.Launch(toyReduce, ptrs(a.Scalars, a.Partials, a.Norms)) },
	Update: func(q device.Queue, a *UpdateArgs) { q.Launch(toyUpdate, ptrs(a.Weight, a.Grad, a.Scalars)) },
}

func toyEngine(t *testing.T, p *toy, d device.Device) *Engine {
	t.Helper()
	t.Cleanup(func() { d.Close() })
	e, err := New(Config{Plan: &p.Plan, Templates: toyTemplates, Steps: toySteps, Device: d})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Slabs {
		if w := viewOf[float32](e, s.Weight, 0, toyN, new(bool)); w != nil {
			copy(w, toyWeights())
		}
	}
	return e
}

func toyWeights() []float32 {
	w := make([]float32, toyN)
	for i := range w {
		w[i] = 1 + float32(i)/7
	}
	return w
}

func toyBatch(step int64, tokens, targets []int32) error {
	for i := range tokens {
		tokens[i] = int32((step*31+int64(i)*17)%13) - 5
		targets[i] = 0
	}
	return nil
}

// toyReference trains without engine, lanes or slots.
func toyReference(steps int64) (losses []float64, w [2][]float32) {
	w = [2][]float32{toyWeights(), toyWeights()}
	tokens, targets := make([]int32, toyMicros*toyN), make([]int32, toyMicros*toyN)
	const scale = float32(1.0 / (toyMicros * toyN))
	for s := range steps {
		_ = toyBatch(s, tokens, targets)
		var g [2][toyN]float32
		var sums [toyMicros]float64
		for m := range toyMicros {
			for i := range toyN {
				x0 := float32(tokens[m*toyN+i])
				x1 := x0 * w[0][i]
				sums[m] += float64(x1 * w[1][i])
				// One dx buffer serves both micro-batches, so backward sees the last one's,
				// which is the same: it depends on the weights alone.
				g[1][i] += x1 * scale
				g[0][i] += x0 * (w[1][i] * scale)
			}
		}
		losses = append(losses, (sums[0]+sums[1])/(toyMicros*toyN))
		var n [2]float64
		for k := range g {
			for _, v := range g[k] {
				n[k] += float64(v) * float64(v)
			}
		}
		lr := float32(0.5 * min(1, 3/math.Sqrt(n[0]+n[1])) / float64(s+1))
		for k := range w {
			for i := range w[k] {
				w[k][i] -= lr * g[k][i]
			}
		}
	}
	return losses, w
}

func toyTraining(steps int64) *Training {
	return &Training{Steps: steps, Batch: toyBatch, LR: func(int64) float64 { return 0.5 }, Clip: 3}
}
