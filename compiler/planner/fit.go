package planner

import (
	"strconv"

	"github.com/megatrain/mtc/compiler/ir"
)

// fit finds the ways to fit an arrangement into memory.
func (s *search) fit(a *arrangement) []*candidate {
	if a.placement != "stream" {
		c := &candidate{arrangement: a, keep: len(a.v.slabs)}
		out := s.accept(c)
		if m, ok := s.estimated(c); ok {
			for _, x := range s.withValues(c, m) {
				out = append(out, s.accept(x)...)
			}
		}
		return out
	}
	var out []*candidate
	for _, few := range a.tightness() {
		for _, share := range s.shares(a) {
			c := &candidate{arrangement: a, slots: few}
			if s.fitInputs(c, share) {
				out = append(out, s.fitState(c)...)
			}
		}
		if len(out) > 0 {
			return out // what has slots enough is taken where it fits
		}
	}
	return out
}

// accept takes a candidate that fits by estimate.
func (s *search) accept(c *candidate) []*candidate {
	m, ok := s.estimated(c)
	if !ok || !m.within(s.device, s.host) {
		return nil
	}
	c.estimate(s)
	return []*candidate{c}
}

// shares are the parts of the layers' inputs to keep on the host besides those that have to.
func (s *search) shares(a *arrangement) []float64 {
	if a.save != "auto" {
		return []float64{0}
	}
	return []float64{0, 0.5, 1}
}

// fitInputs chooses how many inputs of layers wait on the host: as many as it takes with no
// state on the device, and more of the rest by share. It is false when even that is too much,
// or when the arrangement is one that another has already.
func (s *search) fitInputs(c *candidate, share float64) bool {
	m, ok := s.estimated(c)
	if !ok {
		return false
	}
	if c.save != "auto" {
		return m.device <= s.device
	}
	layers := c.layers()
	least := 0
	if m.device > s.device {
		c.saved = layers
		all, ok := s.estimated(c)
		if !ok {
			return false
		}
		if all.device > s.device || all.device >= m.device {
			return false
		}
		each := float64(m.device-all.device) / float64(layers)
		least = min(layers, int(float64(m.device-s.device)/each)+1)
	}
	c.saved = least + int(share*float64(layers-least))
	return c.saved > 0
}

// layers is how many inputs of layers can wait on the host. Until that was counted it is one a
// layer; where a layer is several units, as one with experts, more than that lie between them.
func (c *candidate) layers() int {
	if c.v.values > 0 {
		return c.v.values
	}
	n := 0
	for _, x := range c.v.slabs {
		if c.v.base(x) {
			n++
		}
	}
	return (n + int(c.v.every) - 1) / int(c.v.every)
}

// state is what a slab on the device takes there.
func (c *candidate) state(x slab) int64 {
	if x.frozen {
		return x.elems * c.v.weight
	}
	bytes := c.v.weight + 8
	if c.v.weight == 2 {
		bytes += 2
	}
	if c.v.clip || c.groups > 1 {
		bytes += 4
	}
	return x.elems * bytes
}

// adds is what a slab's state on the device adds there: where it would have slots of its own for passing through, less those.
func (c *candidate) adds(x slab) int64 {
	switch {
	case x.layer || c.placement != "stream":
		return c.state(x)
	case x.frozen:
		return 0
	}
	return c.state(x) - (c.v.weight+4)*x.elems
}

// fitState chooses what state, weights and gradients lie on the device.
func (s *search) fitState(c *candidate) []*candidate {
	m, ok := s.estimated(c)
	if !ok || m.device > s.device {
		return nil
	}
	if s.pinned("resident") && s.r.Options.Resident != "auto" {
		c.keep, c.pinned = pinnedKeep(s.r.Options.Resident), true
		return s.fitGrads(c)
	}
	var out []*candidate
	for _, x := range s.withValues(c, m) {
		if got, ok := s.estimated(x); ok && got.device <= s.device {
			x.fill(s.device - got.device)
			out = append(out, s.fitGrads(x)...)
		}
	}
	for _, order := range [][]int{nil, c.v.order} {
		full := *c
		full.order = order
		full.fill(s.device - m.device)
		x := full
		out = append(out, s.fitGrads(&x)...)
		if full.keep < len(full.v.slabs) && !s.pinned("device-weights") && order == nil {
			for _, keep := range []int{0, full.keep / 2} {
				x := full
				x.keep = keep
				if s.fillWeights(&x) {
					out = append(out, s.fitGrads(&x)...)
				}
			}
		}
	}
	return out
}

