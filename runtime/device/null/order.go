package null

import (
	"fmt"

	"github.com/megatrain/mtc/runtime/device"
)

// order checks, by vector clocks (Fidge; Mattern, 1988-89), that no copy races with a command
// of another lane. A copy's ranges are known. Of a launch only addresses are known, neither
// how far they reach nor which are written; so a launch conflicts with a copy that writes the
// byte it points to, and two launches never conflict. The verifier of the schedule, which
// knows whole buffers, and the race detector on the CPU device see the rest.
type order struct {
	lanes  [device.NumLanes]clock
	arenas map[int32][]access
}

// clock[l] is how many commands of lane l are known to be done.
type clock [device.NumLanes]int64

func (c *clock) join(o clock) {
	for i := range c {
		c[i] = max(c[i], o[i])
	}
}

// access is a range of bytes [lo, hi) that a command used.
type access struct {
	lo, hi int64
	lane   device.Lane
	time   int64 // number of the command on its lane
	kind   kind
	tag    int
	name   string
}

type kind uint8

const (
	reads   kind = iota // a copy's source
	writes              // a copy's target
	touches             // a launch's operand
)

func (k kind) String() string { return [...]string{"reads", "writes", "uses"}[k] }

// conflict says whether two kinds of access need an order.
func conflict(a, b kind) bool { return a == writes || b == writes }

// host makes every later command follow what c knows: the engine waited for it.
func (o *order) host(c clock) {
	for l := range o.lanes {
		o.lanes[l].join(c)
	}
}

func (o *order) syncAll() {
	var all clock
	for _, c := range o.lanes {
		all.join(c)
	}
	o.host(all)
}

func (o *order) touch(q *queue, name string, p device.Ptr) {
	o.add(q, p, 1, touches, name)
}

func (o *order) copy(q *queue, dst, src device.Ptr, n int64) {
	o.add(q, src, n, reads, "copy")
	o.add(q, dst, n, writes, "copy")
}

// add checks an access against those before it and keeps it.
func (o *order) add(q *queue, p device.Ptr, n int64, k kind, name string) {
	if n == 0 {
		return
	}
	if o.arenas == nil {
		o.arenas = map[int32][]access{}
	}
	now := &o.lanes[q.lane]
	now[q.lane]++
	a := access{p.Off, p.Off + n, q.lane, now[q.lane], k, q.tag, name}
	old := o.arenas[p.Arena]
	kept := old[:0]
	for _, b := range old {
		overlap := b.lo < a.hi && a.lo < b.hi
		ordered := b.lane == a.lane || now[b.lane] >= b.time
		if overlap && !ordered && conflict(a.kind, b.kind) {
			q.dev.fail(q, name, fmt.Errorf("%s bytes [%d, %d) of arena %d, not ordered after task %d (%s on lane %s), which %s [%d, %d)",
				a.kind, a.lo, a.hi, p.Arena, b.tag, b.name, b.lane, b.kind, b.lo, b.hi))
		}
		same := b.lo == a.lo && b.hi == a.hi && b.lane == a.lane && b.kind == a.kind
		covered := a.kind == writes && ordered && a.lo <= b.lo && b.hi <= a.hi
		if !same && !covered {
			kept = append(kept, b)
		}
	}
	o.arenas[p.Arena] = append(kept, a)
}
