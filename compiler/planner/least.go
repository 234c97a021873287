package planner

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/megatrain/mtc/runtime/plan"
)

// What the least demanding plan takes is a property of the model, the pins and one memory: with the device
// given, the least of the host, and the least of the device with any host. Neither depends on how much of the
// other there is, so that what is said to be needed never rises with it; and where the search finds nothing
// faster, the plan that needs the least is the one that is taken. So what is named as needed fits.

// unlimited is more memory than any plan takes.
const unlimited = math.MaxInt64 / 4

// lean is a plan that takes little.
type lean struct {
	c *candidate
	memory
}

// leastPlan is the plan that takes the least of the host within the device there is, where the host has that; else
// the error says what is short.
func (s *search) leastPlan() (*Choice, error) {
	l, err := s.leastHost(s.device, s.host)
	if err != nil {
		return nil, &ShortError{DeviceLimit: s.device, HostLimit: s.host, Machine: s.m, Impossible: err.Error()}
	}
	if l == nil {
		d, err := s.leastDevice()
		if err != nil {
			return nil, &ShortError{DeviceLimit: s.device, HostLimit: s.host, Machine: s.m, Impossible: err.Error()}
		}
		if d.device > s.device {
			return nil, s.short(d)
		}
		l = d
	}
	if l.host <= s.host {
		l.c.settled = true
		l.c.estimate(s)
		if c, err := s.finals([]*candidate{l.c}); c != nil || err != nil {
			return c, err
		}
	}
	return nil, s.short(l)
}

// short says what is short beside a plan: the one that takes the least of the host within the device, or where none is
// within it the one that takes the least of the device, whose host memory is then the least that goes with it.
func (s *search) short(l *lean) error {
	e := &ShortError{DeviceLimit: s.device, HostLimit: s.host, Machine: s.m, Device: l.device, Host: l.host, Options: l.c.options(s)}
	if l.device > s.device {
		if x, err := s.leastHost(l.device, s.host); err == nil && x != nil && x.host < l.host {
			e.Host, e.Options = x.host, x.c.options(s)
		}
	}
	return e
}

// leastHost is the plan that takes the least of the host within a device; nil where none fits that. It stops at
// one that takes no more than enough. The error says why there is no plan of the pins at all.
func (s *search) leastHost(device, enough int64) (*lean, error) {
	x := s.within(device, unlimited)
	all, err := x.leans(func(c *candidate) []*candidate { return x.filled(c) }, func(m memory) int64 { return m.host })
	defer s.counted(x)
	if err != nil {
		return nil, err
	}
	return x.exactly(all, func(l *lean) bool { return l.host <= enough }, func(a, b *lean) bool { return a.host < b.host }), nil
}

// leastDevice is the plan that takes the least of the device, however much of the host.
func (s *search) leastDevice() (*lean, error) {
	x := s.within(unlimited, unlimited)
	all, err := x.leans(func(c *candidate) []*candidate {
		x.leave(c)
		if c.save == "auto" {
			c.saved = c.layers()
		}
		return []*candidate{c}
	}, func(m memory) int64 { return m.device })
	defer s.counted(x)
	if err != nil {
		return nil, err
	}
	// Estimates are of short steps and too kind to long ones: of those that are near the least, the ones that are
	// measured in no time come first.
	near := slices.DeleteFunc(all, func(l *lean) bool { return l.device > all[0].device+all[0].device/4 })
	slices.SortStableFunc(near, func(a, b *lean) int { return cmp.Compare(a.c.drafted(), b.c.drafted()) })
	var best *lean
	tasks := 0
	for _, l := range near {
		if tasks += l.c.drafted(); best != nil && tasks > longestWhole {
			break
		}
		if m, ok := x.sized(l.c); ok && (best == nil || m.device < best.device) {
			best = &lean{l.c, m}
		}
	}
	if best == nil {
		return nil, fmt.Errorf("the pinned options leave no plan to choose from")
	}
	return best, nil
}

// bestLeans is how many of those that take the least by estimate are measured whole, and longestWhole how many
// tasks they may have together: about a second.
const (
	bestLeans    = 4
	longestWhole = 4 * mostTasks
)

// within is the search with other limits.
func (s *search) within(device, host int64) *search {
	x := *s
	x.device, x.host, x.careful = device, host, true
	return &x
}

