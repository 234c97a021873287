//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/fault"
)

// life is what a program does with a device, from its opening to its end: arenas, of which one is copied through
// rings, kernels and a product made ahead, copies large and small, lanes that wait for each other, a graph, a clock.
// It gives the values at the end.
func life() (out []float32, err error) {
	const n, some = largeCopy / 4, 1 << 10 // elements: a copy that goes through the locked buffers, and what kernels take of it
	contexts.of = nil
	d, err := New(Options{F32: true, Threads: 1})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	d.LimitPinned(1 << 20)
	var p [4]device.Ptr
	for i, m := range []device.Memory{device.DeviceMemory, device.DeviceMemory, device.HostMemory, device.HostMemory} {
		if p[i], err = d.Alloc(m, 4*n); err != nil {
			return nil, err
		}
	}
	x, y, host, back := p[0], p[1], p[2], p[3]
	const side = 8
	product := &device.Kernel{Name: "test.product", Matmul: func(*device.Args) device.Matmul {
		return device.Matmul{M: side, N: side, K: side, A: x, B: x, TransB: true, D: y, DA: device.GradDtype, DB: device.GradDtype, DD: device.GradDtype}
	}}
	if err := d.Warm(func(q device.Queue) {
		q.Launch(add, addArgs(x, x, some, 1))
		q.Launch(product, device.Args{})
	}); err != nil {
		return nil, err
	}
	if err := d.Write(x, make([]byte, 4*n)); err != nil {
		return nil, err
	}
	if err := d.Settle(); err != nil {
		return nil, err
	}
	marks, err := d.Marks([]device.Lane{device.Compute, device.Host})
	if err != nil {
		return nil, err
	}
	defer marks.Close()
	comp, h2d, d2h, opt := d.Queue(device.Compute), d.Queue(device.H2D), d.Queue(device.D2H), d.Queue(device.Host)
	in, ran, sent, updated := d.NewEvent(), d.NewEvent(), d.NewEvent(), d.NewEvent()
	launches := func() {
		for range 3 {
			comp.Launch(add, addArgs(x, x, some, 1))
		}
	}
	var again func() bool
	for round := range 4 {
		comp.(device.Tagger).Tag(round)
		h2d.Wait(updated)
		h2d.Copy(x, host, 4*n)
		h2d.Record(in)
		comp.Wait(in)
		if round == 1 {
			again = comp.(device.Keeper).Keep(launches)
		}
		if again == nil || !again() {
			launches()
		}
		comp.Launch(product, device.Args{})
		comp.Record(ran)
		d2h.Wait(ran)
		d2h.Copy(back, x, 4*n)
		d2h.Record(sent)
		opt.Wait(sent)
		opt.Launch(add, addArgs(back, host, some, 0))
		opt.Record(updated)
		marks.Set(round % 2)
		if err := updated.Sync(); err != nil {
			return nil, err
		}
	}
	if err := d.Sync(); err != nil {
		return nil, err
	}
	if _, err := marks.Read(); err != nil {
		return nil, err
	}
	b := make([]byte, 4*n)
	for _, from := range []device.Ptr{x, y} {
		if err := d.Read(b, from); err != nil {
			return nil, err
		}
		out = append(out, asSlice[float32](b, n)[0])
	}
	return append(out, asSlice[float32](d.View(host, 4), 1)[0]), nil
}

// TestEveryCallFails: whichever call of the driver or of cuBLASLt fails, and however, a program comes to its end,
// with the right results or with a fault of the machine that says what to do.
func TestEveryCallFails(t *testing.T) {
	if !fake() {
		t.Skip("the stand-in only")
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("MTC_CUDA_TUNE", "0")
	want, err := life() // kernels are in the cache from now on
	if err != nil {
		t.Fatal(err)
	}
	calls := filepath.Join(t.TempDir(), "calls")
	t.Setenv("MTC_FAKE_CALLS", calls)
	if _, err := life(); err != nil {
		t.Fatal(err)
	}
	os.Unsetenv("MTC_FAKE_CALLS")
	text, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	count, names := map[string]int{}, []string{}
	for _, name := range strings.Fields(string(text)) {
		if count[name]++; count[name] == 1 {
			names = append(names, name)
		}
	}
	if len(names) < 40 {
		t.Errorf("only %d calls are made: %v", len(names), names)
	}
	for _, name := range names {
		codes := []int{1, codeOutOfMemory, 719, 999} // wrong argument, no memory, a kernel that failed, anything
		if strings.HasPrefix(name, "cublasLt") {
			codes = []int{1, blasNoMemory, 13, notSupported}
		}
		if name == "stream" {
			codes = []int{700, 719} // the GPU fails while it runs
		}
		numbers := map[int]bool{}
		for _, n := range []int{1, 2, count[name] / 2, count[name]} {
			if n > 0 && n <= count[name] && !numbers[n] {
				numbers[n] = true
				for i, code := range codes {
					if n > 1 && i%3 == 0 {
						continue
					}
					fails(t, fmt.Sprintf("%s:%d:%d", name, n, code), want)
				}
			}
		}
	}
}

// fails runs a life in which a call fails.
func fails(t *testing.T, spec string, want []float32) {
	t.Helper()
	t.Setenv("MTC_FAKE_FAIL", spec)
	got, err := life()
	var f *fault.Error
	var m *device.MemoryError
	switch {
	case err == nil && fmt.Sprint(got) != fmt.Sprint(want):
		t.Errorf("%s: no error, and %v in the place of %v", spec, got, want)
	case err == nil || errors.As(err, &m):
	case !errors.As(err, &f) || f.ExitCode() != 3 || f.Hint == "":
		t.Errorf("%s: %v", spec, err)
	}
}
