package bench

import (
	"slices"
	"time"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/add"
)

// typical is the time of a launch by its batches in each round. Of one round it is the second shortest, so
// that neither a disturbance nor a lucky one decides. Of several it is the middle one of their means, of two the lower: the
// least is that of a moment of high clock, which a step of seconds does not have, and a step has slow
// moments too. A batch counts with half as much again as the middle one at most.
func typical(rounds ...[]time.Duration) time.Duration {
	var each []time.Duration
	for _, times := range rounds {
		slices.Sort(times)
		if len(rounds) == 1 {
			return times[min(1, len(times)-1)]
		}
		var sum time.Duration
		for _, t := range times {
			sum += min(t, times[len(times)/2]*3/2)
		}
		each = append(each, sum/time.Duration(len(times)))
	}
	slices.Sort(each)
	return each[(len(each)-1)/2]
}

// measure is the time of one launch by batches that are long against the time to wait for them.
func (b *bencher) measure(launch func()) (time.Duration, error) {
	times, err := b.batches(launch, func(int) {})
	if err != nil {
		return 0, err
	}
	return typical(times), nil
}

// batches times batches of launches, each as the time of one. prepare is told how many launches there
// are going to be before they run.
func (b *bencher) batches(launch func(), prepare func(n int)) ([]time.Duration, error) {
	batch := func(n int) (time.Duration, error) {
		start := b.o.Clock()
		for range n {
			launch()
		}
		err := b.dev.Sync()
		return b.o.Clock() - start, err
	}
	prepare(2)
	if _, err := batch(1); err != nil {
		return nil, err
	}
	first, err := batch(1)
	if err != nil {
		return nil, err
	}
	// A machine that is slow, or that others use, is measured less thoroughly, not for longer.
	batches := 5
	switch gone := time.Since(b.start); {
	case gone > 90*time.Second:
		batches = 2
	case gone > 45*time.Second || b.o.Target == "cpu" && first > b.o.Each:
		batches = 3
	}
	n := max(1, min(1000, int(b.o.Each/5/max(first, 1))))
	prepare(2 + batches*n)
	var times []time.Duration
	for range batches {
		t, err := batch(n)
		if err != nil {
			return nil, err
		}
		times = append(times, t/time.Duration(n))
	}
	return times, nil
}

// launch is what a kernel with next to nothing to do takes, among many.
func (b *bencher) launch(m *memory, q device.Queue) (float64, error) {
	m.reset()
	a := add.ForwardArgs{A: m.acts(64), B: m.acts(64), Y: m.acts(64), Rows: 1, D: 64}
	const n = 256
	t, err := b.measure(func() {
		for range n {
			add.Forward(q, a)
		}
	})
	return t.Seconds() / n, err
}
