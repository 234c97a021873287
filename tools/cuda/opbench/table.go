//go:build cuda

package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/copy"
)

// table holds what was measured of the kernels that are bound by memory.
type table struct {
	dev     device.Device
	m       *memory
	emulate bool
	rate    float64 // of the large copy, bytes/s
	copies  map[int64]time.Duration
	rows    []result
}

// result is a kernel's time, beside what a copy of as many bytes takes.
type result struct {
	name       string
	each, same time.Duration
	share      float64 // of the large copy's rate
}

func newTable(dev device.Device, m *memory, emulate bool) *table {
	return &table{dev: dev, m: m, emulate: emulate, copies: map[int64]time.Duration{}}
}

// add prints a kernel's line; the first is the large copy.
func (t *table) add(b bench, each time.Duration) error {
	rate := float64(b.bytes) / each.Seconds()
	if b.name == copyName {
		t.rate = rate
		fmt.Printf("%-44s %9.1f %9.1f %6.1f%%\n", b.name, each.Seconds()*1e6, rate/1e9, 100.0)
		return nil
	}
	same, err := t.copy(b.bytes)
	if err != nil {
		return err
	}
	r := result{b.name, each, same, rate / t.rate}
	fmt.Printf("%-44s %9.1f %9.1f %6.1f%% %6.1f%%\n", r.name, r.each.Seconds()*1e6, rate/1e9, 100*r.share, r.ofSame())
	t.rows = append(t.rows, r)
	return nil
}

// copy times a copy that reads half of the bytes and writes the other half, launched as the kernels
// are, over as many operands in turn: the faster of the driver's and of the op's.
func (t *table) copy(bytes int64) (time.Duration, error) {
	n := max(bytes/32*16, 16)
	if d, ok := t.copies[n]; ok {
		return d, nil
	}
	t.m.reset()
	from, to, q := t.m.turns(n), t.m.turns(n), t.m.queue
	best := time.Duration(0)
	for _, launch := range []func(i int){
		func(i int) { q.Copy(to.at(i), from.at(i), n) },
		func(i int) {
			copy.Forward(q, copy.ForwardArgs{X: from.at(i), Y: to.at(i), Rows: 1, D: int(n / t.m.act)})
		},
	} {
		each, err := measure(t.dev, launch, t.emulate, true)
		if err != nil {
			return 0, err
		}
		if best == 0 || each < best {
			best = each
		}
	}
	t.copies[n] = best
	return best, nil
}

// ofSame is the share of the same-sized copy's rate, in percent.
func (r result) ofSame() float64 { return 100 * r.same.Seconds() / r.each.Seconds() }

// worst prints all kernels again, by the share of the same-sized copy.
func (t *table) worst() {
	slices.SortStableFunc(t.rows, func(a, b result) int {
		switch {
		case a.ofSame() < b.ofSame():
			return -1
		case a.ofSame() > b.ofSame():
			return 1
		}
		return 0
	})
	fmt.Printf("\nworst first: share of a copy of the same size, of the large copy; us\n")
	for _, r := range t.rows {
		fmt.Printf("%5.0f%% %5.0f%% %9.1f  %s\n", r.ofSame(), 100*r.share, r.each.Seconds()*1e6, r.name)
	}
}