// counted takes over what a search within other limits found out.
func (s *search) counted(x *search) { s.small, s.lean, s.last = x.small, x.lean, x.last }

// leans lists plans of every shape that may take the least, by estimate, the least first. Micro-batches take more with
// every row, but for the tasks of a step that has many: rows are added until that does not pay.
func (s *search) leans(place func(c *candidate) []*candidate, of func(m memory) int64) ([]*lean, error) {
	var out []*lean
	var why error // of a shape that no plan has; nothing where another one has
	grew := false
	seen := map[string]bool{}
	for _, half := range s.halves() {
		for _, placement := range s.placements() {
			least := int64(math.MaxInt64)
			tried := func(rows, every int64, word string) (int64, error) {
				got := int64(math.MaxInt64)
				v, err := s.leanVariant(rows, every, word)
				if err != nil {
					return got, err
				}
				for _, g := range s.leanGroups(v, placement) {
					if half && g > 1 && !s.pinned("groups") {
						continue // what is rounded is whole
					}
					for _, save := range s.saves(placement) {
						a := &arrangement{v: v, placement: placement, groups: g, save: save, half: half}
						c := &candidate{arrangement: a}
						if placement == "stream" {
							tight := a.tightness()
							c.slots = tight[len(tight)-1]
						}
						if !s.grow(c).ok {
							if _, err := s.shortPlan(c, min(g, 2), min(c.perGroup(), few)); err != nil {
								why = cmp.Or(why, err)
							}
							continue
						}
						grew = true
						for _, c := range place(c) {
							key := fmt.Sprintf("%p %+v", c.v, c.options(s))
							if m, ok := s.estimated(c); ok && !seen[key] {
								seen[key] = true
								out = append(out, &lean{c, m})
								got = min(got, of(m))
							}
						}
					}
				}
				return got, s.ctx.Err()
			}
			try := func(rows, every int64) (int64, error) {
				got, err := int64(math.MaxInt64), error(nil)
				for _, word := range s.leanWords() {
					x, e := tried(rows, every, word)
					got, err = min(got, x), cmp.Or(err, e)
				}
				return got, err
			}
			at := int64(0)
			for k, rows := range s.leanRows() {
				got, err := try(rows, s.everies("all")[0])
				if err != nil {
					return nil, err
				}
				if got >= least && k > 1 {
					break
				}
				if got < least {
					least, at = got, rows
				}
			}
			if at == 0 {
				continue
			}
			for _, every := range s.everies("all")[1:] {
				if placement != "stream" {
					break
				}
				if _, err := try(at, every); err != nil {
					return nil, err
				}
			}
		}
	}
	if !grew && why != nil {
		return nil, why
	}
	slices.SortStableFunc(out, func(a, b *lean) int { return cmp.Compare(of(a.memory), of(b.memory)) })
	return out, nil
}

// leanRows are the rows of a micro-batch to try, few first.
func (s *search) leanRows() []int64 {
	if s.only > 0 {
		return []int64{s.only}
	}
	var out []int64
	batch := s.first.Model().Batch
	for r := int64(1); r <= batch; r++ {
		if batch%r == 0 && batch/r <= s.first.MostMicros() {
			out = append(out, r)
		}
	}
	return out
}

// leanWords are what to recompute for the least: all, and where there is a single layer nothing too, which spares the memory
// that what is made again has beside what it is made from.
func (s *search) leanWords() []string {
	if s.pinned("recompute") {
		return []string{s.r.Options.Recompute}
	}
	for _, u := range s.first.Model().Units {
		if u.Index > 0 {
			return []string{"all"}
		}
	}
	return []string{"all", "none"}
}

// leanVariant is the variant of so many rows that takes the least.
func (s *search) leanVariant(rows, every int64, word string) (*variant, error) {
	find := func(every int64) *variant {
		for _, v := range s.lean {
			if v.rows == rows && v.every == every && v.recompute == word {
				return v
			}
		}
		return nil
	}
	if v := find(every); v != nil {
		return v, nil
	}
	v := find(1)
	if v == nil {
		o := s.r.Options
		if o.LogitsFor > 0 {
			o.LogitsFor = 1 // chunks as small as there are, whatever the device has
		}
		var err error
		if v, err = s.variant(o, rows, word, s.first); err != nil {
			return nil, err
		}
	}
	v, err := s.chained(v, s.r.Options, every, s.first)
	if err == nil {
		s.lean = append(s.lean, v)
	}
	return v, err
}

