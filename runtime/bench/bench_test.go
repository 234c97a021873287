package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/device/cpu"
	"github.com/megatrain/mtc/runtime/op"
)

// TestRun: a quick measurement on the CPU finds a positive rate for everything, and every
// kernel that a dense model launches.
func TestRun(t *testing.T) {
	dev := cpu.NewWith(cpu.Options{Threads: 2})
	defer dev.Close()
	var progress strings.Builder
	r, err := Run(dev, Options{Target: "cpu", Quick: true, Folder: t.TempDir(), Progress: &progress, Each: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]float64{
		"launch": r.Launch, "h2d": r.H2D, "d2h": r.D2H, "both": r.Both, "updating": r.Updating,
		"optimizer": r.Optimizer, "copying": r.Copying, "memory": r.Memory, "first touch": r.FirstTouch,
		"disk read": r.DiskRead, "disk write": r.DiskWrite,
	} {
		if !(x > 0) {
			t.Errorf("%s: %v", name, x)
		}
	}
	if len(r.Threads) == 0 || r.Threads[len(r.Threads)-1].Threads != r.Cores {
		t.Errorf("by threads: %+v, of %d cores", r.Threads, r.Cores)
	}
	seen := map[string]bool{}
	for _, k := range r.Kernels {
		seen[k.Name+" "+k.Shape.Form] = true
		if !(k.Seconds > 0) || k.Bytes <= 0 && k.FLOPs <= 0 || k.Shape.Class != op.Streaming && k.Shape.M <= 0 {
			t.Errorf("%+v", k)
		}
	}
	for _, name := range []string{
		"linear.Forward nt", "linear.BackwardInput nn", "linear.BackwardWeight tn", "attention.Forward forward",
		"attention.Backward backward", "rmsnorm.Backward ", "layernorm.Backward ", "rope.Backward ",
		"swiglu.Backward ", "gelu.Forward ", "embed.BackwardWeight ", "crossentropy.Loss ", "update ", "norm ", "accumulate ",
	} {
		if !seen[name] {
			t.Errorf("nothing measured of %s", name)
		}
	}
	if !strings.Contains(progress.String(), "kernels: 0 of") {
		t.Errorf("progress: %q", progress.String())
	}
}

// TestDiskThatTakesNoFile: what was measured of the machine is not lost for a folder that cannot be written.
func TestDiskThatTakesNoFile(t *testing.T) {
	b := &bencher{o: Options{Folder: filepath.Join(t.TempDir(), "nowhere")}, r: &Result{}}
	if err := b.disk(); err != nil || b.r.DiskFault == "" || b.r.DiskRead+b.r.DiskWrite != 0 {
		t.Errorf("%v, %+v", err, b.r)
	}
	b = &bencher{o: Options{Folder: t.TempDir(), Quick: true}, r: &Result{}}
	if err := b.disk(); err != nil || b.r.DiskFault != "" || !(b.r.DiskRead > 0 && b.r.DiskWrite > 0) {
		t.Errorf("%v, %+v", err, b.r)
	}
	if left, err := os.ReadDir(b.o.Folder); err != nil || len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}

// TestSmallMemory: cases that do not fit the memory are left out.
func TestSmallMemory(t *testing.T) {
	dev := cpu.NewWith(cpu.Options{Threads: 1})
	defer dev.Close()
	r, err := Run(dev, Options{Target: "cpu", Quick: true, Memory: 64 << 10, Each: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Kernels) == 0 {
		t.Error("nothing was measured")
	}
	for _, k := range r.Kernels {
		if k.Bytes > 3*64<<10 {
			t.Errorf("%s of %d bytes in 64 KiB", k.Name, k.Bytes)
		}
	}
}

// TestTypical: a round that something disturbed does not count, nor one batch of any, nor does the one
// round that was faster than the others.
func TestTypical(t *testing.T) {
	ms := func(n ...time.Duration) (out []time.Duration) {
		for _, x := range n {
			out = append(out, x*time.Millisecond)
		}
		return out
	}
	for want, rounds := range map[time.Duration][][]time.Duration{
		11: {ms(50, 10, 90, 11, 12)},
		14: {ms(40, 41, 42, 43, 44), ms(12, 12, 50), ms(6, 5, 30)},
		7:  {ms(7)},
		13: {ms(13, 12, 14), ms(14, 10, 19, 17)},
	} {
		if got := typical(rounds...); got != want*time.Millisecond {
			t.Errorf("%v: %v, want %d ms", rounds, got, want)
		}
	}
}

// TestOldOperands: on a CPU what a step comes back to late lies elsewhere for each launch, up to the bytes
// that such a model goes through; what was just made goes round within what is there for it.
func TestOldOperands(t *testing.T) {
	dev := cpu.NewWith(cpu.Options{Threads: 1})
	defer dev.Close()
	m, err := newMemory(dev, device.DeviceMemory, 8<<10, 4)
	if err != nil {
		t.Fatal(err)
	}
	if m.far, err = newMemory(dev, device.DeviceMemory, 1<<20, 4); err != nil {
		t.Fatal(err)
	}
	near, far := map[device.Ptr]bool{}, map[device.Ptr]bool{}
	k := kase{kernel: "none", ring: 64 << 10, setup: func(m *memory) func(device.Queue) {
		a, b := m.acts(256), m.old(1024)
		return func(device.Queue) { near[a], far[b] = true, true }
	}}
	b := &bencher{dev: dev, o: Options{Target: "cpu", Each: 20 * time.Millisecond}, start: time.Now()}
	b.o.Clock = func() time.Duration { return time.Since(b.start) }
	if _, err := b.kernel(k, m, dev.Queue(device.Compute)); err != nil {
		t.Fatal(err)
	}
	if len(near) != 8 || len(far) != 16 {
		t.Errorf("%d places of new operands, %d of old ones, want 8 KiB / 1 KiB and 64 KiB / 4 KiB", len(near), len(far))
	}
}
