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
	improveTasks = 180_000 // of the small plans simulated: a second of building
	improveSmall = 150     // small plans built, to measure and to simulate
	far          = 1.02    // what is slower than this by estimate, which the best way of its arrangement corrects, is not looked at
	slack        = 1.005   // estimates are that much too slow: launches hide behind what runs
	gain         = 1.002   // what counts as faster: short steps are right to a thousandth
)

// improve is a plan that is faster than the one that won; nil where there is none.
func (s *search) improve(won *Choice) (*Choice, error) {
	if !won.from.settled || s.small == 0 {
		return nil, nil
	}
	path, err := s.bettered(*won.from)
	if err != nil {
		return nil, err
	}
	// What short steps promise a whole one may not keep, of room or of time.
	for _, c := range path {
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

// bettered are the last two plans on the way from one to the fastest around it, the fastest first; none where it is
// the fastest itself.
func (s *search) bettered(cur candidate) ([]*candidate, error) {
	if !cur.settled && !s.settle(&cur) {
		return nil, nil
	}
	var err error
	if cur.seconds, err = s.coarse(&cur); err != nil || cur.seconds == 0 {
		return nil, err
	}
	l := look{s: s, seen: map[string]bool{fmt.Sprintf("%+v", cur.options(s)): true}, known: map[string]bool{}, small: s.small}
	var path []*candidate
	for {
		best, err := l.around(&cur)
		if err != nil {
			return nil, err
		}
		if best == nil {
			if best, err = l.turn(&cur); err != nil {
				return nil, err
			}
		}
		if best == nil {
			break
		}
		path = append(path, best)
		cur = *best
	}
	slices.Reverse(path)
	return path[:min(2, len(path))], nil
}

// look is what was looked at around the plans that won so far.
type look struct {
	s            *search
	seen         map[string]bool // options
	known        map[string]bool // arrangements
	small, tasks int             // small plans built before, and tasks of those simulated
	turned       int             // and of those that were turned
}

// spent reports whether there was enough looking.
func (l *look) spent() bool {
	return l.tasks > improveTasks || l.s.small-l.small > improveSmall || l.s.effort.spent(4)
}

// around is the best of a plan's neighbours that is faster; nil where none is. The fastest way by estimate of each
// arrangement comes first, then the second of each, so that many ways of one leave time for the others; where the estimate of
// one was too slow, so is that of the next.
func (l *look) around(cur *candidate) (*candidate, error) {
	near, err := l.s.neighbours(cur)
	if err != nil {
		return nil, err
	}
	var all [][]*candidate
	off := make([]float64, len(near))
	var best *candidate
	for round, left := 0, true; left && best == nil; round++ {
		left = false
		for i, a := range near {
			if l.spent() || a.least > slack*cur.seconds {
				break
			}
			if round == 0 {
				all = append(all, l.ways(a, cur))
			}
			if round >= len(all[i]) || off[i]*all[i][round].seconds > far*cur.seconds {
				continue
			}
			left = true
			l.s.effort.doing("looking around the best so far, %.4g s a step", cur.seconds)
			c := all[i][round]
			estimate := c.seconds
			if ok, err := l.simulate(c); err != nil {
				return nil, err
			} else if !ok {
				continue
			}
			off[i] = min(1, c.seconds/estimate)
			if better(c, cur) && (best == nil || c.seconds < best.seconds) {
				best = c
			}
		}
	}
	return best, nil
}

// ways are the ways to fit an arrangement that were not looked at yet.
func (l *look) ways(a *arrangement, cur *candidate) []*candidate {
	own := a.v == cur.v && a.placement == cur.placement && a.groups == cur.groups && a.save == cur.save
	key := fmt.Sprintf("%p %s %d %s %t", a.v, a.placement, a.groups, a.save, own)
	if l.known[key] {
		return nil
	}
	l.known[key] = true
	return ways(l.s.fit(a), own)
}

// simulate sets a candidate's time by short steps; false where it does not fit or was looked at before.
func (l *look) simulate(c *candidate) (bool, error) {
	if err := l.s.ctx.Err(); err != nil || !l.s.settle(c) {
		return false, err
	}
	o := fmt.Sprintf("%+v", c.options(l.s))
	if l.seen[o] {
		return false, nil
	}
	l.seen[o] = true
	x, err := l.s.coarse(c)
	if err != nil || x == 0 {
		return false, err
	}
	c.seconds, c.timed = x, true
	if l.s.last.plan != nil {
		l.tasks += len(l.s.last.plan.Tasks)
	}
	return true, nil
}

// ways are candidates of an arrangement to simulate, the fastest by estimate first: all of them, or one for
// each number of layers whose values are kept, which estimates weigh badly against state.
func ways(all []*candidate, every bool) []*candidate {
	slices.SortStableFunc(all, byEstimate)
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

func byEstimate(x, y *candidate) int { return cmp.Compare(x.seconds, y.seconds) }

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
				add(v, placement, evenGroups(v.micros/max(1, c.v.micros/c.groups), v.micros), save)
				add(v, placement, evenGroups(c.groups*v.micros/c.v.micros, v.micros), save)
				add(v, placement, v.micros, save)
			}
		}
		for _, g := range []int64{evenGroups(c.groups*2, c.v.micros), evenGroups(c.groups/2, c.v.micros), 1, c.v.micros} {
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
