package cost

import (
	"fmt"
	"slices"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// pricer estimates tasks; functions of one template cost the same wherever they run.
type pricer struct {
	p     *plan.Plan
	w     *Work
	m     *Machine
	rates *Rates
	times float64 // how many micro-batches each of the plan's stands for
	cache map[funcKey]Estimate
	known map[stepKey]Estimate
	// squares is the buffer of the sums of squares of gradients, -1 where there is none.
	squares plan.BufID
}

type funcKey struct {
	template int
	fn       plan.Func
	decode   bool
	squares  int64               // bytes of the gradients whose sums of squares it makes
	adds     [plan.MaxSlabs]bool // on a CPU: the gradients that it adds to from the start
}

// stepKey is what a task that runs no function of a template is priced by.
type stepKey struct {
	kind                plan.Kind
	lane                device.Lane
	bytes, moved, flops int64
}

func newPricer(p *plan.Plan, w *Work, m *Machine) (*pricer, error) {
	if err := m.check(limits{rate: 1e-3, seconds: 100, noLaunch: true}); err != nil {
		return nil, err
	}
	precision := p.Precision
	if precision == "" {
		precision = "f32"
	}
	r := m.Rates[precision]
	if r == nil {
		return nil, fmt.Errorf("machine %s%s: it has no rates for %s", m.Name, m.where(), precision)
	}
	c := &pricer{p: p, w: w, m: m, rates: r, times: 1, cache: map[funcKey]Estimate{}, known: map[stepKey]Estimate{}}
	c.squares = plan.BufID(slices.IndexFunc(p.Buffers, func(b plan.Buffer) bool { return b.Name == "squares" }))
	return c, nil
}

// estimate is a task alone on the machine. Equal tasks share its Parts.
func (c *pricer) estimate(t *plan.Task) Estimate {
	if t.Kind != plan.Compute {
		k := stepKey{t.Kind, t.Lane, t.Bytes, t.Moved, t.FLOPs}
		e, ok := c.known[k]
		if !ok {
			e = c.other(t)
			c.known[k] = e
		}
		return e
	}
	k := funcKey{template: t.Template, fn: t.Func, decode: t.List == plan.Decode}
	if c.m.Target == "cpu" {
		copy(k.adds[:], t.Bind.Add)
	}
	if slices.Contains(t.Writes, c.squares) {
		k.squares = c.beyond(t)
	}
	e, ok := c.cache[k]
	if !ok {
		e = c.function(t).longer(c.times)
		if k.squares > 0 {
			e.Parts[ByMemory] += c.rates.moving("norm", k.squares, c.rates.Memory.Value)
			e.Launches++
			e.sum()
		}
		c.cache[k] = e
	}
	return e
}

// other is a task that runs no function of a template.
func (c *pricer) other(t *plan.Task) Estimate {
	switch t.Kind {
	case plan.Save, plan.Restore:
		return c.copy(t).longer(c.times)
	case plan.Norm, plan.Reduce, plan.Update, plan.Accumulate, plan.Round:
		return c.step(t)
	}
	return c.copy(t)
}

// beyond is the bytes that a task moves besides the launches of its function: those of the gradients
// that are whole with it. 0 where the launches are not known, and all bytes count.
func (c *pricer) beyond(t *plan.Task) int64 {
	launches := c.w.of(t)
	if len(launches) == 0 {
		return 0
	}
	n := t.Moved
	for _, l := range launches {
		n -= l.Bytes * l.Times
	}
	return max(n, 0)
}

// function adds up the launches of a template's function.
func (c *pricer) function(t *plan.Task) Estimate {
	e := Estimate{FLOPs: t.FLOPs, Bytes: t.Moved, Parts: map[Bound]float64{}}
	// One token of a list of functions made for a chunk: each row of it reads all weights.
	part := 1.0
	if t.List == plan.Decode && c.p.Prefill > 1 {
		part = 1 / float64(c.p.Prefill)
	}
	for _, l := range c.w.of(t) {
		times := float64(l.Times)
		s, b := c.rates.seconds(&l, c.m.cores())
		if c.m.Target == "cuda" && c.p.Precision == "bf16" {
			s += c.rates.rest(&l)
		}
		if part < 1 {
			s, b = max(s*part, float64(c.p.WeightSize()*l.Shape.N*l.Shape.K)/c.rates.Memory.Value), ByMemory
		}
		e.Launches += l.Times
		e.Parts[b] += times * s
		if c.m.Target == "cpu" && l.Grad > 0 {
			more := times
			if l.Grad > len(t.Bind.Add) || !t.Bind.Add[l.Grad-1] {
				more--
			}
			e.Parts[ByMemory] += more * c.rates.adding(&l, s)
		}
	}
	if e.Launches == 0 && t.Moved > 0 {
		e.Parts[ByMemory] = float64(t.Moved) / c.rates.Memory.Value
	}
	e.sum()
	return e
}

// sum completes an estimate from its parts.
func (e *Estimate) sum() {
	e.Seconds, e.Bound = 0, ByNothing
	most := 0.0
	for _, b := range bounds {
		x := e.Parts[b]
		if x <= 0 {
			delete(e.Parts, b)
			continue
		}
		if e.Seconds += x; x > most {
			e.Bound, most = b, x
		}
	}
}

// longer is an estimate of so many of the same behind one another.
func (e Estimate) longer(times float64) Estimate {
	if times != 1 {
		for b := range e.Parts {
			e.Parts[b] *= times
		}
		e.sum()
	}
	return e
}

// bounds in a fixed order: sums do not depend on that of a map.
var bounds = []Bound{ByProducts, ByAttention, ByMemory, ByLaunches, ByLink, ByHost}

// step is a task of the training step itself on a slab or on the scalars.
func (c *pricer) step(t *plan.Task) Estimate {
	e := Estimate{FLOPs: t.FLOPs, Bytes: t.Moved, Launches: 1, Parts: map[Bound]float64{}}
	bytes := float64(t.Moved)
	switch {
	case t.Lane == device.Host && t.Kind == plan.Update:
		e.Parts[ByHost] = bytes / c.m.Host.Optimizer.Value
	case t.Lane == device.Host:
		e.Parts[ByHost] = bytes / c.m.Host.Memory.Value
	default:
		otherwise := c.rates.Memory.Value
		if t.Kind == plan.Update {
			otherwise = c.rates.Optimizer.Value
		}
		b := ByMemory
		s := c.rates.moving(t.Kind.String(), t.Moved, otherwise)
		if s < c.rates.Launch.Value {
			s, b = c.rates.Launch.Value, ByLaunches
		}
		e.Parts[b] = s
	}
	e.sum()
	return e
}

// copy is a copy between the memories, or within the host.
func (c *pricer) copy(t *plan.Task) Estimate {
	e := Estimate{Bytes: t.Bytes, Launches: 1, Parts: map[Bound]float64{}}
	rate := c.m.Link.H2D.Value
	switch t.Lane {
	case device.D2H:
		rate = c.m.Link.D2H.Value
	case device.Host:
		e.Parts[ByHost] = float64(t.Moved) / c.m.Host.Memory.Value
		e.sum()
		return e
	}
	e.Parts[ByLink] = float64(t.Bytes)/rate + c.m.Link.Latency.Value
	e.sum()
	return e
}

// Bounds lists the bounds in a fixed order.
func Bounds() []Bound { return append([]Bound(nil), bounds...) }
