package bench

import (
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/device/cpu"
	"github.com/megatrain/mtc/runtime/optim"
)

// host measures the optimizer by threads, a pass over memory, and fresh memory.
func (b *bencher) host() error {
	b.progress("the optimizer by threads, fresh memory")
	cores := runtime.GOMAXPROCS(0)
	elems := int64(32 << 20) // 512 MiB: in no cache
	if b.r.HostMemory > 0 && b.r.HostMemory < 8<<30 {
		elems = 8 << 20
	}
	if b.o.Quick {
		elems = 1 << 16
	}
	for n := 1; ; n = min(2*n, cores) {
		rate, memory, err := b.hostRates(n, elems)
		if err != nil {
			return err
		}
		b.r.Threads = append(b.r.Threads, Threads{n, rate})
		if n == cores {
			b.r.Memory = memory
			break
		}
	}
	b.r.FirstTouch = firstTouch(16*elems, cores)
	return nil
}

// hostRates are bytes/s of an update and of an accumulation on so many threads.
func (b *bencher) hostRates(threads int, elems int64) (update, memory float64, err error) {
	dev := cpu.NewWith(cpu.Options{Threads: threads})
	defer dev.Close()
	h := &bencher{dev: dev, o: b.o, r: b.r, start: b.start}
	m, err := newMemory(dev, device.HostMemory, 16*elems+8*1024, b.o.DType.Size())
	if err != nil {
		return 0, 0, err
	}
	q := dev.Queue(device.Host)
	f := h.update(m, elems)
	t, err := h.measure(func() { f(q) })
	if err != nil {
		return 0, 0, err
	}
	m.reset()
	a := optim.AccumulateArgs{Dst: m.f32(int(elems)), Src: m.f32(int(elems)), Elems: elems}
	u, err := h.measure(func() { optim.Accumulate(q, a) })
	if err != nil {
		return 0, 0, err
	}
	return float64(28*elems) / t.Seconds(), float64(12*elems) / u.Seconds(), nil
}

// firstTouch is how fast the system hands out memory.
func firstTouch(bytes int64, threads int) float64 {
	start := time.Now()
	b := make([]byte, bytes)
	var wait sync.WaitGroup
	part := (bytes + int64(threads) - 1) / int64(threads)
	for t := range int64(threads) {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for i := t * part; i < min(bytes, (t+1)*part); i += 4096 {
				b[i] = 1
			}
		}()
	}
	wait.Wait()
	rate := float64(bytes) / time.Since(start).Seconds()
	runtime.KeepAlive(b)
	return rate
}

// disk measures the disk. One that takes no file is not measured: all else was by then.
func (b *bencher) disk() error {
	if b.o.Folder == "" {
		return nil
	}
	b.progress("disk")
	if err := b.file(); err != nil {
		b.r.DiskWrite, b.r.DiskRead, b.r.DiskFault = 0, 0, err.Error()
		b.progress("the disk is not measured: %v", err)
	}
	return nil
}

// file writes a file and reads it again.
func (b *bencher) file() error {
	f, err := os.CreateTemp(b.o.Folder, ".mtc-bench-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	_ = os.Remove(f.Name()) // it is gone with the process, where the system lets go of names
	text := make([]byte, 8<<20)
	for i := range text {
		text[i] = byte(i * 7 >> 3)
	}
	blocks := 24
	if b.o.Quick {
		blocks = 1
	}
	start := time.Now()
	for range blocks {
		if _, err := f.Write(text); err != nil {
			return err
		}
	}
	if err := f.Sync(); err != nil {
		return err
	}
	bytes := float64(blocks) * float64(len(text))
	b.r.DiskWrite = bytes / time.Since(start).Seconds()
	forget(f) // else the page cache is measured
	start = time.Now()
	for i := range blocks {
		if _, err := f.ReadAt(text, int64(i)*int64(len(text))); err != nil {
			return err
		}
	}
	b.r.DiskRead = bytes / time.Since(start).Seconds()
	return nil
}
