//go:build cuda

package cuda

import (
	"runtime"
	"sync"
	"time"

	"github.com/megatrain/mtc/runtime/device"
)

// notes is a queue that takes note of launches. Arguments are those of the real launches, so
// what depends on them (constants, scratch, matrix products) comes out the same.
type notes struct {
	stream *stream
	seen   map[moduleKey]bool
	keys   []moduleKey
	names  []string // of the kernel that asked for a key first
	room   int64
	calls  []noted
	known  map[notedKey]bool

	products []productCall
}

// productCall is a launch of a matrix product.
type productCall struct {
	kernel *device.Kernel
	args   device.Args
}

// noted is a function that some launch needs.
type noted struct {
	kernel *device.Kernel
	source *device.Source
	args   device.Args
	shared int32
}

type notedKey struct {
	source *device.Source
	spec   [4]int64
	shared int32
}

// Warm implements device.Warmer: beside the caller kernels are compiled on all cores and loaded, and
// cuBLASLt is opened. Settle waits for that, takes scratch memory and chooses the algorithms of matrix
// products, by time, when nothing else runs any more.
func (d *Device) Warm(run func(q device.Queue)) error {
	n := &notes{stream: d.streams[device.Compute], seen: map[moduleKey]bool{}, known: map[notedKey]bool{}}
	run(n)
	if err := d.warmed(); err != nil {
		return err
	}
	beside := make(chan error, 1)
	var took time.Duration
	go func() {
		began := time.Now()
		err := n.ready()
		took = time.Since(began)
		beside <- err
	}()
	d.warmed = sync.OnceValue(func() error {
		err := <-beside
		d.times.kernels += took
		began := time.Now()
		defer func() { d.times.products += time.Since(began) }()
		if err == nil {
			err = n.stream.reserve(n.room)
		}
		if err == nil {
			err = n.stream.settle(n.products)
		}
		return err
	})
	d.unsettled.Store(true)
	return nil
}

// ready makes the functions of the launches that were noted, and opens cuBLASLt for their products.
func (n *notes) ready() error {
	d := n.stream.dev
	if err := d.compileAll(n); err != nil {
		return err
	}
	for i := range n.calls {
		c := &n.calls[i]
		if _, err := d.kernels.get(d, c.kernel, c.source, &c.args, c.shared); err != nil {
			return err
		}
	}
	if len(n.products) == 0 {
		return nil
	}
	_, err := d.blas()
	return err
}

// compileAll makes the modules that were noted.
func (d *Device) compileAll(n *notes) error {
	codes, errs := make([]machineCode, len(n.keys)), make([]error, len(n.keys))
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(len(n.keys), runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := range next {
				codes[i], errs[i] = d.compile(n.names[i], n.keys[i])
			}
		})
	}
	for i := range n.keys {
		next <- i
	}
	close(next)
	wg.Wait()
	d.kernels.mu.Lock()
	defer d.kernels.mu.Unlock()
	for i, key := range n.keys {
		if errs[i] != nil {
			return errs[i]
		}
		if _, ok := d.kernels.modules[key]; ok {
			continue
		}
		if _, err := d.kernels.add(d, n.names[i], key, codes[i]); err != nil {
			return err
		}
	}
	return nil
}

// Launch takes note.
func (n *notes) Launch(k *device.Kernel, a device.Args) {
	if k.Matmul != nil {
		n.products = append(n.products, productCall{k, a})
		if k.CUDA == nil {
			return
		}
	}
	for src := k.CUDA.For(n.stream.dev.target, &a); src != nil && src.Grid != nil; src = src.Next { // a kernel without is refused when it is launched
		g := src.Grid(&a)
		if src.Work != nil {
			n.room = max(n.room, src.Work(&a))
		}
		key := moduleKey{src.Text, specOf(src, &a)}
		if !n.seen[key] {
			n.seen[key] = true
			n.keys, n.names = append(n.keys, key), append(n.names, k.Name)
		}
		if call := (notedKey{src, key.spec, g.Shared}); !n.known[call] {
			n.known[call] = true
			n.calls = append(n.calls, noted{k, src, a, g.Shared})
		}
	}
}

// Copy, Record and Wait do nothing.
func (n *notes) Copy(dst, src device.Ptr, bytes int64) {}

// Record does nothing.
func (n *notes) Record(device.Event) {}

// Wait does nothing.
func (n *notes) Wait(device.Event) {}
