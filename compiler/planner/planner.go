// Package planner chooses what the user left open of how a model trains on a machine: micro-batch,
// groups, what is computed again, and what lives where. In go the compiler's options with the
// names of those that are pinned, a machine's profile and the memory that may be taken; out
// comes the same options with everything pinned, the plan they make, and its predicted
// timeline.
//
// It searches in three steps. Every way to lower the model (micro-batch, recompute) is lowered
// once. Arrangements of each (placement, groups, inputs kept where) are ranked by the time that
// they take at least, and fitted into memory in that order: what a step needs is measured on the
// schedule builder itself with steps of one and two micro-batches, and grows evenly from there.
// The best few are then built whole and simulated, and the fastest of those wins. It is
// deterministic: no clock decides, and ties go to the candidate found first.
package planner

import (
	"context"
	"fmt"
	"slices"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/compiler/memplan"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/runtime/plan"
)

// Request is what to plan for.
type Request struct {
	Options compiler.Options
	// Pinned are the options that the user chose, by the names of their flags: "micro-batch".
	Pinned  map[string]bool
	Machine *cost.Machine
	// Device and Host are the bytes that may be taken, 0: what the machine has.
	Device, Host int64
	// Quick builds the best by short steps whole, and no other to hold beside it; that nothing fits it says
	// without a change that would.
	Quick bool
	// Progress is told what the search does, as often as it goes on; nil: nobody is.
	Progress func(text string)
}

// Choice is a plan that fits.
type Choice struct {
	Options  compiler.Options // everything pinned
	Plan     *plan.Plan       // not verified: a compile does that
	Work     *cost.Work
	Timeline *cost.Timeline
	Machine  *cost.Machine

	// DevicePeak and HostPeak are what a run takes, with what libraries and the process itself
	// need. On a CPU all of it is HostPeak.
	DevicePeak, HostPeak     int64
	DeviceLimit, HostLimit   int64
	Tight                    bool // it has fewer slots than a compile without a planner gives
	Cut                      bool // the schedules are so long that not all was looked at
	Considered, Built, Tried int  // arrangements, plans built whole, small ones built to measure
	// Others are the plans that were simulated and lost, the fastest first.
	Others []Other
	Why    []Reason

	from *candidate
}

// Other is a plan that was simulated and not chosen.
type Other struct {
	Options compiler.Options
	Seconds float64
}

// Need is the memory of a plan as a run takes it on a machine.
func Need(p *plan.Plan, m *cost.Machine) (deviceBytes, hostBytes int64) {
	d, h := memplan.Need(p)
	return d, h + memplan.Threads(p, int64(m.Cores.Value))
}

// keepBest is how many fitted candidates are built whole, and mostTasks how many tasks they may
// have together: a second or two of building.
const (
	keepBest  = 6
	mostTasks = 200_000
	mostSmall = 220
)

// Choose plans. The error is a *ShortError where nothing fits, and diags.Err() where the text
// or an option is wrong.
func Choose(ctx context.Context, r Request, diags *diag.List) (*Choice, error) {
	s, err := newSearch(ctx, r, diags)
	if err != nil {
		return nil, err
	}
	c, err := s.run()
	if short, ok := err.(*ShortError); ok && !r.Quick {
		short.nearest(s)
	}
	return c, err
}

// search is one search.
type search struct {
	ctx          context.Context
	r            Request
	m            *cost.Machine
	device, host int64
	variants     []*variant
	lean         []*variant // those made to find what takes the least
	small        int        // small plans built
	last         struct {
		key  string
		plan *plan.Plan
		err  error
	} // the last of them
	coarseOf   map[string]float64 // what was simulated by short steps, by variant and options
	considered int
	feasible   bool // only whether anything fits is asked
	careful    bool // state on the device is counted as if nothing were left out for it
	first      *compiler.Prepared
	only       int64 // rows of a micro-batch where pins say it; else 0
	sizes      map[string]memory
	draft      *plan.Plan // the last short plan that was made to be measured alone
	effort     *effort
}

func newSearch(ctx context.Context, r Request, diags *diag.List) (*search, error) {
	s := start(ctx, r)
	if s.r.Options.Target != s.m.Target {
		return nil, &MachineError{s.m, s.r.Options.Target}
	}
	return s, s.lower(diags)
}

// start fills in what the machine says.
func start(ctx context.Context, r Request) *search {
	s := &search{ctx: ctx, r: r, m: r.Machine, device: r.Device, host: r.Host, coarseOf: map[string]float64{}, sizes: map[string]memory{}, effort: &effort{say: r.Progress}}
	if s.r.Options.Target == "" {
		s.r.Options.Target = s.m.Target
	}
	if s.device == 0 {
		s.device = int64(s.m.DeviceMemory.Value)
	}
	if s.host == 0 {
		s.host = int64(s.m.HostMemory.Value)
	}
	if s.r.Options.LogitsFor == 0 && s.m.Target == "cuda" {
		s.r.Options.LogitsFor = s.device
	}
	if s.m.Target == "cpu" && r.Device > 0 {
		s.host = min(s.host, r.Device)
	}
	return s
}

// MachineError says that a machine is none of the target.
type MachineError struct {
	Machine *cost.Machine
	Target  string
}

