package planner

import (
	"github.com/megatrain/mtc/compiler/memplan"
	"github.com/megatrain/mtc/runtime/plan"
)

// memory is what a step takes, as Need counts it.
type memory struct{ device, host int64 }

func (m memory) plus(o memory) memory           { return memory{m.device + o.device, m.host + o.host} }
func (m memory) minus(o memory) memory          { return memory{m.device - o.device, m.host - o.host} }
func (m memory) times(n int64) memory           { return memory{m.device * n, m.host * n} }
func (m memory) part(n, of int64) memory        { return memory{m.device * n / of, m.host * n / of} }
func (m memory) within(device, host int64) bool { return m.device <= device && m.host <= host }

// class is what candidates share whose small steps are measured once.
type class struct {
	placement string
	grouped   bool // several groups
	half      bool
	slots     slots
	long      int64 // micro-batches of a group, where they are too few to grow
}

// growth is the memory of a class with no state on the device beside what streams through: of
// groups of two micro-batches, and what each further one adds; with the inputs of all layers on
// the host too.
type growth struct {
	ok              bool
	two, more       memory
	asked, saves    bool
	allTwo, allMore memory
}

// few is the micro-batches of a group that is measured: in a single one something else than its
// inputs may take the most.
const few = 2

// shortTasks is how many tasks a short step may have that has more than few micro-batches a group: what it takes and how
// long it takes is then as it is in the whole step, or nearer to it.
const shortTasks = 1000

// short is the micro-batches of a group in a short step.
func (a *arrangement) short() int64 {
	return min(a.perGroup(), max(few, shortTasks/(min(a.groups, 2)*int64(max(1, a.v.perMicro)))))
}

// grow measures a class of a variant, each part when it is first asked for.
func (s *search) grow(c *candidate) *growth {
	k := class{c.placement, c.groups > 1, c.half, c.slots, min(c.perGroup(), few+1)}
	x, a := *c, *c.arrangement
	x.arrangement = &a
	x.keep, x.weights, x.grads, x.save, x.saved, x.values = 0, 0, 0, "none", 0, values{}
	if c.placement == "resident" {
		x.keep = len(c.v.slabs)
	}
	if s.pinned("save-inputs") {
		x.save = c.save
	}
	g := c.v.grown[k]
	if g == nil {
		g = &growth{}
		c.v.grown[k] = g
		g.two, g.more, g.ok = s.grown(&x)
	}
	if g.ok && c.save == "auto" && !g.asked && !s.pinned("save-inputs") {
		g.asked = true
		x.save = "all"
		if g.allTwo, g.allMore, g.saves = s.grown(&x); g.saves && s.draft != nil {
			c.v.values = int(s.draft.SavedInputs)
		}
	}
	return g
}

// grown measures steps of few micro-batches a group and of one more.
func (s *search) grown(c *candidate) (base, more memory, ok bool) {
	if c.perGroup() <= few {
		base, ok = s.smallDraft(c, c.perGroup())
		return base, memory{}, ok
	}
	a, ok := s.smallDraft(c, few)
	if !ok {
		return a, a, ok
	}
	b, ok := s.smallDraft(c, few+1)
	more = b.minus(a)
	if c.save == "none" {
		if s.m.Target == "cpu" {
			more.host = max(more.host, c.v.input)
		} else {
			more.device = max(more.device, c.v.input)
		}
	}
	return a, more, ok
}

// smallStep is the memory with groups of k micro-batches, the tokens and the tasks of the whole
// step included.
func (s *search) smallStep(c *candidate, k int64) (memory, bool) {
	p, err := s.shortPlan(c, min(c.groups, 2), k)
	if err != nil {
		return memory{}, false
	}
	return s.stretched(c, p), true
}

// smallDraft is smallStep for a plan that is never simulated.
func (s *search) smallDraft(c *candidate, k int64) (memory, bool) {
	groups := min(c.groups, 2)
	s.small++
	s.draft = nil
	low, err := c.lower(s)
	if err != nil {
		return memory{}, false
	}
	o := c.options(s)
	o.Groups = groups
	if s.draft, err = low.prep.Draft(o, min(groups*k, c.v.micros)*c.v.rows); err != nil {
		return memory{}, false
	}
	s.effort.planned(s.draft, true)
	return s.stretched(c, s.draft), true
}

// stretched is the memory of a short step with the tokens and the tasks of the whole one.
func (s *search) stretched(c *candidate, p *plan.Plan) memory {
	micros := p.Micros
	d, h := Need(p, s.m)
	// Tokens and targets have two copies in each memory.
	tokens := (c.v.micros - micros) * c.v.rows * c.v.prep.Model().Seq * 4 * 2 * 2
	h += tokens + max(0, int64(c.tasks()-len(p.Tasks)))*memplan.PerTask(p)
	if s.m.Target == "cpu" {
		h += tokens
	} else {
		d += tokens
	}
	return memory{d, h}
}

// estimated is a candidate's memory, from what was measured of its class.
func (s *search) estimated(c *candidate) (memory, bool) {
	g := s.grow(c)
	if !g.ok {
		return memory{}, false
	}
	more := max(0, c.perGroup()-few)
	m := g.two.plus(g.more.times(more)).plus(c.keeps().times(c.perGroup()))
	if c.placement != "stream" {
		return m, true
	}
	if c.save == "auto" && c.saved > 0 {
		if !g.saves {
			return m, false
		}
		all, none := g.allTwo.plus(g.allMore.times(more)), g.two.plus(g.more.times(more))
		m = m.plus(all.minus(none).part(int64(c.saved), int64(max(1, c.layers()))))
	}
	if s.careful {
		return m.plus(c.placed(c.state)), true
	}
	return m.plus(c.placed(c.adds)), true
}

// placed is what state, weights and gradients on the device add there and take from the host.
func (c *candidate) placed(adds func(x slab) int64) memory {
	var m memory
	whole := c.v.clip || c.groups > 1
	grad := int64(4)
	if c.half {
		grad = 2
	}
	var largest int64
	left := c.weights
	for i, x := range c.v.slabs {
		if c.resident(i) {
			passes := memplan.StateBytes * x.elems
			if x.frozen {
				passes = c.v.weight * x.elems
			}
			if largest = max(largest, passes); c.pinned {
				continue
			}
			m.device += adds(x)
			if x.frozen {
				m.host -= x.elems * c.v.weight
				continue
			}
			m.host -= x.elems * (c.v.weight + 8)
			if c.v.weight == 2 {
				m.host -= 2 * x.elems
			}
			if whole {
				m.host -= grad * x.elems
			}
			continue
		}
		if whole && !x.frozen && i >= c.v.trained-c.grads {
			m.device += 4 * x.elems
			m.host -= grad * x.elems
		}
		if c.v.base(x) && left > 0 {
			m.device += x.elems * c.v.weight
			left--
		}
	}
	if !c.pinned && c.v.target == "cuda" {
		m.host += largest // it goes through host memory
	}
	return m
}

// measured is a candidate's memory, from a small step with everything in its place.
func (s *search) measured(c *candidate) (memory, bool) {
	g := s.grow(c)
	m, ok := s.smallStep(c, c.short())
	if !ok || !g.ok {
		return m, false
	}
	more := c.perGroup() - c.short()
	each := g.more
	if c.save == "auto" && g.saves {
		each = each.plus(g.allMore.minus(g.more).part(int64(c.saved), int64(max(1, c.layers()))))
	}
	return m.plus(each.plus(c.keeps()).times(more)), true
}
