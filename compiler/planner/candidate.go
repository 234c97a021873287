package planner

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/compiler/ir"
)

// candidate is an arrangement with everything in its place.
type candidate struct {
	*arrangement
	keep    int   // slabs whose state is on the device, the first ones in order
	order   []int // slabs in the order in which they go there; nil: as they are
	pinned  bool  // keep is the user's: every plan has it
	weights int   // layers after those with a slot of their own for weights
	grads   int   // slabs, the last ones, whose whole gradient waits on the device
	saved   int   // inputs of layers that wait on the host, the first ones; with save "auto"
	values        // of layers that do not recompute, where the others do
	slots   slots
	seconds float64 // of a step, estimated or simulated coarsely
	settled bool    // its memory was measured with everything in its place
	timed   bool    // its time was simulated
}

// slots are how many of each kind a candidate has; 0: as many as a compile gives.
type slots struct{ weights, grads, host int64 }

// tightness lists slots, as a compile gives them first, and last as few of each kind as there may be.
func (a *arrangement) tightness() []slots {
	return []slots{{}, {host: 2}, {a.v.every, a.v.every, 1}}
}

// slotsAround are the slots that differ from a candidate's in one kind.
func (s *search) slotsAround(c *candidate) []slots {
	var out []slots
	for _, n := range []int64{0, c.v.every} {
		out = append(out, slots{n, c.slots.grads, c.slots.host}, slots{c.slots.weights, n, c.slots.host})
	}
	for _, n := range []int64{0, 1, 2} {
		out = append(out, slots{c.slots.weights, c.slots.grads, n})
	}
	return slices.DeleteFunc(out, func(x slots) bool { return x == c.slots })
}

// most is how many slabs may have their state on the device, and at the k-th to go there.
func (c *candidate) most() int {
	if c.order != nil {
		return len(c.order)
	}
	return len(c.v.slabs)
}

func (c *candidate) at(k int) int {
	if c.order != nil {
		return c.order[k]
	}
	return k
}

// resident reports whether a slab's state is on the device.
func (c *candidate) resident(slab int) bool {
	if c.order == nil {
		return slab < c.keep
	}
	return slices.Contains(c.order[:c.keep], slab)
}

// names lists the slabs whose state is on the device, as --resident takes them.
func (c *candidate) names() string {
	var out []string
	for k := range c.keep {
		out = append(out, c.v.prep.Program().Slabs[c.at(k)].Name)
	}
	return ir.JoinNames(out)
}

// tasks is how long the schedule is, about.
func (a *arrangement) tasks() int {
	n := int(a.v.micros) * a.v.perMicro
	if a.placement != "stream" {
		return n + 24*len(a.v.slabs) // nothing crosses the link for a group
	}
	return n + int(a.groups)*24*len(a.v.slabs)
}

// options are the compiler's for this candidate.
func (c *candidate) options(s *search) compiler.Options {
	o := s.base()
	o.MicroBatch, o.Recompute, o.InputEvery, o.LogitsFor = c.v.rows, c.again(), c.v.every, c.v.logits
	o.Placement, o.Groups = c.placement, c.groups
	o.Order = ""
	o.GradPrecision = "f32"
	if !s.pinned("save-values") {
		o.SaveValues = "none"
	}
	if c.hosted > 0 {
		o.SaveValues = strconv.Itoa(c.hosted)
	}
	if c.placement != "stream" {
		o.Resident, o.DeviceWeights, o.GradHome, o.SaveInputs = "", 0, "", "none"
		return o
	}
	if c.half {
		o.GradPrecision = "bf16"
	}
	for _, x := range []struct {
		flag string
		to   *int64
		n    int64
	}{{"slots", &o.Slots, c.slots.weights}, {"grad-slots", &o.GradSlots, c.slots.grads}, {"host-slots", &o.HostSlots, c.slots.host}} {
		if x.n > 0 && !s.pinned(x.flag) {
			*x.to = x.n
		}
	}
	o.Resident = strconv.Itoa(c.keep)
	if c.order != nil && c.keep > 0 {
		o.Resident = c.names()
	}
	if s.pinned("resident") {
		o.Resident = s.r.Options.Resident
	}
	if !s.pinned("device-weights") {
		o.DeviceWeights = int64(c.weights)
	}
	o.GradHome = "host"
	switch {
	case s.pinned("grad-home"):
		o.GradHome = s.r.Options.GradHome
	case c.grads > 0:
		o.GradHome = strconv.Itoa(c.grads)
	}
	o.SaveInputs = c.save
	switch {
	case c.save == "auto" && c.saved == 0:
		o.SaveInputs = "none"
	case c.save == "auto":
		o.SaveInputs = strconv.Itoa(c.saved)
	}
	return o
}

