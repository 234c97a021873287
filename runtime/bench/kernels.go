package bench

import (
	"slices"
	"time"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/op"
)

// kernels measures every case on the compute lane.
func (b *bencher) kernels() error {
	var all []kase
	seen := map[kase2]bool{}
	keep := func(more []kase) {
		for _, k := range more {
			key := kase2{k.kernel, k.shape, k.cost}
			if !seen[key] {
				seen[key] = true
				all = append(all, k)
			}
		}
	}
	dims := b.o.sizes
	if dims == nil {
		dims = modelSizes(b.o.Target, b.o.Quick)
	}
	// Products come first and one after another: a GPU at its power limit runs them slower than
	// for a moment, and a training step is mostly that.
	for _, s := range dims {
		keep(s.products(b.o.DType))
		if b.o.Target == "cuda" && s.b%4 == 0 {
			s.b /= 4 // a quarter of the rows: a GPU is then less full
			keep(s.products(b.o.DType))
		}
	}
	for _, s := range dims {
		keep(s.attends(b.o.DType))
		keep(s.rowwise(b.o.DType))
	}
	if b.o.Target == "cpu" && b.o.sizes == nil && !b.o.Quick { // narrow heads, a long sequence, many words behind narrow layers
		keep(append(sizes{8, 128, 64, 0, 0, 4, 4, 16}.attends(b.o.DType), sizes{1, 4096, 256, 0, 0, 4, 4, 64}.attends(b.o.DType)...))
		keep(sizes{b: 1, t: 256, d: 128}.productOf(b.o.DType, 128, 50257, (*memory).acts))
	}
	keep(b.slabs())
	m, err := b.room(all)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(k kase) bool {
		m.reset()
		k.setup(m)
		return m.used > m.size || m.far != nil && m.far.used > m.far.size
	})
	q := b.dev.Queue(device.Compute)
	if w, ok := b.dev.(device.Warmer); ok {
		b.progress("compiling the kernels")
		if err := w.Warm(func(q device.Queue) {
			for _, k := range all {
				m.reset()
				k.setup(m)(q)
			}
		}); err != nil {
			return err
		}
	}
	if b.r.Launch, err = b.launch(m, q); err != nil {
		return err
	}
	if err := b.heat(m, q, all); err != nil {
		return err
	}
	rounds := 1
	if b.o.Target == "cpu" && !b.o.Quick {
		rounds = cpuRounds
	}
	times := make([][][]time.Duration, len(all)) // by case and round
	for round := range rounds {
		for i, k := range all {
			if i%25 == 0 {
				b.progress("kernels: %d of %d", round*len(all)+i, rounds*len(all))
			}
			if round > 0 && (time.Since(b.start) > latest || len(times[i]) > 0 && times[i][0][0] > time.Second/4) {
				continue
			}
			t, err := b.kernel(k, m, q)
			if err != nil {
				return err
			}
			if len(t) > 0 {
				times[i] = append(times[i], t)
			}
		}
	}
	for i, k := range all {
		if len(times[i]) == 0 {
			continue
		}
		b.r.Kernels = append(b.r.Kernels, Kernel{k.kernel, k.shape, k.cost.FLOPs, k.cost.Bytes, typical(times[i]...).Seconds()})
	}
	return nil
}

// A CPU is measured in rounds, so that a disturbance of some seconds spoils no case. The later ones end
// when a measurement has taken latest, and leave out cases whose launches take long.
const (
	cpuRounds = 3
	latest    = 80 * time.Second
)

// nearRing is how much a step of narrow or wide layers goes through between the making of a value and its
// use, some operands of products: more than a core keeps by itself, and less than all of them share.
const nearRing = 16 << 20

// places is how many operands of so many bytes lie in a room.
func places(bytes, room int64) int64 {
	if bytes == 0 {
		return 1
	}
	return max(1, room/bytes)
}

// kernel times a case: batches, each as the time of one launch.
func (b *bencher) kernel(k kase, m *memory, q device.Queue) ([]time.Duration, error) {
	m.reset()
	if b.o.Target == "cpu" {
		if err := m.refresh(); err != nil {
			return nil, err
		}
	}
	launches := []func(device.Queue){k.setup(m)}
	if m.used > m.size || m.far != nil && m.far.used > m.far.size {
		return nil, nil
	}
	// more makes launches whose operands lie elsewhere, as many as are going to run or have room, and goes
	// round where one kind of them needs less of it.
	more := func(int) {}
	if m.far != nil {
		near, old, room, ring := m.used, m.far.used, min(m.size, nearRing), m.far.size
		if k.ring > 0 {
			ring = min(ring, k.ring)
		}
		most := int(max(places(near, room), places(old, ring)))
		more = func(n int) {
			for len(launches) < min(n, most) {
				if m.used+near > room {
					m.again()
				}
				if m.far.used+old > ring {
					m.far.again()
				}
				launches = append(launches, k.setup(m))
			}
		}
	}
	at := 0
	return b.batches(func() {
		launches[at%len(launches)](q)
		at++
	}, more)
}

// heat runs the largest product until a GPU is as warm as in training.
func (b *bencher) heat(m *memory, q device.Queue, all []kase) error {
	if b.o.Target != "cuda" || b.o.Quick {
		return nil
	}
	largest := all[0]
	for _, k := range all {
		if k.cost.FLOPs > largest.cost.FLOPs {
			largest = k
		}
	}
	m.reset()
	f := largest.setup(m)
	const batch = 20
	for start := time.Now(); time.Since(start) < 5*time.Second; {
		at := time.Now()
		for range batch {
			f(q)
		}
		if err := b.dev.Sync(); err != nil {
			return err
		}
		b.r.Sustained = batch * float64(largest.cost.FLOPs) / time.Since(at).Seconds()
	}
	return nil
}

// kase2 tells cases apart.
type kase2 struct {
	kernel string
	shape  op.Shape
	cost   op.Cost
}

// room makes memory for the largest case that may have it.
func (b *bencher) room(all []kase) (*memory, error) {
	act := b.o.DType.Size()
	var most, away int64
	limit := b.o.Memory
	if limit == 0 {
		limit = max(b.r.DeviceMemory/2, 64<<20)
		if b.o.Target == "cpu" {
			limit = min(limit, 1<<30)
		}
	}
	for _, k := range all {
		m := &memory{dev: b.dev, act: act, size: -1}
		if b.o.Target == "cpu" {
			m.far = &memory{dev: b.dev, act: act, size: -1}
			k.setup(m)
			if m.used+m.far.used <= limit {
				most, away = max(most, m.used), max(away, m.far.used)
			}
			continue
		}
		k.setup(m)
		if m.used <= limit {
			most = max(most, m.used)
		}
	}
	if b.o.Target == "cpu" && !b.o.Quick {
		most = max(most, min(nearRing, limit/2))
	}
	m, err := newMemory(b.dev, device.DeviceMemory, most, act)
	if err != nil || b.o.Target != "cpu" {
		return m, err
	}
	if !b.o.Quick {
		away = max(away, limit-most)
	}
	m.far, err = newMemory(b.dev, device.DeviceMemory, away, act)
	return m, err
}
