package planner

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/bits"
	"strings"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/compiler/schedule"
	"github.com/megatrain/mtc/lang/diag"
)

// ShortError says that no plan fits: what the least demanding one takes, and a change that fits.
type ShortError struct {
	Machine                *cost.Machine
	Device, Host           int64 // bytes that it takes
	DeviceLimit, HostLimit int64
	Options                compiler.Options
	// Change is the nearest change that fits, as flags; "" where none was found.
	Change string
	Does   string // what the change does, in words
	// More is how much of a single memory lets it fit as it is, in words; "" where more of one alone does not.
	More string
	// Impossible is why no plan has the pinned options, whatever the memory; "" where some has.
	Impossible string
}

func (e *ShortError) over() int64 {
	return max(0, e.Device-e.DeviceLimit) + max(0, e.Host-e.HostLimit)
}

// Lines say what is short, one memory a line.
func (e *ShortError) Lines() []string {
	var out []string
	if over := e.Device - e.DeviceLimit; over > 0 {
		out = append(out, fmt.Sprintf("%s of device memory needed, %s over the %s there are",
			schedule.Bytes(e.Device), schedule.Bytes(over), schedule.Bytes(e.DeviceLimit)))
	}
	if over := e.Host - e.HostLimit; over > 0 {
		out = append(out, fmt.Sprintf("%s of host memory needed, %s over the %s there are",
			schedule.Bytes(e.Host), schedule.Bytes(over), schedule.Bytes(e.HostLimit)))
	}
	switch {
	case len(out) == 0 && e.Impossible == "" && e.Device > 0: // what is counted of a long step without building it whole
		out = append(out, fmt.Sprintf("a step needs a little more than the %s of device memory or the %s of host memory that there are; without what a long one adds it is %s and %s",
			schedule.Bytes(e.DeviceLimit), schedule.Bytes(e.HostLimit), schedule.Bytes(e.Device), schedule.Bytes(e.Host)))
	case len(out) == 0:
		out = append(out, cmp.Or(e.Impossible, "the pinned options leave no plan to choose from"))
	}
	return out
}

func (e *ShortError) Error() string { return "no plan fits: " + strings.Join(e.Lines(), "; ") }

// leastShort finds what the least demanding plan takes.
func (s *search) leastShort() *ShortError {
	best := &ShortError{DeviceLimit: s.device, HostLimit: s.host, Machine: s.m}
	found, why := false, ""
	rows := s.variants[0].rows
	for _, v := range s.variants {
		rows = min(rows, v.rows)
	}
	for _, v := range s.variants {
		// What takes the least: small micro-batches, everything made again.
		if !s.pinned("recompute") && v.recompute != "all" || v.rows != rows && v.rows != s.variants[0].rows {
			continue
		}
		places := s.placements()
		for _, placement := range places[len(places)-1:] {
			all := s.groups(v, placement)
			for k, g := range all {
				if k > 0 && k < len(all)-1 || g > v.micros {
					continue
				}
				for _, save := range s.saves(placement) {
					x := arrangement{v: v, placement: placement, groups: g, save: save}
					for _, half := range s.halves() {
						x := x
						x.half = half
						c := &candidate{arrangement: &x}
						if placement == "stream" {
							c.tight = bare
						}
						m, ok := s.least(c)
						if ok && m.within(s.device, s.host) {
							m, ok = s.measured(c) // the estimate was too kind
						}
						if ok && m.within(s.device, s.host) && c.tasks() <= longestWhole {
							m, ok = s.wholeNeed(c) // and so was what short steps take
						}
						if !ok {
							if _, err := s.shortPlan(c, min(g, 2), min(c.perGroup(), few)); err != nil && why == "" {
								why = err.Error()
							}
							continue
						}
						e := &ShortError{
							Device: m.device, Host: m.host, DeviceLimit: s.device, HostLimit: s.host, Machine: s.m, Options: c.options(s),
						}
						if !found || e.over() < best.over() {
							best, found = e, true
						}
					}
				}
			}
		}
	}
	if !found {
		best.Impossible = why
	}
	return best
}

// longestWhole is how many tasks a whole step may have that is built only to say what it takes.
const longestWhole = 4 * mostTasks

// wholeNeed is the memory of a candidate's whole step.
func (s *search) wholeNeed(c *candidate) (memory, bool) {
	low, err := c.lower(s)
	if err != nil {
		return memory{}, false
	}
	p, err := low.prep.Plan(c.options(s), 0)
	if err != nil {
		return memory{}, false
	}
	d, h := Need(p, s.m)
	return memory{d, h}, true
}

// least is the memory of an arrangement with the device filled as far as it goes.
func (s *search) least(c *candidate) (memory, bool) {
	if c.placement != "stream" {
		c.keep = len(c.v.slabs)
		return s.estimated(c)
	}
	m, ok := s.estimated(c)
	if !ok {
		return m, false
	}
	if m.device > s.device && c.save == "auto" {
		c.saved = c.layers()
		if m, ok = s.estimated(c); !ok {
			return m, false
		}
	}
	if !s.pinned("resident") {
		c.fill(s.device - m.device)
	}
	m, ok = s.estimated(c)
	n := c.v.trained
	for ok && m.host > s.host && (c.v.clip || c.groups > 1) && c.grads < n && !c.resident(n-1-c.grads) && 4*c.v.slabs[n-1-c.grads].elems <= s.device-m.device {
		c.grads++
		m, ok = s.estimated(c)
	}
	return m, ok
}

