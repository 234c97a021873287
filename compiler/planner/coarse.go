package planner

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/runtime/plan"
)

// Of the variants and groups that stream, a representative of each is simulated, then all candidates
// of the best few. Together they may have so many tasks: a second or so of building.
const (
	bestFew    = 4
	smallTasks = 150_000
)

// family is the candidates of a variant and a number of groups: what differs is what lies where.
type family struct {
	members []*candidate // the fastest first by estimate
	seconds float64      // of the first, simulated
	off     float64      // by which its estimate was too slow
}

// coarsely simulates candidates with steps of few micro-batches, each of which
// stands for several. An estimate adds up what each lane has to do; this is the real order, with
// slots that are waited for, and is within a thousandth of the whole step. Those that turn out not to
// fit are left out, and what was not looked at comes last.
func (s *search) coarsely(best []*candidate) ([]*candidate, error) {
	var out []*candidate
	var families []*family
	of := map[string]*family{}
	var plain []*candidate
	for _, c := range best {
		if c.placement != "stream" {
			plain = append(plain, c)
			continue
		}
		key := fmt.Sprint(c.v.rows, c.v.recompute, c.v.every, c.groups)
		f := of[key]
		if f == nil {
			f = &family{}
			of[key] = f
			families = append(families, f)
		}
		f.members = append(f.members, c)
	}
	looked, tasks, fastest := map[string]bool{}, 0, math.Inf(1)
	look := func(c *candidate) (ok bool, err error) {
		s.effort.doing("%d of %d ways to fit it simulated by short steps", len(looked), len(best))
		if tasks > smallTasks || len(out) > 0 && s.effort.spent(3) || !s.settle(c) {
			return false, s.ctx.Err()
		}
		o := fmt.Sprintf("%+v", c.options(s))
		if looked[o] {
			return false, nil
		}
		looked[o] = true
		if c.seconds, err = s.coarse(c); err != nil || c.seconds == 0 {
			return false, err
		}
		tasks += len(s.last.plan.Tasks)
		c.timed, fastest = true, min(fastest, c.seconds)
		out = append(out, c)
		return true, nil
	}
	// Where nothing crosses the link the estimate is the sum of its tasks. It leaves out that launches hide behind
	// what runs.
	for i, c := range plain {
		if i >= keepBest || tasks > smallTasks/4 {
			out = append(out, c)
		} else if _, err := look(c); err != nil {
			return nil, err
		}
	}
	for _, f := range families {
		f.seconds = math.Inf(1)
		for len(f.members) > 0 && tasks <= smallTasks/2 {
			c := f.members[0]
			f.members = f.members[1:]
			estimate := c.seconds
			ok, err := look(c)
			if err != nil {
				return nil, err
			}
			if ok {
				f.seconds, f.off = c.seconds, min(1, c.seconds/estimate)
				break
			}
		}
	}
	slices.SortStableFunc(families, func(a, b *family) int { return cmp.Compare(a.seconds, b.seconds) })
	var rest []*candidate
	for i, f := range families {
		for _, c := range f.members {
			if i >= bestFew || c.seconds*f.off > far*fastest {
				rest = append(rest, c)
			} else if _, err := look(c); err != nil {
				return nil, err
			}
		}
	}
	byTime := func(a, b *candidate) int { return cmp.Compare(a.seconds, b.seconds) }
	slices.SortStableFunc(out, byTime)
	slices.SortStableFunc(rest, byTime)
	return append(plainFirst(out), rest...), nil
}

// coarse is a candidate's step in seconds, simulated with few micro-batches; of many groups, those that are left out take
// as long as one more does. 0: there is no such plan.
func (s *search) coarse(c *candidate) (float64, error) {
	key := fmt.Sprintf("%p %+v", c.v, c.options(s))
	if x, ok := s.coarseOf[key]; ok {
		return x, nil
	}
	x, err := s.coarseWhole(c)
	if err == nil {
		s.coarseOf[key] = x
	}
	return x, err
}

func (s *search) coarseWhole(c *candidate) (float64, error) {
	if c.groups <= 3 {
		return s.coarseStep(c, c.groups)
	}
	two, err := s.coarseStep(c, 2) // the plan is at hand from measuring
	if err != nil || two == 0 {
		return 0, err
	}
	three, err := s.coarseStep(c, 3)
	if err != nil || three == 0 {
		return 0, err
	}
	return three + float64(c.groups-3)*max(0, three-two), nil
}

func (s *search) coarseStep(c *candidate, groups int64) (float64, error) {
	k := c.short()
	p, err := s.shortPlan(c, groups, k)
	if err != nil {
		return 0, nil // no such plan: it is left out
	}
	micros := min(groups*k, c.v.micros)
	low, err := c.lower(s)
	if err != nil {
		return 0, err
	}
	return cost.SimulateCoarse(p, low.work, s.m, float64(c.v.micros*groups)/float64(c.groups*micros))
}

// shortPlan is the plan of a step with so many groups of k micro-batches. The last one is kept.
func (s *search) shortPlan(c *candidate, groups, k int64) (*plan.Plan, error) {
	o := c.options(s)
	o.Groups = groups
	rows := min(groups*k, c.v.micros) * c.v.rows
	key := fmt.Sprintf("%p %d %+v", c.v, rows, o)
	if s.last.key != key {
		s.small++
		var p *plan.Plan
		low, err := c.lower(s)
		if err == nil {
			p, err = low.prep.Short(o, rows)
			s.effort.planned(p, false)
		}
		s.last.key, s.last.plan, s.last.err = key, p, err
	}
	return s.last.plan, s.last.err
}
