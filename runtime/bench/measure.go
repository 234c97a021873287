package bench

import (
	"slices"
	"time"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/add"
	"github.com/megatrain/mtc/runtime/optim"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/tensor"
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
	keep(b.slabs())
	m, err := b.room(all)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(k kase) bool {
		m.reset()
		k.setup(m)
		return m.used > m.size
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
	for i, k := range all {
		if i%25 == 0 {
			b.progress("kernels: %d of %d", i, len(all))
		}
		m.reset()
		if b.o.Target == "cpu" {
			if err := m.refresh(); err != nil {
				return err
			}
		}
		f := k.setup(m)
		if m.used > m.size {
			continue
		}
		launches := []func(device.Queue){f}
		for one := m.used; b.o.Target == "cpu" && m.used < farApart && m.used+one <= m.size; {
			launches = append(launches, k.setup(m))
		}
		at := 0
		each, err := b.measure(func() {
			launches[at%len(launches)](q)
			at++
		})
		if err != nil {
			return err
		}
		b.r.Kernels = append(b.r.Kernels, Kernel{k.kernel, k.shape, k.cost.FLOPs, k.cost.Bytes, each.Seconds()})
	}
	return nil
}

// farApart is how many bytes of operands a CPU goes through before it comes back to the first: in a
// step too a kernel's operands have left the caches of a core, though not those that all cores share.
const farApart = 4 << 20

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
	var most int64
	limit := b.o.Memory
	if limit == 0 {
		limit = max(b.r.DeviceMemory/2, 64<<20)
		if b.o.Target == "cpu" {
			limit = min(limit, 1<<30)
		}
	}
	for _, k := range all {
		m := &memory{dev: b.dev, act: act, size: -1}
		k.setup(m)
		if m.used <= limit {
			most = max(most, m.used)
		}
	}
	return newMemory(b.dev, device.DeviceMemory, most, act)
}

// measure is the time of one launch: of batches that are long against the time to wait for
// them, the second shortest, so that neither a disturbance nor a lucky one decides.
func (b *bencher) measure(launch func()) (time.Duration, error) {
	batch := func(n int) (time.Duration, error) {
		start := b.o.Clock()
		for range n {
			launch()
		}
		err := b.dev.Sync()
		return b.o.Clock() - start, err
	}
	if _, err := batch(1); err != nil {
		return 0, err
	}
	first, err := batch(1)
	if err != nil {
		return 0, err
	}
	// A machine that is slow, or that others use, is measured less thoroughly, not for longer.
	batches := 5
	switch gone := time.Since(b.start); {
	case gone > 90*time.Second:
		batches = 2
	case gone > 45*time.Second:
		batches = 3
	}
	n := max(1, min(1000, int(b.o.Each/5/max(first, 1))))
	var times []time.Duration
	for range batches {
		t, err := batch(n)
		if err != nil {
			return 0, err
		}
		times = append(times, t/time.Duration(n))
	}
	slices.Sort(times)
	return times[1], nil
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

// slabs are the passes over whole slabs, on the compute lane.
func (b *bencher) slabs() []kase {
	elems := []int64{1 << 16, 1 << 18, 7 << 20, 32 << 20}
	if b.o.Target == "cuda" {
		elems = []int64{1 << 20, 7 << 20, 200 << 20}
	}
	if b.o.Quick {
		elems = elems[:1]
	}
	var out []kase
	for _, n := range elems {
		out = append(out,
			kase{"norm", op.Cost{FLOPs: 2 * n, Bytes: 4 * n}, op.Shape{}, func(m *memory) func(device.Queue) {
				a := optim.SquaredNormArgs{Grad: m.f32(int(n)), Norm: m.f64(0), Elems: n}
				return func(q device.Queue) { optim.SquaredNorm(q, a) }
			}},
			kase{"accumulate", op.Cost{FLOPs: n, Bytes: 12 * n}, op.Shape{}, func(m *memory) func(device.Queue) {
				a := optim.AccumulateArgs{Dst: m.f32(int(n)), Src: m.f32(int(n)), Elems: n}
				return func(q device.Queue) { optim.Accumulate(q, a) }
			}},
			kase{"update", op.Cost{FLOPs: 14 * n, Bytes: 28 * n}, op.Shape{}, func(m *memory) func(device.Queue) {
				return b.update(m, n)
			}})
	}
	return out
}

// update is an optimizer step on a slab of n parameters that lies in m.
func (b *bencher) update(m *memory, n int64) func(q device.Queue) {
	scalars := make([]float64, plan.NumScalars)
	scalars[plan.ScalarStep], scalars[plan.ScalarLR], scalars[plan.ScalarMaxNorm], scalars[plan.ScalarClip] = 10, 1e-6, 1, 1
	if b.o.DType == tensor.F32 {
		a := optim.AdamWArgs{
			Weight: m.f32(int(n)), Grad: m.f32(int(n)), M: m.f32(int(n)), V: m.f32(int(n)), Scalars: m.f64(scalars...),
			Elems: n, Decay: n, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1,
		}
		return func(q device.Queue) { optim.AdamW(q, a) }
	}
	a := optim.AdamWSplitArgs{
		Hi: m.bytes(2 * n), Lo: m.bytes(2 * n), Grad: m.f32(int(n)), M: m.f32(int(n)), V: m.f32(int(n)), Scalars: m.f64(scalars...),
		Elems: n, Decay: n, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1,
	}
	return func(q device.Queue) { optim.AdamWSplit(q, a) }
}