// leanGroups are the numbers of groups to try: one for each micro-batch too.
func (s *search) leanGroups(v *variant, placement string) []int64 {
	out := s.groups(v, placement)
	if !s.pinned("groups") && !s.pinned("order") && !slices.Contains(out, v.micros) {
		out = append(out, v.micros)
	}
	return slices.DeleteFunc(out, func(g int64) bool {
		return g > v.micros || g >= manyGroups && v.micros%g != 0 && !s.pinned("groups")
	})
}

// leave puts on the device what pins put there, and nothing else.
func (s *search) leave(c *candidate) {
	switch {
	case c.placement != "stream":
		c.keep = len(c.v.slabs)
	case s.pinned("resident") && s.r.Options.Resident != "auto":
		c.keep, c.pinned = pinnedKeep(s.r.Options.Resident), true
	}
}

// filled are ways to fill the device with what the host need not hold then.
func (s *search) filled(c *candidate) []*candidate {
	s.leave(c)
	m, ok := s.estimated(c)
	if !ok {
		return nil
	}
	// What an estimate leaves out by a little is measured whole all the same.
	const slack = 50
	if m.device > s.device && c.save == "auto" {
		least := m.device
		c.saved = c.layers()
		if m, ok = s.estimated(c); !ok || m.device >= least {
			return nil
		}
		if each := (least - m.device) / int64(max(1, c.layers())); m.device <= s.device && each > 0 {
			c.saved = min(c.layers(), int((least-s.device)/each)+1)
			if m, ok = s.estimated(c); !ok {
				return nil
			}
		}
	}
	switch {
	case m.device > s.device+s.device/slack:
		return nil
	case c.placement != "stream":
		return []*candidate{c}
	}
	var out []*candidate
	for _, order := range [][]int{nil, c.v.order} {
		x := *c
		if x.order = order; !x.pinned {
			x.fillBy(c.state, s.device-m.device)
		} else if order != nil {
			continue
		}
		got, ok := s.estimated(&x)
		if !ok {
			continue
		}
		if y := x; y.makeRoom(s, s.device-got.device) {
			if got, ok := s.estimated(&y); ok {
				y.fillGrads(s, s.device-got.device)
				out = append(out, &y)
			}
		}
		x.fillGrads(s, s.device-got.device)
		out = append(out, &x)
	}
	return out
}

// makeRoom keeps the state of one more slab on the device than spare bytes of it allow, in place of inputs of layers that
// go to the host; false where those take as much there as the state leaves.
func (c *candidate) makeRoom(s *search, spare int64) bool {
	if c.save != "auto" || c.pinned || s.pinned("resident") || c.keep >= c.most() {
		return false
	}
	state := c.state(c.v.slabs[c.at(c.keep)])
	each := max(1, c.v.input*c.perGroup()/int64(max(1, c.layers())))
	more := (max(0, state-spare) + each - 1) / each
	if c.saved+int(more) > c.layers() || more*each >= state {
		return false
	}
	c.saved += int(more)
	c.keep++
	return true
}

// fillGrads keeps the whole gradients of as many slabs on the device as spare bytes allow.
func (c *candidate) fillGrads(s *search, spare int64) {
	if !c.v.clip && c.groups == 1 || s.pinned("grad-home") {
		return
	}
	was := c.grads
	for c.movable() {
		bytes := 4 * c.v.slabs[c.v.trained-1-c.grads].elems
		if bytes > spare {
			if !c.v.clip { // the gradients of groups add up in one memory
				c.grads = was
			}
			return
		}
		spare -= bytes
		c.grads++
	}
}

// movable reports whether there is one more slab whose gradient could wait on the device.
func (c *candidate) movable() bool {
	return c.grads < c.v.trained && !c.resident(c.v.trained-1-c.grads)
}

// exactly measures the best of those that take the least by estimate whole, each made to fit the device and to
// fill it.
func (s *search) exactly(all []*lean, enough func(*lean) bool, less func(a, b *lean) bool) *lean {
	var best *lean
	found, tasks := 0, 0
	for k, l := range all {
		if found >= bestLeans || k >= 3*bestLeans || s.feasible && !enough(&lean{l.c, l.memory.part(19, 20)}) {
			break // or far from what is asked for
		}
		if tasks += 2 * l.c.drafted(); k > 0 && tasks > longestWhole {
			continue
		}
		got := s.refined(l.c)
		if got == nil {
			continue
		}
		if found++; best == nil || less(got, best) {
			best = got
		}
		if enough(best) {
			break
		}
	}
	return best
}

