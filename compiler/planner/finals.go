package planner

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/runtime/plan"
)

// finals builds the best candidates whole and simulates them.
func (s *search) finals(best []*candidate) (*Choice, error) {
	var won *Choice
	var others []Other
	built, tasks := 0, 0
	seen := map[string]bool{}
	list := firstOfEach(withoutLong(best), best)
	early := len(list) > 0 && list[0].tasks() > mostTasks && !s.r.Quick
	if early { // its plan takes long to build: it is bettered before
		path, err := s.bettered(*list[0])
		if err != nil {
			return nil, err
		}
		if len(path) > 0 {
			others = append(others, Other{list[0].options(s), list[0].seconds})
			list = slices.Concat(path, list)
		}
	}
	for _, c := range shortEnough(s, list) {
		if built >= keepBest || built > 0 && s.r.Quick || built > 0 && tasks+c.tasks() > mostTasks && (c.seconds*near >= won.Timeline.Seconds || tasks > 4*mostTasks) {
			break
		}
		if o := fmt.Sprintf("%+v", c.options(s)); seen[o] {
			continue
		} else {
			seen[o] = true
		}
		if built > 0 && c.timed && c.seconds > won.Timeline.Seconds*even {
			others = append(others, Other{c.options(s), c.seconds}) // it cannot win
			continue
		}
		x, err := s.build(c)
		if err != nil {
			return nil, err
		}
		if x == nil {
			tasks += c.tasks() // it took as long
			continue
		}
		built++
		tasks += len(x.Plan.Tasks)
		if won == nil || x.Timeline.Seconds*margin(x.from, won.from) < won.Timeline.Seconds {
			x, won = won, x
		}
		if x != nil {
			others = append(others, Other{x.Options, x.Timeline.Seconds})
		}
	}
	if won == nil {
		return nil, nil
	}
	if !s.r.Quick && !early {
		x, err := s.improve(won)
		if err != nil {
			return nil, err
		}
		if x != nil {
			others = append(others, Other{won.Options, won.Timeline.Seconds})
			won = x
			built++
		}
	}
	others = slices.DeleteFunc(others, func(o Other) bool { return fmt.Sprintf("%+v", o.Options) == fmt.Sprintf("%+v", won.Options) })
	slices.SortStableFunc(others, func(a, b Other) int { return cmp.Compare(a.Seconds, b.Seconds) })
	won.Considered, won.Built, won.Tried, won.Others = s.considered, built, s.small, others
	won.DeviceLimit, won.HostLimit, won.Machine, won.Cut = s.device, s.host, s.m, s.effort.cut
	won.explain(s)
	return won, nil
}

// longest is how many tasks a schedule may have that is built where there are shorter ones: some ten seconds of building
// and simulating.
const longest = 2_000_000

// shortEnough leaves out what has schedules so long that building one takes all the time there is, where that leaves
// something.
func shortEnough[T interface{ tasks() int }](s *search, list []T) []T {
	out := slices.DeleteFunc(slices.Clone(list), func(c T) bool { return c.tasks() > longest })
	if len(out) == 0 {
		return list
	}
	s.effort.cut = s.effort.cut || len(out) < len(list)
	return out
}

// build makes a candidate's plan; nil when it does not fit after all.
func (s *search) build(c *candidate) (*Choice, error) {
	if !c.settled && !s.settle(c) {
		return nil, nil
	}
	p := s.whole(c)
	if p == nil {
		return nil, nil // what a small step promised, a long one does not keep
	}
	low, err := c.lower(s)
	if err != nil {
		return nil, err
	}
	s.effort.doing("simulating a step of %d tasks", len(p.Tasks))
	t, err := cost.Simulate(p, low.work, s.m)
	if err != nil {
		return nil, err
	}
	d, h := Need(p, s.m)
	return &Choice{Options: c.options(s), Plan: p, Work: low.work, Timeline: t, DevicePeak: d, HostPeak: h, Tight: c.slots != slots{}, from: c}, nil
}

// whole is the plan of a candidate's whole step; nil when it does not fit. What has no room is
// taken back, at last with all inputs of layers on the host.
func (s *search) whole(c *candidate) *plan.Plan {
	for range 4 {
		if c.tasks() > 4*mostTasks && c.groups >= manyGroups && c.v.micros%c.groups == 0 {
			// What it takes is known without it.
			if m, ok := s.sized(c); ok && !m.within(s.device, s.host) && c.shrink(s, m.device-s.device, m.host-s.host) {
				continue
			}
		}
		low, err := c.lower(s)
		if err != nil {
			return nil
		}
		s.effort.doing("building a step of about %d tasks", c.tasks())
		p, err := low.prep.Plan(c.options(s), 0)
		s.effort.planned(p, false)
		if err != nil {
			return nil
		}
		d, h := Need(p, s.m)
		if d <= s.device && h <= s.host {
			return p
		}
		if c.shrink(s, d-s.device, h-s.host) {
			continue
		}
		if d <= s.device || c.save != "auto" || c.saved == 0 || c.saved >= c.layers() {
			return nil
		}
		c.saved = c.layers()
	}
	return nil
}
