package view

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// Memory is one memory over the step: what of the plan's arenas holds something that is still
// wanted. What is reserved beyond that is room that other lists need, or gaps.
type Memory struct {
	Name     string // "device", "host"
	Reserved int64
	Kept     int64 // of it alive all the time: weights and state at home
	Points   []Level
	Peak     Level
	AtPeak   []Group
	PeakTask int // number of the task that begins there, -1: none
}

// Level is the bytes alive from a time on.
type Level struct {
	At    float64 `json:"at"`
	Bytes int64   `json:"bytes"`
}

// Group is buffers of one purpose.
type Group struct {
	Purpose string   `json:"purpose"`
	Buffers int      `json:"buffers"`
	Bytes   int64    `json:"bytes"`
	Names   []string `json:"names"` // patterns, such as layer[*].saved.micro[*]
}

// Lacks says what a plan takes beyond the memory of a machine: "2.41 TiB of device memory"; ""
// where it fits. On a CPU both memories are one.
func Lacks(p *plan.Plan, m *cost.Machine) string {
	dev, host := arenas(p)
	if p.Target == "cpu" {
		dev, host = 0, dev+host
	}
	var out []string
	for _, x := range []struct {
		name string
		need int64
		have float64
	}{{"device", dev, m.DeviceMemory.Value}, {"host", host, m.HostMemory.Value}} {
		if over := float64(x.need) - x.have; x.have > 0 && over > 0 {
			out = append(out, fmt.Sprintf("%s of %s memory", bytesText(int64(over)), x.name))
		}
	}
	return strings.Join(out, " and ")
}

// life is a stretch in which a buffer is alive; it may reach beyond the period on both sides.
type life struct {
	buf      plan.BufID
	from, to float64
}

// Memories gives each memory over the step. A buffer is alive from the task that writes it
// without having read it, to the last one that uses it before it is written so again; one that
// is never written so holds its content for good.
func (t *Step) Memories() []Memory {
	lives, kept := t.lives()
	out := []Memory{{Name: device.DeviceMemory.String()}, {Name: device.HostMemory.String()}}
	for _, a := range t.Plan.Arenas {
		out[a.Memory].Reserved += a.Bytes
	}
	for m := range out {
		t.fill(&out[m], device.Memory(m), lives, kept)
	}
	return out
}

// access is a task's use of a buffer; times of what belongs to the step before are a period
// later, so that they stand behind what the step itself did.
type access struct {
	place      int
	start, end float64
	fresh      bool // it overwrites the buffer
}

func (t *Step) lives() (lives []life, kept []plan.BufID) {
	n := len(t.Plan.Buffers)
	uses := make([][]access, n)
	for i := range t.Len() {
		task := t.Task(i)
		shift := float64(task.Back) * t.Line.Seconds
		add := func(b plan.BufID, fresh bool) {
			uses[b] = append(uses[b], access{i, t.Start[i] + shift, t.End[i] + shift, fresh})
		}
		for _, b := range task.Reads {
			add(b, false)
		}
		for _, b := range task.Writes {
			if !slices.Contains(task.Reads, b) {
				add(b, true)
			}
		}
	}
	for b, list := range uses {
		if len(list) == 0 {
			continue
		}
		slices.SortStableFunc(list, func(a, c access) int {
			if d := descending(c.start, a.start); d != 0 {
				return d
			}
			return a.place - c.place
		})
		first := slices.IndexFunc(list, func(a access) bool { return a.fresh })
		if first < 0 {
			kept = append(kept, plan.BufID(b))
			continue
		}
		// What is read before it is written was written by the step before.
		for i := range first {
			list[i].start += t.Line.Seconds
			list[i].end += t.Line.Seconds
		}
		list = append(list[first:], list[:first]...)
		x := life{buf: plan.BufID(b)}
		for i, a := range list {
			if a.fresh && i > 0 {
				lives = append(lives, x)
			}
			if a.fresh {
				x.from, x.to = a.start, a.end
			}
			x.to = max(x.to, a.end)
		}
		lives = append(lives, x)
	}
	return lives, kept
}

