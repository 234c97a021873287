//go:build cuda

// Command opbench times the CUDA kernels of the ops and of the optimizer at the sizes of a
// training step of Qwen2.5-7B, and prints for each the bytes it must move over its time, and
// that as a share of the device's copy bandwidth and of the rate of a copy of as many bytes, which
// begins, ends and meets the caches as the kernel does. Last are all kernels, the worst first:
//
//	go build -tags cuda -o opbench ./tools/cuda/opbench && ./opbench [-only EXPRESSION] [-f32]
//
// Matrix products are told in TFLOP/s instead; those of GPT-2 124M follow, with its other kernels.
//
// With -moe it times one mixture of experts instead, forward and backward, as a whole and by parts.
// With -big it checks instead that offsets beyond 2^31 elements are right: the last rows of a
// launch over more than that have the bits which they have alone. -emu runs on the emulation of
// CUDA, at sizes given by flags, to try the program itself.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/device/cuda"
	"github.com/megatrain/mtc/runtime/device/cuda/emu"
)

func main() {
	s := sizes{}
	flag.IntVar(&s.rows, "rows", 8192, "rows of a micro-batch")
	flag.IntVar(&s.seq, "seq", 1024, "rows of a sequence")
	flag.IntVar(&s.d, "d", 3584, "width of the model, a multiple of 128")
	flag.IntVar(&s.f, "f", 18944, "width of the feed-forward part")
	flag.IntVar(&s.v, "v", 152064, "size of the vocabulary")
	flag.IntVar(&s.chunk, "chunk", 2048, "rows of a chunk of logits")
	flag.Int64Var(&s.slab, "slab", 233_000_000, "parameters of a layer, even")
	only := flag.String("only", "", "kernels whose name has what this expression finds; \"memory\": all but products")
	f32 := flag.Bool("f32", false, "activations and weights in f32")
	big := flag.Bool("big", false, "check offsets beyond 2^31")
	mixture := flag.Bool("moe", false, "time a mixture of experts")
	emulate := flag.Bool("emu", false, "run on the emulation")
	memory := flag.Int64("memory", 64<<30, "bytes of device memory to use")
	flag.Parse()
	if err := run(s, *only, *f32, *big, *mixture, *emulate, *memory); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// sizes of the model.
type sizes struct {
	rows, seq, d, f, v, chunk int
	slab                      int64
}

func run(s sizes, only string, f32, big, mixture, emulate bool, memory int64) error {
	dev, err := open(f32, emulate)
	if err != nil {
		return err
	}
	defer dev.Close()
	m, err := newMemory(dev, f32, memory)
	if err != nil {
		return err
	}
	if big {
		return checkBig(m, only)
	}
	r := &relay{to: m.queue}
	m.queue = r
	if mixture {
		fmt.Println(dev.Name())
		return moeLayer(m, r, emulate)
	}
	chosen, err := choose(append(benches(s, m), small(m, emulate)...), only)
	if err != nil {
		return err
	}
	if err := warm(m, r, chosen); err != nil {
		return err
	}
	t := newTable(dev, m, emulate)
	fmt.Printf("%s\n%-44s %9s %9s %7s %7s\n", dev.Name(), "kernel", "us", "GB/s", "of copy", "of same")
	for _, b := range chosen {
		m.reset()
		launch := b.setup()
		each, err := measure(dev, launch, emulate, b.name != copyName)
		if err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		if b.flops != 0 {
			fmt.Printf("%-44s %9.1f %9.1f TFLOP/s\n", b.name, each.Seconds()*1e6, b.flops/each.Seconds()/1e12)
			continue
		}
		if err := t.add(b, each); err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
	}
	t.worst()
	return nil
}

// choose keeps the copy, and the benches whose name the expression finds; "memory" are all that
// are no products.
func choose(all []bench, only string) ([]bench, error) {
	if only == "memory" {
		return slices.DeleteFunc(all, func(b bench) bool { return b.flops != 0 }), nil
	}
	name, err := regexp.Compile(only)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	return slices.DeleteFunc(all, func(b bench) bool { return b.name != copyName && !name.MatchString(b.name) }), nil
}

func open(f32, emulate bool) (device.Device, error) {
	if emulate {
		return emu.New(f32)
	}
	if os.Getenv("MTC_CUDA_GRAPHS") == "" {
		if err := os.Setenv("MTC_CUDA_GRAPHS", "1"); err != nil {
			return nil, err
		}
	}
	return cuda.New(cuda.Options{F32: f32})
}

// kept is a batch of launches that the device keeps together and is given all at once: alone, short
// ones would end before the next is submitted. nil: it does not keep them.
func kept(dev device.Device, launch func(set int)) func(n int) (time.Duration, error) {
	const together = 24
	k, ok := dev.Queue(device.Compute).(device.Keeper)
	if !ok || !k.Keeps() {
		return nil
	}
	again := k.Keep(func() {
		for i := range together {
			launch(i)
		}
	})
	if again == nil {
		return nil
	}
	return func(n int) (time.Duration, error) {
		rounds := (n + together - 1) / together
		start := time.Now()
		for range rounds {
			again()
		}
		err := dev.Sync()
		return time.Since(start) * time.Duration(n) / time.Duration(rounds*together), err
	}
}

// measure is the time of one launch: the median of batches that are long against the time to
// wait for them. set counts launches, so that they can take turns over memory.
func measure(dev device.Device, launch func(set int), once, keep bool) (time.Duration, error) {
	batch := func(n int) (time.Duration, error) {
		start := time.Now()
		for i := range n {
			launch(i)
		}
		err := dev.Sync()
		return time.Since(start), err
	}
	if once {
		return batch(1)
	}
	if _, err := batch(4); err != nil {
		return 0, err
	}
	if keep {
		if together := kept(dev, launch); together != nil {
			batch = together
		}
	}
	first, err := batch(8)
	if err != nil {
		return 0, err
	}
	n := max(8, int(15*time.Millisecond*8/max(first, 1)))
	var times []time.Duration
	for range 5 {
		t, err := batch(n)
		if err != nil {
			return 0, err
		}
		times = append(times, t/time.Duration(n))
	}
	slices.Sort(times)
	return times[2], nil
}