// refined makes a candidate fit the device, as measured whole, and uses what is left of it.
func (s *search) refined(from *candidate) *lean {
	var best *lean
	seen := map[string]bool{}
	c := *from
	for range 12 {
		key := fmt.Sprintf("%d %d %d", c.keep, c.grads, c.saved)
		if seen[key] {
			return best
		}
		seen[key] = true
		m, ok := s.sized(&c)
		if !ok {
			return best
		}
		x := c
		if over := m.device - s.device; over > 0 {
			if best != nil || !x.giveBack(s, over) {
				return best
			}
		} else {
			if best == nil || m.host < best.host {
				best = &lean{&candidate{}, m}
				*best.c = c
			}
			x.use(s, -over)
		}
		c = x
	}
	return best
}

// giveBack takes from the device what there was no room for.
func (c *candidate) giveBack(s *search, over int64) bool {
	had := over
	for over > 0 && c.grads > 0 && !s.pinned("grad-home") {
		c.grads--
		over -= 4 * c.v.slabs[c.v.trained-1-c.grads].elems
		if !c.v.clip {
			c.grads = 0
			break
		}
	}
	for over > 0 && c.keep > 0 && !c.pinned && c.placement == "stream" {
		c.keep--
		over -= c.state(c.v.slabs[c.at(c.keep)])
	}
	if over > 0 && c.save == "auto" && c.saved < c.layers() {
		each := max(1, c.v.input*c.perGroup()/int64(max(1, c.layers())))
		c.saved = min(c.layers(), c.saved+1+int(over/each))
		over = 0
	}
	return over < had
}

// use puts what fits into spare bytes of the device there.
func (c *candidate) use(s *search, spare int64) {
	if c.placement != "stream" {
		return
	}
	keep, grads := c.keep, c.grads
	if grads == 0 && !c.pinned {
		c.fillBy(c.state, spare)
	}
	if c.keep == keep {
		c.fillGrads(s, spare)
	}
	if c.keep > keep || c.grads > grads {
		return
	}
	if c.save == "auto" {
		each := max(1, c.v.input*c.perGroup()/int64(max(1, c.layers())))
		c.saved -= min(c.saved, int(spare/each))
	}
}

// drafted is how many tasks are made to measure a candidate whole.
func (c *candidate) drafted() int {
	if c.groups < manyGroups || c.v.micros%c.groups != 0 {
		return c.tasks()
	}
	return c.tasks() * 7 / int(c.groups)
}

// manyGroups is how many groups a step has whose memory is known from steps of fewer.
const manyGroups = 6

// sized is the memory of a candidate's whole step. Of many groups of one size each takes the same buffers in
// turn, and adds its tasks and tokens.
func (s *search) sized(c *candidate) (memory, bool) {
	o := c.options(s)
	key := fmt.Sprintf("%p %+v", c.v, o)
	if m, ok := s.sizes[key]; ok {
		return m, m.host > 0
	}
	m := s.sizes[key]
	defer func() { s.sizes[key] = m }()
	low, err := c.lower(s)
	if err != nil {
		return m, false
	}
	size := func(groups int64) (memory, bool) {
		o, rows := o, int64(0)
		if groups < c.groups {
			o.Groups, rows = groups, groups*c.perGroup()*c.v.rows
		}
		var p *plan.Plan
		if p, err = low.prep.Draft(o, rows); err != nil {
			return memory{}, false
		}
		s.effort.planned(p, true)
		d, h := Need(p, s.m)
		return memory{d, h}, true
	}
	if c.groups < manyGroups || c.v.micros%c.groups != 0 {
		got, ok := size(c.groups)
		m = got
		return m, ok
	}
	three, ok := size(3)
	four, ok2 := size(4)
	if !ok || !ok2 {
		return m, false
	}
	// Of buffers that grow by less than they are aligned to: the loss and the tokens of each micro-batch, in f64.
	rest := 4096 + 16*c.v.micros
	m = four.plus(four.minus(three).times(c.groups - 4)).plus(memory{rest, rest})
	return m, true
}
