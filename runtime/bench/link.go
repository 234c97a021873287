package bench

import (
	"time"

	"github.com/megatrain/mtc/runtime/device"
)

// link measures copies and the host's optimizer, alone and together.
func (b *bencher) link() error {
	b.progress("copies and the optimizer, alone and together")
	size, elems := int64(256<<20), int64(48<<20)
	if b.o.Target == "cpu" {
		size, elems = 128<<20, 32<<20 // what is moved should not be in a cache
		if b.r.HostMemory > 0 && b.r.HostMemory < 8<<30 {
			size, elems = 32<<20, 8<<20
		}
	}
	if b.o.Quick {
		size, elems = 1<<20, 1<<18
	}
	act := b.o.DType.Size()
	dev, err := newMemory(b.dev, device.DeviceMemory, 2*size, act)
	if err != nil {
		return err
	}
	host, err := newMemory(b.dev, device.HostMemory, 2*size+16*elems+8*1024, act)
	if err != nil {
		return err
	}
	up, down, back := b.dev.Queue(device.H2D), b.dev.Queue(device.D2H), b.dev.Queue(device.Host)
	from, to := host.bytes(size), host.bytes(size)
	in, out := dev.bytes(size), dev.bytes(size)
	update := b.update(host, elems)
	h2d := work{up, size, func() { up.Copy(in, from, size) }}
	d2h := work{down, size, func() { down.Copy(to, out, size) }}
	adam := work{back, 28 * elems, func() { update(back) }}
	alone := func(w work) (float64, error) {
		t, err := b.measure(w.run)
		return float64(w.bytes) / t.Seconds(), err
	}
	if b.r.H2D, err = alone(h2d); err != nil {
		return err
	}
	if b.r.D2H, err = alone(d2h); err != nil {
		return err
	}
	if b.r.Optimizer, err = alone(adam); err != nil {
		return err
	}
	tiny := min(size, 4096)
	t, err := b.measure(func() { up.Copy(in, from, tiny) })
	if err != nil {
		return err
	}
	b.r.Latency = max(0, t.Seconds()-float64(tiny)/b.r.H2D)
	rates, err := b.together(h2d, d2h)
	if err != nil {
		return err
	}
	b.r.Both = min(rates[0], rates[1])
	if rates, err = b.together(h2d, d2h, adam); err != nil {
		return err
	}
	b.r.Updating, b.r.Copying = min(rates[0], rates[1]), rates[2]
	return nil
}

// work is something that a lane does over and over.
type work struct {
	q     device.Queue
	bytes int64
	run   func()
}

// together gives the rates of works that all go on: each is timed up to the moment when the
// first of them has done its share, which is given so that all take about as long alone.
func (b *bencher) together(works ...work) ([]float64, error) {
	const marks = 12
	events := make([][]device.Event, len(works))
	counts := make([]int, len(works))
	for i, w := range works {
		t, err := b.measure(w.run)
		if err != nil {
			return nil, err
		}
		counts[i] = max(1, int(4*b.o.Each/marks/max(t, 1)))
		for range marks {
			events[i] = append(events[i], b.dev.NewEvent())
		}
	}
	done := make([][marks]time.Duration, len(works))
	ended := make(chan error, len(works))
	start := time.Now()
	for k := range marks {
		for i, w := range works {
			for range counts[i] {
				w.run()
			}
			w.q.Record(events[i][k])
		}
	}
	for i := range works {
		go func() {
			for k, e := range events[i] {
				if err := e.Sync(); err != nil {
					ended <- err
					return
				}
				done[i][k] = time.Since(start)
			}
			ended <- nil
		}()
	}
	for range works {
		if err := <-ended; err != nil {
			return nil, err
		}
	}
	first := done[0][marks-1]
	for i := range works {
		first = min(first, done[i][marks-1])
	}
	rates := make([]float64, len(works))
	for i, w := range works {
		last := 0
		for k := range marks {
			if done[i][k] <= first {
				last = k
			}
		}
		rates[i] = float64(w.bytes) * float64(counts[i]) * float64(last+1) / done[i][last].Seconds()
	}
	return rates, b.dev.Sync()
}
