package planner

import (
	"cmp"
	"slices"

	"github.com/megatrain/mtc/compiler"
)

// arrangement is a variant with an order of its micro-batches and a rule for its inputs.
type arrangement struct {
	v         *variant
	placement string
	groups    int64
	save      string  // "none", "auto": as many as it takes, "all"
	half      bool    // gradients cross the link in bf16
	least     float64 // seconds that a step takes at least
}

// perGroup is the micro-batches of the largest group.
func (a *arrangement) perGroup() int64 { return (a.v.micros + a.groups - 1) / a.groups }

// arrange lists arrangements, the fastest first as far as can be said without memory.
func (s *search) arrange(half bool) []*arrangement {
	var out []*arrangement
	for _, v := range s.variants {
		for _, placement := range s.placements() {
			for _, g := range s.groups(v, placement) {
				if g > v.micros || half && g > 1 && placement == "stream" {
					continue // pinned, and of smaller micro-batches; or rounded before they are whole
				}
				for _, save := range s.saves(placement) {
					a := &arrangement{v: v, placement: placement, groups: g, save: save, half: half}
					if s.bound(a) {
						out = append(out, a)
					}
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b *arrangement) int { return cmp.Compare(a.least, b.least) })
	return out
}

// bound finds the least time of an arrangement: with as much state on the device as would fit
// if nothing else were there. It is false when the inputs of layers or the state alone are too
// much.
func (s *search) bound(a *arrangement) bool {
	c := candidate{arrangement: a}
	inputs := a.v.input * a.perGroup()
	var state int64
	for _, x := range a.v.slabs {
		state += c.state(x)
	}
	device, host := s.device, s.host
	var need memory
	switch {
	case s.m.Target == "cpu":
		need = memory{host: state + inputs}
		c.keep = len(a.v.slabs)
	case a.placement != "stream":
		need = memory{device: state + inputs}
		c.keep = len(a.v.slabs)
	default:
		onHost := int64(0)
		if over := inputs - device; over > 0 {
			if a.save == "none" {
				return false
			}
			onHost = over
			c.saved = int(int64(c.layers()) * over / inputs)
		}
		left := device - (inputs - onHost)
		for _, x := range a.v.slabs {
			if c.state(x) > left {
				break
			}
			left -= c.state(x)
			state -= c.state(x)
			c.keep++
		}
		if a.v.clip || a.groups > 1 {
			if a.half {
				_, learn := c.streamed()
				state -= 2 * learn
			}
			state -= left // whole gradients that lie there
		}
		need = memory{host: max(0, state) + onHost}
	}
	if !need.within(device, host) {
		return false
	}
	c.estimate(s)
	if s.mixes(a.v) {
		x := c
		x.keepMost(s.spare(memory{inputs, need.host})) // in place of state
		x.estimate(s)
		c.seconds = min(c.seconds, x.seconds)
		if x.values = (values{}); s.hosts(&x) && x.host(s, memory{device, host - need.host}) {
			x.estimate(s)
			c.seconds = min(c.seconds, x.seconds)
		}
	}
	if a.least = c.seconds; a.placement != "stream" {
		a.least /= near // it wins where it is about as fast
	}
	return true
}

func (s *search) placements() []string {
	if p := s.r.Options.Placement; s.pinned("placement") && p != "auto" && p != "" {
		return []string{p}
	}
	if s.m.Target == "cpu" {
		return []string{"resident"} // both memories are one: a stream would only copy
	}
	return []string{"resident", "stream"}
}

// groups are the numbers of groups to try.
func (s *search) groups(v *variant, placement string) []int64 {
	switch o := s.r.Options; {
	case s.pinned("groups") && s.pinned("order") && o.Order == "batch" && o.Groups > 0 && o.Groups != v.micros:
		return nil
	case s.pinned("groups") && o.Groups > 0:
		return []int64{o.Groups}
	case s.pinned("order") && o.Order == "layer":
		return []int64{1}
	case s.pinned("order") && o.Order == "batch":
		return []int64{v.micros}
	case v.micros == 1:
		return []int64{1}
	case placement == "resident":
		return []int64{v.micros, 1}
	}
	var out []int64
	for g := int64(1); g < 2*v.micros; g *= 2 {
		if g := evenGroups(g, v.micros); !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	return out
}

// evenGroups is the least number of groups that are as small as so many are.
func evenGroups(groups, micros int64) int64 {
	groups = min(max(1, groups), micros)
	each := (micros + groups - 1) / groups
	return (micros + each - 1) / each
}

func (s *search) saves(placement string) []string {
	switch {
	case s.pinned("save-inputs") && s.r.Options.SaveInputs != "auto":
		return []string{s.r.Options.SaveInputs}
	case placement == "resident" || s.m.Target == "cpu":
		return []string{"none"}
	}
	return []string{"none", "auto"}
}

// halves says whether gradients cross the link in bf16, to try in this order: they do only where nothing
// fits otherwise, because it is not the same arithmetic.
func (s *search) halves() []bool {
	switch {
	case s.pinned("grad-precision") || s.r.Options.GradPrecision == "bf16":
		return []bool{s.r.Options.GradPrecision == "bf16"}
	case s.first.Program().DType.Size() == 2:
		return []bool{false, true}
	}
	return []bool{false}
}

// base are the options that all candidates share.
func (s *search) base() compiler.Options {
	o := s.r.Options
	o.DeviceMemory = 0
	return o
}