// streamed are the elements of slabs whose state is on the host, and those of them that learn.
func (c *candidate) streamed() (all, learn int64) {
	if c.placement != "stream" {
		return 0, 0
	}
	for i, x := range c.v.slabs {
		if c.resident(i) {
			continue
		}
		if all += x.elems; !x.frozen {
			learn += x.elems
		}
	}
	return all, learn
}

// estimate is a step's time by what each lane has to do in forward and in backward, the passes
// one after the other and all lanes at once within a pass.
func (c *candidate) estimate(s *search) {
	v, m := c.v, s.m
	rates := m.Rates[v.prep.Program().DType.String()]
	micros := float64(v.micros)
	forward, backward := micros*v.forward, micros*v.backward
	if c.kept > 0 {
		backward -= micros * v.remade.seconds * float64(c.kept) / float64(len(v.remade.layers))
	}
	all, learn := c.streamed()
	streamed, learned := float64(all), float64(learn) // whose weights cross the link, and whose gradients too
	update := 28 * (float64(v.learned) - learned) / rates.Optimizer.Value
	norms := 4 * float64(v.learned) / rates.Memory.Value
	if v.clip {
		forward += update
	} else {
		backward += update
	}
	backward += norms
	if c.placement != "stream" {
		c.seconds = forward + backward
		return
	}
	groups := float64(c.groups)
	grad := 4.0
	if c.half {
		grad = 2
	}
	share := float64(c.saved) / float64(max(1, c.layers()))
	if c.save == "all" {
		share = 1
	}
	own := 0.0 // weights that cross once a step only
	for i, left := 0, c.weights; i < len(v.slabs) && left > 0; i++ {
		if v.base(v.slabs[i]) && !c.resident(i) {
			own += float64(v.slabs[i].elems)
			left--
		}
	}
	onDevice := 0.0 // of the gradients, that wait there until they are whole
	if c.grads > 0 {
		onDevice = min(1, float64(c.grads)/float64(max(1, v.trained-c.keep)))
	}
	link := min(m.Link.Both.Value, m.Link.H2D.Value)
	w := float64(v.weight)
	// Of a group:
	forward, backward = forward/groups, backward/groups
	up := w * (streamed - own) / link
	once := w * own / link
	saved := (share*float64(v.input) + float64(c.hosted)*float64(v.remade.bytes)) * micros / groups / link
	down := grad * learned / link
	sums := 0.0
	if c.groups > 1 {
		sums = 12 * learned * (1 - onDevice) / m.Host.Memory.Value
	}
	// The host's updates slow down while copies run, half as much beside one way as beside both.
	host := 28 * learned / m.Host.Optimizer.Value
	if lost := 1 - min(1, m.Host.Copying.Value/m.Host.Optimizer.Value); v.clip {
		host += min(host, w*streamed/link+saved) * lost / 2
	} else {
		host += min(host, down) * lost
	}
	pass := max(forward, up, saved)
	if v.clip {
		// Updates, and gradients that waited on the device, move under the next step's first forward.
		c.seconds = max(forward, host, up+once, saved+down*onDevice) + (groups-1)*pass +
			groups*max(backward, up+saved, down*(1-onDevice), sums)
		return
	}
	back := max(backward, up+saved, down)
	c.seconds = (groups-1)*(pass+max(backward, up+saved, down*(1-onDevice), sums)) + max(max(pass, up+once)+back, host)
}

func (c *candidate) String() string {
	return fmt.Sprintf("%s rows %d recompute %s (kept %d, hosted %d) every %d groups %d keep %d weights %d grads %d save %s/%d half %t: %.3f s",
		c.placement, c.v.rows, c.v.recompute, c.kept, c.hosted, c.v.every, c.groups, c.keep, c.weights, c.grads, c.save, c.saved, c.half, c.seconds)
}