// nearest looks for the nearest change that fits: the one that costs the least.
func (e *ShortError) nearest(s *search) {
	o := s.r.Options
	try := func(flags, does string, change func(r *Request)) bool {
		if e.Change != "" {
			return true
		}
		r := s.r
		r.Options.Set = append([]string(nil), o.Set...)
		r.Pinned = map[string]bool{}
		for k, v := range s.r.Pinned {
			r.Pinned[k] = v
		}
		change(&r)
		if !feasible(s.ctx, r, true) {
			return false
		}
		e.Change, e.Does = flags, does
		return true
	}
	// Pins that stand in the way come first: they cost nothing to take back.
	if len(s.r.Pinned) > 0 {
		for _, flag := range pinnedInTheWay {
			if s.r.Pinned[flag] && try("leaving `--"+flag+"` out", "", func(r *Request) { delete(r.Pinned, flag) }) {
				return
			}
		}
		if try("leaving the planner's options open", "", func(r *Request) { r.Pinned = map[string]bool{} }) {
			return
		}
	}
	v := s.variants[0]
	if v.clip && try("`--set train.clip=none`", "gradients leave as they arrive", func(r *Request) {
		r.Options.Set = append(r.Options.Set, "train.clip=none")
	}) {
		return
	}
	model := v.prep.Model()
	fits := func(sets []string) func(r *Request) {
		return func(r *Request) {
			r.Options.Set = append(r.Options.Set, sets...)
			delete(r.Pinned, "micro-batch")
		}
	}
	batch := func(n int64) []string { return []string{fmt.Sprintf("train.batch=%d rows", n)} }
	quiet := func(sets []string) bool {
		r := s.r
		r.Options.Set = append([]string(nil), o.Set...)
		r.Pinned = map[string]bool{}
		fits(sets)(&r)
		return feasible(s.ctx, r, false)
	}
	// A smaller batch takes less, so the largest that fits is found by halving the range.
	if model.Batch > 1 && quiet(batch(1)) {
		lo, hi := int64(0), int64(bits.Len64(uint64(model.Batch-1))) // 1<<lo fits, 1<<hi does not
		for hi-lo > 1 {
			if mid := (lo + hi) / 2; quiet(batch(1 << mid)) {
				lo = mid
			} else {
				hi = mid
			}
		}
		for ; lo >= 0; lo-- {
			set := batch(1 << lo)
			if try("`--set \""+set[0]+"\"`", fmt.Sprintf("a step of %d tokens", model.Seq<<lo), fits(set)) {
				return
			}
		}
	}
	for seq := model.Seq / 2; seq >= 256; seq /= 4 {
		sets := append(batch(1), fmt.Sprintf("train.seq=%d", seq))
		if try(fmt.Sprintf("`--set \"%s\" --set %s`", sets[0], sets[1]), "", fits(sets)) {
			return
		}
	}
}

// more looks for how much of one memory alone lets a request fit as it is.
func (e *ShortError) more(s *search) {
	for _, m := range []struct {
		name        string
		need, limit int64
		other       bool // the other memory is enough
		of          func(r *Request) *int64
	}{
		{"host", e.Host, s.host, e.Device <= s.device, func(r *Request) *int64 { return &r.Host }},
		{"device", e.Device, s.device, e.Host <= s.host, func(r *Request) *int64 { return &r.Device }},
	} {
		if !m.other || m.need <= m.limit {
			continue
		}
		for _, spare := range []int64{64, 25, 12, 8} {
			const gib = 1 << 30
			n := m.need + m.need/spare
			if n > 8*gib {
				n = (n + gib - 1) / gib * gib
			}
			r := s.r
			if *m.of(&r) = n; feasibleAmong(s.ctx, r, true, 6) {
				e.More = fmt.Sprintf("%s of %s memory", schedule.Bytes(n), m.name)
				return
			}
		}
	}
}

// feasible reports whether anything fits a request, by small steps alone; with whole, a plan of
// the whole step does.
func feasible(ctx context.Context, r Request, whole bool) bool {
	return feasibleAmong(ctx, r, whole, math.MaxInt)
}

// feasibleAmong is feasible by the first few candidates that short steps say fit.
func feasibleAmong(ctx context.Context, r Request, whole bool, few int) bool {
	s := start(ctx, r)
	s.feasible = true
	if s.lower(&diag.List{}) != nil {
		return false
	}
	for _, half := range s.halves() {
		for _, a := range s.arrange(half) {
			if s.small > 40 {
				break
			}
			for _, c := range s.fit(a) {
				if !s.settle(c) {
					continue
				}
				if !whole || s.whole(c) != nil {
					return true
				}
				if few--; few <= 0 {
					return false
				}
			}
		}
	}
	return false
}

// pinnedInTheWay are options whose pin can keep a plan from fitting, the ones that matter least
// first.
var pinnedInTheWay = []string{
	"slots", "grad-slots", "host-slots", "device-weights", "grad-home", "save-values", "save-inputs", "resident", "groups", "order",
	"micro-batch", "input-every", "recompute", "placement", "grad-precision",
}
