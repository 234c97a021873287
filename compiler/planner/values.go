package planner

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/runtime/plan"
)

// Where everything recomputes, some layers need not: what backward reads of them is kept on the
// device, of the last ones, which are read again soonest, or waits on the host, of layers that lie
// evenly among the others, so that the link is busy all the time.

// values are what a candidate keeps of what its variant would make again.
type values struct {
	kept   int // layers that do not recompute
	hosted int // those of them, the first ones, whose values wait on the host: fewer than are kept, since backward begins with the last
}

// lowered is a variant with some layers that do not recompute.
type lowered struct {
	prep *compiler.Prepared
	work *cost.Work
}

// remade is what recomputing costs and saves, of a variant that does it everywhere.
type remade struct {
	layers  []string // their names
	seconds float64  // of a micro-batch, of all layers
	bytes   int64    // that a layer keeps of a micro-batch where it does not, the mean
}

// remakes finds out what a variant recomputes.
func (v *variant) remakes(p *plan.Plan) {
	prog := v.prep.Program()
	var bytes int64
	for u, b := range prog.Units {
		t := prog.Templates[b.Template]
		if b.Unit.Kind != ir.LayerUnit || !t.Recompute {
			continue
		}
		bytes += t.SavedBytes
		if name, _, _ := strings.Cut(p.Units[u].Name, "."); !slices.Contains(v.remade.layers, name) {
			v.remade.layers = append(v.remade.layers, name)
		}
	}
	if n := len(v.remade.layers); n > 0 {
		v.remade.bytes = bytes / int64(n)
	}
}

// mixes reports whether layers of a variant may differ in whether they recompute.
func (s *search) mixes(v *variant) bool {
	return v.recompute == "all" && !s.pinned("recompute") && v.remade.bytes > 0 && v.remade.seconds > 0
}

// again are the layers that recompute, as --recompute takes them.
func (c *candidate) again() string {
	n := len(c.v.remade.layers)
	switch {
	case c.kept == 0:
		return c.v.recompute
	case c.kept == n:
		return "none"
	case c.hosted == 0:
		return strconv.Itoa(n - c.kept)
	}
	var out []string
	// What waits on the host passes through the same memory, which is free when the copy has ended: it comes from
	// layers that lie as far apart as they can.
	front, apart := n-(c.kept-c.hosted)+1, 0
	for i, name := range c.v.remade.layers[:front] {
		if i == apart*(front-1)/c.hosted {
			apart++
			continue
		}
		out = append(out, name)
	}
	return ir.JoinNames(out)
}

// lower is the program of a candidate: of its variant, or with layers that do not recompute.
func (c *candidate) lower(s *search) (lowered, error) {
	if c.kept == 0 {
		return lowered{c.v.prep, c.v.work}, nil
	}
	spec := c.again()
	if x, ok := c.v.mixed[spec]; ok {
		return x, nil
	}
	o := s.r.Options
	o.MicroBatch, o.Recompute, o.InputEvery, o.LogitsFor = c.v.rows, spec, c.v.every, c.v.logits
	prep, err := s.first.Again(o)
	if err != nil {
		return lowered{}, err
	}
	s.effort.lowered(len(prep.Model().Units))
	x := lowered{prep, cost.WorkOf(prep.Program())}
	c.v.mixed[spec] = x
	return x, nil
}

// keeps is what the values that are kept take of a micro-batch. Those that wait on the host pass through the device
// memory of one that does not.
func (c *candidate) keeps() memory {
	if c.v.target == "cpu" {
		return memory{0, int64(c.kept) * c.v.remade.bytes}
	}
	return memory{int64(c.kept-c.hosted) * c.v.remade.bytes, int64(c.hosted) * c.v.remade.bytes}
}

// keepMost keeps the values of as many layers as spare bytes of the device allow.
func (c *candidate) keepMost(spare int64) {
	each := max(1, c.v.remade.bytes*c.perGroup())
	c.kept = max(c.kept, c.hosted+int(min(int64(len(c.v.remade.layers)-c.hosted), max(0, spare)/each)))
}

// host lets the values of as many layers wait on the host as make a step the fastest by estimate, with what room is left on
// the device filled with state; false where that is of none. The device and the host have so many bytes to spare.
func (c *candidate) host(s *search, spare memory) bool {
	each := max(1, c.v.remade.bytes*c.perGroup())
	most := int(min(int64(len(c.v.remade.layers)-1), max(0, spare.host)/each))
	var best candidate
	try := func(n int) {
		x := *c
		x.hosted, x.kept = n, n+1
		x.fill(spare.device - each)
		if x.estimate(s); best.arrangement == nil || x.seconds < best.seconds {
			best = x
		}
	}
	step := max(1, most/hostedSteps)
	for n := step; n <= most && each <= spare.device; n += step {
		try(n)
	}
	for n, end := best.hosted-step+1, min(most+1, best.hosted+step); step > 1 && best.hosted > 0 && n < end; n++ {
		try(n)
	}
	c.values = best.values
	return c.hosted > 0
}

// hostedSteps is how many numbers of layers are tried coarsely.
const hostedSteps = 32

// hosts reports whether values of a candidate may wait on the host.
func (s *search) hosts(c *candidate) bool {
	return c.placement == "stream" && c.v.every == 1 && !s.pinned("save-values") && s.m.Target != "cpu"
}

// spare is what a memory leaves of the device; on a CPU, whose memory is one, of the host.
func (s *search) spare(m memory) int64 {
	if s.m.Target == "cpu" {
		return s.host - m.host
	}
	return s.device - m.device
}

// withValues are ways to keep values beside a candidate without state on the device: on the device in place of
// as much state as they take, and on the host.
func (s *search) withValues(c *candidate, m memory) []*candidate {
	spare, host := s.spare(m), s.host-m.host
	if !s.mixes(c.v) || c.kept > 0 {
		return nil
	}
	var out []*candidate
	seen := []values{{}, {kept: len(c.v.remade.layers)}} // what variants are that recompute all, and nothing
	add := func(x candidate) {
		if !slices.Contains(seen, x.values) {
			seen = append(seen, x.values)
			out = append(out, &x)
		}
	}
	for _, part := range []int64{1, 2} {
		x := *c
		x.keepMost(spare / part)
		add(x)
	}
	if s.hosts(c) {
		if x := *c; x.host(s, memory{spare, host}) {
			add(x)
		}
	}
	slices.SortStableFunc(out, func(a, b *candidate) int { return cmp.Compare(a.kept, b.kept) })
	return out
}