func (e *MachineError) Error() string {
	return fmt.Sprintf("machine %s is for the target %s, not %s", e.Machine.Name, e.Machine.Target, e.Target)
}

func (s *search) pinned(flag string) bool { return s.r.Pinned[flag] }

// run finds the best plan. Micro-batches of few rows are slow, and looked at only where no others fit.
func (s *search) run() (*Choice, error) {
	if c, err := s.best(); c != nil || err != nil {
		return c, err
	}
	others := s.variants
	more, err := s.smaller()
	if err != nil {
		return nil, err
	}
	if more {
		if c, err := s.best(); c != nil || err != nil {
			return c, err
		}
		s.variants = append(others, s.variants...)
	}
	return s.leastPlan()
}

// best is the best plan of the variants; nil where none fits.
func (s *search) best() (*Choice, error) {
	for _, half := range s.halves() {
		best, err := s.ranked(half)
		if err != nil {
			return nil, err
		}
		if c, err := s.finals(best); c != nil || err != nil {
			return c, err
		}
	}
	return nil, nil
}

// ranked are the candidates that fit, the fastest first by estimate.
func (s *search) ranked(half bool) ([]*candidate, error) {
	arrangements := s.arrange(half)
	s.considered += len(arrangements)
	short := shortEnough(s, arrangements)
	best, err := s.fitted(short)
	if err == nil && len(best) == 0 && len(short) < len(arrangements) {
		best, err = s.fitted(arrangements) // they may be the only ones that fit
	}
	if err != nil {
		return nil, err
	}
	return s.coarsely(plainFirst(best))
}

// fitted are the ways to fit arrangements into memory, the fastest first by estimate.
func (s *search) fitted(arrangements []*arrangement) ([]*candidate, error) {
	var best []*candidate
	start := s.small
	found := map[string][]float64{} // the estimates of each placement, the fastest first
	for _, a := range arrangements {
		// The best of each kind is built, so that a plain plan wins over one that gains nothing, and
		// estimates that are too good for all of a placement do not hide the others.
		own := found[a.placement]
		if len(own) > 0 && (len(own) >= keepBest && a.least >= own[keepBest-1] || s.small-start > mostSmall || s.effort.spent(2)) {
			continue
		}
		s.effort.doing("%d ways found to fit it into memory, %d short steps made", len(best), s.small)
		for _, c := range s.fit(a) {
			k, _ := slices.BinarySearch(own, c.seconds)
			own = slices.Insert(own, k, c.seconds)
			at, _ := slices.BinarySearchFunc(best, c, func(x, y *candidate) int {
				if x.seconds <= y.seconds {
					return -1
				}
				return 1
			})
			best = slices.Insert(best, at, c)
		}
		found[a.placement] = own
		if err := s.ctx.Err(); err != nil {
			return nil, err
		}
	}
	return best, nil
}

// near is how much slower a plainer plan may be and still be taken: about what predictions are off for one beside another
// of another kind; and even is how much of the same kind.
const (
	near = 1.015
	even = 1.005
)

// plainFirst moves the plainest of those that are about as fast as the best to the front.
func plainFirst(best []*candidate) []*candidate {
	n := 0
	for n < len(best) && best[n].seconds <= best[0].seconds*near {
		n++
	}
	slices.SortStableFunc(best[:n], func(a, b *candidate) int { return a.fuss() - b.fuss() })
	k := 0
	for k < n && best[k].fuss() == best[0].fuss() && best[k].seconds <= best[0].seconds*even {
		k++
	}
	slices.SortStableFunc(best[:k], func(a, b *candidate) int { return a.tasks() - b.tasks() }) // it has fewer gaps too
	return best
}

// margin is how many times as fast as another a candidate has to be to be taken in place of it.
func margin(c, than *candidate) float64 {
	switch d := c.fuss() - than.fuss(); {
	case d > 0:
		return near
	case d == 0:
		return even
	}
	return 1
}

// withoutLong leaves out candidates whose schedules are too long to build and look at in a
// second or two, where another is nearly as fast.
func withoutLong(best []*candidate) []*candidate {
	short := func(c *candidate) bool { return c.tasks() <= mostTasks }
	for _, c := range best {
		if short(c) && c.seconds <= 1.02*best[0].seconds {
			return slices.DeleteFunc(slices.Clone(best), func(c *candidate) bool { return !short(c) })
		}
	}
	return best
}

// firstOfEach puts the best candidate of each placement first, so that estimates which are
// wrong in the same way for all of a kind do not crowd out the others; those that were left out for
// their length come last.
func firstOfEach(short, all []*candidate) []*candidate {
	var out []*candidate
	put := func(c *candidate) {
		if !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	kinds := map[string]bool{}
	for _, c := range short {
		if !kinds[c.placement] {
			kinds[c.placement] = true
			put(c)
		}
	}
	for _, c := range slices.Concat(short, all) {
		put(c)
	}
	return out
}

// fuss is how much goes on in a plan besides computing.
func (c *candidate) fuss() int {
	if c.placement != "stream" {
		return 0
	}
	n := 1
	for _, yes := range []bool{c.save != "none", c.hosted > 0, c.weights > 0, c.grads > 0, c.groups > 1, c.slots != slots{}} {
		if yes {
			n++
		}
	}
	return n
}
