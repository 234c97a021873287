//go:build unix

// Command bench times this project's CPU kernels for compare.py. It reads one case a line from
// standard input, runs it once, and prints the seconds it took, by the clock and of processor
// time; so the other side can take turns and both see the same machine. Cases:
//
//	gemm NT|NN|TN m n k        linear's forward, input gradient, weight gradient
//	attention fwd|bwd b t h d  causal, h heads of d elements
//	adamw n                    one update of n parameters
//	copy n                     n floats from one array to another
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/device/cpu"
	"github.com/megatrain/mtc/runtime/gemm"
	"github.com/megatrain/mtc/runtime/ops/attention"
	"github.com/megatrain/mtc/runtime/optim"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/vec"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	threads, err := strconv.Atoi(os.Args[1])
	if err != nil {
		return fmt.Errorf("the argument is a number of threads: %w", err)
	}
	d := cpu.NewWith(cpu.Options{Threads: threads})
	defer d.Close()
	fmt.Println(vec.Active(), threads)
	cases := map[string]func() error{}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		line := in.Text()
		if cases[line] == nil {
			clear(cases) // one case's memory at a time
			if cases[line], err = prepare(d, strings.Fields(line)); err != nil {
				return err
			}
		}
		start, used := time.Now(), processor()
		if err := cases[line](); err != nil {
			return err
		}
		fmt.Println(time.Since(start).Seconds(), processor()-used)
	}
	return in.Err()
}

// processor is the seconds of processor time that this process has used.
func processor() float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err) // cannot fail for oneself
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// prepare makes a case's operands; the function it returns runs the case once.
func prepare(d *cpu.Device, words []string) (func() error, error) {
	bad := fmt.Errorf("unknown case %q", words)
	if len(words) < 2 {
		return nil, bad
	}
	kind, mode, rest := words[0], "", words[1:]
	if kind == "gemm" || kind == "attention" {
		mode, rest = words[1], words[2:]
	}
	var n [4]int
	for i, w := range rest {
		v, err := strconv.Atoi(w)
		if err != nil || i >= len(n) {
			return nil, bad
		}
		n[i] = v
	}
	switch kind {
	case "gemm":
		return multiply(d, mode, n[0], n[1], n[2]), nil
	case "attention":
		return attend(d, mode == "bwd", n[0], n[1], n[2], n[3])
	case "adamw":
		return update(d, n[0])
	case "copy":
		x, y := filled(n[0]), filled(n[0])
		return func() error {
			d.Parallel(int64(n[0]), 1<<16, func(lo, hi int64) { copy(y[lo:hi], x[lo:hi]) })
			return nil
		}, nil
	}
	return nil, bad
}

func filled(n int) []float32 {
	s := make([]float32, n)
	for i := range s {
		s[i] = float32(i%97)/97 - 0.5
	}
	return s
}

func multiply(d *cpu.Device, form string, m, n, k int) func() error {
	a, b, c := filled(m*k), filled(n*k), filled(m*n)
	return func() error {
		switch form {
		case "NT":
			gemm.NT(d, m, n, k, c, a, b, nil, nil)
		case "NN":
			gemm.NN(d, m, n, k, c, a, b, nil)
		case "TN":
			gemm.TN(d, m, n, k, c, a, b, nil)
		default:
			return fmt.Errorf("unknown form %q", form)
		}
		return nil
	}
}

// arena puts n filled floats into device memory.
func arena(d *cpu.Device, n int) (device.Ptr, error) {
	p, err := d.Alloc(device.DeviceMemory, int64(4*n))
	if err != nil {
		return p, err
	}
	copy(unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(d.View(p, int64(4*n))))), n), filled(n))
	return p, nil
}

func attend(d *cpu.Device, backward bool, b, t, h, hd int) (func() error, error) {
	var p [10]device.Ptr
	for i := range p {
		var err error
		if p[i], err = arena(d, b*t*h*hd); err != nil {
			return nil, err
		}
	}
	q := d.Queue(device.Compute)
	f := attention.ForwardArgs{Q: p[0], K: p[1], V: p[2], Y: p[3], Lse: p[4],
		Batch: b, Seq: t, Heads: h, KV: h, HD: hd, Causal: true, Scale: 0.125}
	attention.Forward(q, f)
	return func() error {
		if backward {
			attention.Backward(q, attention.BackwardArgs{Q: p[0], K: p[1], V: p[2], Y: p[3], Lse: p[4], DY: p[5],
				DQ: p[6], DK: p[7], DV: p[8], Batch: b, Seq: t, Heads: h, KV: h, HD: hd, Causal: true, Scale: 0.125})
		} else {
			attention.Forward(q, f)
		}
		return d.Sync()
	}, nil
}

func update(d *cpu.Device, n int) (func() error, error) {
	var p [4]device.Ptr
	for i := range p {
		var err error
		if p[i], err = arena(d, n); err != nil {
			return nil, err
		}
	}
	v := unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(d.View(p[3], int64(4*n))))), n)
	for i := range v {
		v[i] *= v[i]
	}
	scalars, err := d.Alloc(device.DeviceMemory, 8*plan.NumScalars)
	if err != nil {
		return nil, err
	}
	s := unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(d.View(scalars, 8*plan.NumScalars)))), plan.NumScalars)
	s[plan.ScalarStep], s[plan.ScalarLR], s[plan.ScalarMaxNorm], s[plan.ScalarClip] = 10, 1e-4, 1, 0.5
	q := d.Queue(device.Compute)
	return func() error {
		optim.AdamW(q, optim.AdamWArgs{Weight: p[0], Grad: p[1], M: p[2], V: p[3], Scalars: scalars,
			Elems: int64(n), Decay: int64(n), Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1})
		return d.Sync()
	}, nil
}
