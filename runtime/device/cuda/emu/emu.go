//go:build cuda

// Package emu is a device that runs the CUDA sources of kernels on the CPU: a host C++ compiler
// builds them against emu.h, and each thread of a block is a fiber. Tests use it to check what a
// kernel computes on a machine without a GPU: sizes, offsets, barriers, reductions, rounding. It
// is slow, says nothing of speed, and knows no PTX beyond that of mtc.cuh.
//
// It is stricter than a GPU where that finds faults: scratch memory starts as NaN, an access to a
// vector that is not aligned stops the process, lanes that have returned must not be waited for,
// and with Reverse threads and blocks run in the opposite order.
package emu

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct { uint64_t p[20]; int64_t i[16]; float f[8]; uint64_t work; } emu_args;
typedef const char* (*emu_run)(const emu_args*, unsigned x, unsigned y, unsigned z, int threads, int back);

static void* emu_open(const char* path, const char** why) {
	void* h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!h) *why = dlerror();
	return h;
}
static const char* emu_call(void* f, const emu_args* a, unsigned x, unsigned y, unsigned z, int threads, int back) {
	return ((emu_run)f)(a, x, y, z, threads, back);
}
*/
import "C"

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"sync"
	"unsafe"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/device/cpu"
)

// Device runs sources at once, in the caller's goroutine. Memory is that of a CPU device.
type Device struct {
	*cpu.Device
	F32 bool
	// Reverse runs the last thread and block first. Results must not depend on it.
	Reverse bool
	err     error
}

// New makes a device. The error says that there is no compiler.
func New(f32 bool) (*Device, error) {
	if _, err := exec.LookPath(compiler()); err != nil {
		return nil, fmt.Errorf("the emulation of CUDA needs a C++ compiler: %w", err)
	}
	return &Device{Device: cpu.NewWith(cpu.Options{Threads: 1}), F32: f32}, nil
}

// Name says what it is.
func (d *Device) Name() string { return "emulation of CUDA" }

// Queue returns the one queue.
func (d *Device) Queue(device.Lane) device.Queue { return queue{d} }

// Sync returns the first failure since the last call.
func (d *Device) Sync() error {
	err := d.err
	d.err = nil
	return err
}

type queue struct{ d *Device }

// Launch runs a kernel.
func (q queue) Launch(k *device.Kernel, a device.Args) {
	if q.d.err != nil {
		return
	}
	if err := q.d.run(k, &a); err != nil {
		q.d.err = fmt.Errorf("%s: %w", k.Name, err)
	}
}

// Copy copies at once.
func (q queue) Copy(dst, src device.Ptr, n int64) { copy(q.d.View(dst, n), q.d.View(src, n)) }

// Record does nothing: all before it is done.
func (q queue) Record(device.Event) {}

// Wait does nothing.
func (q queue) Wait(device.Event) {}

// ptx is in the text of kernels that use it, or the kit's headers of it.
var ptx = regexp.MustCompile(`\basm\b|\bMTC_MMA\b|\bMTC_HOPPER\b`)

func (d *Device) run(k *device.Kernel, a *device.Args) error {
	if k.Matmul != nil {
		m := k.Matmul(a)
		if err := d.matmul(m.Plain()); err != nil || m.Epilogue == device.NoEpilogue {
			return err
		}
	}
	if k.CUDA == nil {
		return errors.New("no CUDA kernel")
	}
	// A kernel in PTX needs a GPU; what is picked without shared memory does not.
	first := k.CUDA.For(device.Target{F32: d.F32, Shared: maxShared}, a)
	if ptx.MatchString(first.Text) {
		first = k.CUDA.For(device.Target{F32: d.F32}, a)
	}
	var room int64
	for s := first; s != nil; s = s.Next {
		if s.Work != nil {
			room = max(room, s.Work(a))
		}
	}
	var args C.emu_args
	for i, p := range a.P {
		args.p[i] = C.uint64_t(d.address(p))
	}
	for i, n := range a.I {
		args.i[i] = C.int64_t(n)
	}
	for i, f := range a.F {
		args.f[i] = C.float(f)
	}
	const guard = 256
	work := C.malloc(C.size_t(room + guard))
	defer C.free(work)
	scratch := unsafe.Slice((*byte)(work), room+guard)
	for i := range scratch {
		scratch[i] = 0xff
	}
	args.work = C.uint64_t(uintptr(work))
	for s := first; s != nil; s = s.Next {
		var spec [4]int64
		if s.Spec != nil {
			spec = s.Spec(a)
		}
		f, err := d.function(s, spec)
		if err != nil {
			return err
		}
		g := s.Grid(a)
		if g.Shared > maxShared || g.X < 1 || g.Y < 1 || g.Y > 65535 || g.Z < 1 || g.Z > 65535 || g.Threads > 1024 {
			return fmt.Errorf("%s has the grid %+v, which no GPU takes", s.Func, g)
		}
		back := C.int(0)
		if d.Reverse {
			back = 1
		}
		if msg := C.emu_call(f, &args, C.uint(g.X), C.uint(g.Y), C.uint(g.Z), C.int(g.Threads), back); msg != nil {
			return fmt.Errorf("%s: %s", s.Func, C.GoString(msg))
		}
	}
	for _, x := range scratch[room:] {
		if x != 0xff {
			return errors.New("it wrote behind its scratch memory")
		}
	}
	return nil
}

func (d *Device) address(p device.Ptr) uintptr {
	if p.Nil() {
		return 0
	}
	return uintptr(unsafe.Pointer(unsafe.SliceData(d.View(p, 1))))
}

// maxShared is the dynamic shared memory of a block, as Hopper has it; emu.h holds it.
const maxShared = 227 << 10

// modules are the libraries by the hash of their text.
var modules struct {
	sync.Mutex
	open map[string]unsafe.Pointer
}

func (d *Device) function(s *device.Source, spec [4]int64) (unsafe.Pointer, error) {
	modules.Lock()
	defer modules.Unlock()
	text, err := Text(s.Text, d.F32, spec)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(text))
	key := hex.EncodeToString(sum[:])
	if modules.open == nil {
		modules.open = map[string]unsafe.Pointer{}
	}
	h := modules.open[key]
	if h == nil {
		path, err := Build(key, text)
		if err != nil {
			return nil, err
		}
		name := C.CString(path)
		defer C.free(unsafe.Pointer(name))
		var why *C.char
		if h = C.emu_open(name, &why); h == nil {
			return nil, errors.New(C.GoString(why))
		}
		modules.open[key] = h
	}
	sym := C.CString("run_" + s.Func)
	defer C.free(unsafe.Pointer(sym))
	f := C.dlsym(h, sym)
	if f == nil {
		return nil, fmt.Errorf("the text has no kernel %s", s.Func)
	}
	return f, nil
}
