package planner

import (
	"cmp"
	"fmt"
	"slices"
)

// Ranking by what an arrangement takes at least can pass over a good one. So the plan that won is held
// beside those that differ from it in one choice, each fitted into memory anew and simulated by short steps,
// and the search goes on from the best of them until none is faster.
const (
	improveTasks = 90_000 // of the small plans simulated: a second of building
	improveSmall = 100    // small plans built, to measure and to simulate
	gain         = 1.002  // what counts as faster: short steps are right to a thousandth
)

// improve is a plan that is faster than the one that won, and by how few changes it is reached; nil where
// there is none.
func (s *search) improve(won *Choice) (*Choice, error) {
	cur := *won.from
	if !cur.settled || s.small == 0 {
		return nil, nil
	}
	var err error
	if cur.seconds, err = s.coarse(&cur); err != nil || cur.seconds == 0 {
		return nil, err
	}
	seen := map[string]bool{fmt.Sprintf("%+v", cur.options(s)): true}
	looked := map[string]bool{}
	tasks, small := 0, s.small
	var path []*candidate
	for {
		var best *candidate
		near, err := s.neighbours(&cur)
		if err != nil {
			return nil, err
		}
		for _, a := range near {
			if tasks > improveTasks || s.small-small > improveSmall || a.least > cur.seconds {
				break
			}
			own := a.v == cur.v && a.placement == cur.placement && a.groups == cur.groups && a.save == cur.save
			if key := fmt.Sprintf("%p %s %d %s %t", a.v, a.placement, a.groups, a.save, own); looked[key] {
				continue
			} else {
				looked[key] = true
			}
			for _, c := range ways(s.fit(a), own) {
				if err := s.ctx.Err(); err != nil {
					return nil, err
				}
				if !s.settle(c) {
					continue
				}
				o := fmt.Sprintf("%+v", c.options(s))
				if seen[o] {
					continue
				}
				seen[o] = true
				if c.seconds, err = s.coarse(c); err != nil {
					return nil, err
				}
				if c.seconds == 0 {
					continue
				}
				if s.last.plan != nil {
					tasks += len(s.last.plan.Tasks)
				}
				if better(c, &cur) && (best == nil || c.seconds < best.seconds) {
					best = c
				}
			}
		}
		if best == nil {
			break
		}
		path = append(path, best)
		cur = *best
	}
	// What short steps promise a whole one may not keep, of room or of time.
	for _, c := range slices.Backward(path[max(0, len(path)-2):]) {
		x, err := s.build(c)
		if err != nil {
			return nil, err
		}
		if x != nil && x.Timeline.Seconds*gain < won.Timeline.Seconds {
			return x, nil
		}
	}
	return nil, nil
}

// ways are candidates of an arrangement to simulate, the fastest by estimate first: all of them, or one for
// each number of layers whose values are kept, which estimates weigh badly against state.
func ways(all []*candidate, every bool) []*candidate {
	slices.SortStableFunc(all, func(x, y *candidate) int { return cmp.Compare(x.seconds, y.seconds) })
	if every {
		return all
	}
	var out []*candidate
	for _, c := range all {
		if !slices.ContainsFunc(out, func(x *candidate) bool { return x.values == c.values }) {
			out = append(out, c)
		}
	}
	return out
}

// better reports whether a candidate is to be taken in place of another: one with more going on must gain
// what counts between plain plans and others.
func better(c, than *candidate) bool {
	if c.fuss() > than.fuss() {
		return c.seconds*near < than.seconds
	}
	return c.seconds*gain < than.seconds
}

// neighbours are the arrangements that differ from a candidate's in one choice: the placement, the micro-batch, with as
// many groups or as many rows in one; what is made again; how many groups; where inputs wait. The same one is
// among them, with what lies where chosen anew. The one that takes the least at least comes first.
func (s *search) neighbours(c *candidate) ([]*arrangement, error) {
	var out []*arrangement
	add := func(v *variant, placement string, groups int64, save string) {
		a := &arrangement{v: v, placement: placement, groups: groups, save: save, half: c.half}
		same := func(b *arrangement) bool {
			return b.v == v && b.placement == placement && b.groups == groups && b.save == save
		}
		if groups >= 1 && slices.Contains(s.groups(v, placement), groups) && slices.Contains(s.saves(placement), save) && !slices.ContainsFunc(out, same) && s.bound(a) {
			out = append(out, a)
		}
	}
	near, err := s.besides(c.v)
	if err != nil {
		return nil, err
	}
	for _, placement := range s.placements() {
		save := c.save
		if placement != c.placement {
			save = s.saves(placement)[0]
		}
		add(c.v, placement, c.groups, save)
		for _, save := range s.saves(placement) {
			add(c.v, placement, c.groups, save)
		}
		for _, v := range near {
			switch {
			case v.rows == c.v.rows && (v.recompute == c.v.recompute) != (v.every == c.v.every),
				v.rows == c.v.rows && v.recompute != c.v.recompute: // those that recompute alone have more than one interval
				add(v, placement, c.groups, save)
			case v.rows != c.v.rows && v.recompute == c.v.recompute && v.every == c.v.every:
				add(v, placement, c.groups, save)
				add(v, placement, v.micros/max(1, c.v.micros/c.groups), save)
				add(v, placement, c.groups*v.micros/c.v.micros, save)
				add(v, placement, v.micros, save)
			}
		}
		for _, g := range []int64{c.groups * 2, c.groups / 2, 1, c.v.micros} {
			for _, save := range s.saves(placement) {
				add(c.v, placement, g, save)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b *arrangement) int { return cmp.Compare(a.least, b.least) })
	return out, nil
}

// besides are the variants of the search and those of the next more and the next fewer rows to a micro-batch that
// divide the step.
func (s *search) besides(v *variant) ([]*variant, error) {
	if s.only > 0 {
		return s.variants, nil
	}
	batch := s.first.Model().Batch
	for _, by := range []int64{1, -1} {
		r := v.rows + by
		for r >= 1 && r <= batch && batch%r != 0 {
			r += by
		}
		known := func(x *variant) bool { return x.rows == r && x.recompute == v.recompute && x.every == v.every }
		if r < 1 || r > batch || batch/r > s.first.MostMicros() || slices.ContainsFunc(s.variants, known) {
			continue
		}
		x, err := s.variant(s.r.Options, r, v.recompute, s.first)
		if err != nil {
			return nil, err
		}
		if x, err = s.chained(x, s.r.Options, v.every, s.first); err != nil {
			return nil, err
		}
		s.variants = append(s.variants, x)
	}
	return s.variants, nil
}