// fill keeps as many slabs on the device as the spare bytes allow.
func (c *candidate) fill(spare int64) { c.fillBy(c.adds, spare) }

func (c *candidate) fillBy(adds func(x slab) int64, spare int64) {
	for c.keep < c.most() && adds(c.v.slabs[c.at(c.keep)]) <= spare {
		spare -= adds(c.v.slabs[c.at(c.keep)])
		c.keep++
	}
}

// fillWeights gives as many layers as fit a slot of their own for weights.
func (s *search) fillWeights(c *candidate) bool {
	m, ok := s.estimated(c)
	spare := s.device - m.device
	for i, x := range c.v.slabs {
		if bytes := x.elems * c.v.weight; ok && c.v.base(x) && !c.resident(i) && bytes <= spare {
			spare -= bytes
			c.weights++
		}
	}
	return c.weights > 0
}

// fitGrads checks a candidate and moves gradients to the device where the host is short.
func (s *search) fitGrads(c *candidate) []*candidate {
	m, ok := s.estimated(c)
	if !ok {
		return nil
	}
	if m.host > s.host && (c.v.clip || c.groups > 1) && !s.pinned("grad-home") {
		spare, short := s.device-m.device, m.host-s.host
		n := c.v.trained
		for c.grads < n && !c.resident(n-1-c.grads) && short > 0 {
			bytes := 4 * c.v.slabs[n-1-c.grads].elems
			if bytes > spare {
				break
			}
			spare -= bytes
			if short -= bytes; c.half {
				short += bytes / 2
			}
			c.grads++
		}
	}
	return s.accept(c)
}

// settle measures a candidate with everything in its place and gives back what has no room, or
// uses what is left; false when it does not fit.
func (s *search) settle(c *candidate) bool {
	c.settled = s.settles(c)
	return c.settled
}

func (s *search) settles(c *candidate) bool {
	m, ok := s.measured(c)
	if !ok {
		return false
	}
	for range 4 {
		switch over := m.device - s.device; {
		case over > 0 || m.host > s.host:
			if !c.shrink(s, over, m.host-s.host) {
				return false
			}
		case c.placement == "stream" && c.weights == 0 && !s.pinned("resident") && c.grads == 0 &&
			c.keep < c.most() && c.adds(c.v.slabs[c.at(c.keep)]) <= -over:
			x := *c
			x.fill(-over)
			got, ok := s.measured(&x)
			if !ok || !got.within(s.device, s.host) {
				return true
			}
			*c, m = x, got
			continue
		default:
			return true
		}
		if m, ok = s.measured(c); !ok {
			return false
		}
	}
	return m.within(s.device, s.host)
}

// shrink takes back what there was no room for; false when there is nothing left to.
func (c *candidate) shrink(s *search, device, host int64) bool {
	if c.placement != "stream" || s.pinned("resident") {
		return false
	}
	taken := false
	for device > 0 && c.weights > 0 && !s.pinned("device-weights") {
		c.weights--
		device -= c.v.slabs[len(c.v.slabs)/2].elems * c.v.weight
		taken = true
	}
	for device > 0 && c.kept > 0 && (c.hosted == 0 || c.kept > c.hosted+1) {
		c.kept--
		device -= c.v.remade.bytes * c.perGroup()
		taken = true
	}
	for device > 0 && c.keep > 0 {
		c.keep--
		device -= c.adds(c.v.slabs[c.at(c.keep)])
		taken = true
	}
	for host > 0 && c.grads < c.v.trained && !c.resident(c.v.trained-1-c.grads) && !s.pinned("grad-home") && (c.v.clip || c.groups > 1) {
		host -= 2 * c.v.slabs[c.v.trained-1-c.grads].elems
		c.grads++
		taken = true
	}
	for host > 0 && c.hosted > 0 {
		host -= c.v.remade.bytes * c.perGroup()
		if c.hosted--; c.hosted > 0 {
			c.kept--
		}
		taken = true
	}
	return taken
}

// pinnedKeep is how many slabs a pinned --resident names.
func pinnedKeep(text string) int {
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	return len(ir.ExpandNames(text))
}
