package bench

import (
	"strings"
	"testing"
	"time"

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