func (t *Step) fill(m *Memory, which device.Memory, lives []life, kept []plan.BufID) {
	p := t.Plan
	in := func(b plan.BufID) bool { return p.Arenas[p.Buffers[b].Arena].Memory == which }
	bytes := func(b plan.BufID) int64 { return p.Buffers[b].Bytes }
	for _, b := range kept {
		if in(b) {
			m.Kept += copies(&p.Buffers[b])
		}
	}
	type change struct {
		at    float64
		bytes int64
	}
	var changes []change
	period := t.Line.Seconds
	alive := m.Kept
	each := func(visit func(b plan.BufID, from, to float64)) {
		for _, x := range lives {
			if !in(x.buf) {
				continue
			}
			if period <= 0 || t.Line.List != plan.Steady {
				visit(x.buf, max(x.from, 0), x.to)
				continue
			}
			// The same happens in every step: the part of each that falls into this period.
			for k := math.Floor(x.from / period); k <= math.Floor(x.to/period); k++ {
				if from, to := max(x.from-k*period, 0), min(x.to-k*period, period); to > from {
					visit(x.buf, from, to)
				}
			}
		}
	}
	each(func(b plan.BufID, from, to float64) {
		if from <= 0 {
			alive += bytes(b)
		} else {
			changes = append(changes, change{from, bytes(b)})
		}
		if to < period {
			changes = append(changes, change{to, -bytes(b)})
		}
	})
	slices.SortStableFunc(changes, func(a, b change) int { return descending(b.at, a.at) })
	m.Points = []Level{{0, alive}}
	m.Peak = m.Points[0]
	for i, c := range changes {
		alive += c.bytes
		if i+1 < len(changes) && changes[i+1].at == c.at {
			continue
		}
		m.Points = append(m.Points, Level{c.at, alive})
		if alive > m.Peak.Bytes {
			m.Peak = Level{c.at, alive}
		}
	}
	m.PeakTask = t.beginsAt(m.Peak.At)
	groups := map[string]int{}
	hold := func(b plan.BufID, n int64) {
		what := t.purpose(b)
		k, ok := groups[what]
		if !ok {
			k = len(m.AtPeak)
			groups[what] = k
			m.AtPeak = append(m.AtPeak, Group{Purpose: what})
		}
		g := &m.AtPeak[k]
		g.Buffers++
		g.Bytes += n
		if name := pattern(p.Buffers[b].Name); !slices.Contains(g.Names, name) {
			g.Names = append(g.Names, name)
		}
	}
	for _, b := range kept {
		if in(b) {
			hold(b, copies(&p.Buffers[b]))
		}
	}
	each(func(b plan.BufID, from, to float64) {
		if from <= m.Peak.At && m.Peak.At < to {
			hold(b, bytes(b))
		}
	})
	slices.SortStableFunc(m.AtPeak, func(a, b Group) int { return int(max(-1, min(1, b.Bytes-a.Bytes))) })
}

// copies is what a buffer takes with both of its copies.
func copies(b *plan.Buffer) int64 {
	if b.Parity {
		return 2 * b.Bytes
	}
	return b.Bytes
}

// purpose says what a buffer is for.
func (t *Step) purpose(b plan.BufID) string {
	if i := int(b) - 1; i >= 0 && i < len(t.File.Buffers) && t.File.Buffers[i].Purpose != "" {
		return t.File.Buffers[i].Purpose
	}
	return pattern(t.Plan.Buffers[b].Name)
}

// beginsAt is the task that begins at a time of the period, of compute where there are some.
func (t *Step) beginsAt(at float64) int {
	best := -1
	for i := range t.Line.Runs {
		r := &t.Line.Runs[i]
		if r.Start <= at && at < r.End && (best < 0 || r.Lane == device.Compute) {
			best = r.Task
		}
	}
	return best
}
