package planner

import "slices"

// What estimates weigh badly against each other is settled by small steps from the plan that won: one of its numbers is turned
// a little, what room that leaves or takes is made up for by state, and a short step says whether that is faster.
const (
	turnTasks = 120_000 // of the short steps simulated for it
	turnSmall = 60      // short steps built for it
)

// turn is the best of a plan's turns that is faster; nil where none is.
func (l *look) turn(cur *candidate) (*candidate, error) {
	own := *cur
	own.estimate(l.s)
	off := cur.seconds / own.seconds
	var best *candidate
	for _, c := range l.s.turns(cur) {
		if l.turned > turnTasks || l.s.small-l.small > improveSmall+turnSmall || l.s.effort.spent(4) {
			break
		}
		if off*c.seconds > far*cur.seconds {
			continue
		}
		l.s.effort.doing("turning the numbers of the best so far, %.4g s a step", cur.seconds)
		before := l.tasks
		ok, err := l.simulate(c)
		l.turned, l.tasks = l.turned+l.tasks-before, before
		if err != nil {
			return nil, err
		}
		if ok && better(c, cur) && (best == nil || c.seconds < best.seconds) {
			best = c
		}
	}
	return best, nil
}

// turns are the candidates that differ from one by a step of one number, with as much state on the device as there is
// room for by estimate, the fastest by estimate first.
func (s *search) turns(c *candidate) []*candidate {
	if c.placement != "stream" {
		return nil
	}
	var out []*candidate
	add := func(change func(x *candidate)) {
		x := *c
		x.settled, x.timed = false, false
		if change(&x); s.refill(&x) {
			out = append(out, &x)
		}
	}
	for _, to := range s.slotsAround(c) {
		add(func(x *candidate) { x.slots = to })
	}
	if n := len(c.v.remade.layers); s.mixes(c.v) {
		for _, by := range steps(n) {
			if to := c.kept + by; to >= 0 && to < n && c.hosted == 0 {
				add(func(x *candidate) { x.kept = to })
			}
			if to := c.hosted + by; to > 0 && to+1 < n && s.hosts(c) && c.hosted > 0 {
				add(func(x *candidate) { x.values = values{to + 1, to} })
			}
		}
	}
	if c.save == "auto" {
		for _, by := range steps(c.layers()) {
			if to := c.saved + by; to >= 0 && to <= c.layers() {
				add(func(x *candidate) { x.saved = to })
			}
		}
	}
	slices.SortStableFunc(out, byEstimate)
	return out
}

// steps are how far a number of n layers is turned: by one, and by an eighth of them.
func steps(n int) []int {
	if n < 16 {
		return []int{1, -1}
	}
	return []int{1, -1, n / 8, -n / 8}
}

// refill chooses anew how many slabs have their state on the device and estimates; false where it does not fit.
func (s *search) refill(c *candidate) bool {
	if m, ok := s.estimated(c); ok && !c.pinned && c.weights == 0 && c.grads == 0 {
		spare := s.device - m.device + c.placed(c.adds).device
		c.keep = 0
		c.fill(spare)
	}
	_, ok := s.estimated(c)
	c.estimate(s)
	return ok
}
