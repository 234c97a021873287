package schedule

import (
	"slices"

	"github.com/megatrain/mtc/runtime/plan"
)

// Memory is where the tasks of plans lie that are looked at one after another: a plan that is made in it takes the place of the
// one before, whose tasks nobody may look at any more. A search makes many, and tasks are large.
type Memory struct {
	tasks []plan.Task
	ids   cuts[plan.BufID]
	flags cuts[bool]
	waits cuts[plan.Wait]
}

func (m *Memory) begin() {
	m.ids.begin()
	m.flags.begin()
	m.waits.begin()
}

// room is an empty list of tasks with room for n.
func (m *Memory) room(n int) []plan.Task {
	return slices.Grow(m.tasks[:0], n)
}

// cuts are short lists, of which a plan has many: they are cut from chunks.
type cuts[E any] struct {
	chunks [][]E
	left   []E // of the last one in use
	used   int // chunks
}

func (c *cuts[E]) begin() { c.left, c.used = nil, 0 }

// cut returns an empty list with room for n.
func (c *cuts[E]) cut(n int) []E {
	if n == 0 {
		return nil
	}
	for len(c.left) < n {
		if c.used == len(c.chunks) {
			c.chunks = append(c.chunks, make([]E, max(4096, n)))
		}
		c.left = c.chunks[c.used]
		c.used++
	}
	list := c.left[:0:n]
	c.left = c.left[n:]
	return list
}
