//go:build cuda

package bench

import (
	"testing"
	"time"

	"github.com/megatrain/mtc/runtime/device/cuda/emu"
)

// TestEmulation: the cases launch what a GPU can run. In bf16 attention needs tensor cores,
// which the emulation has not.
func TestEmulation(t *testing.T) {
	dev, err := emu.New(true)
	if err != nil {
		t.Skip(err)
	}
	defer dev.Close()
	r, err := Run(dev, Options{
		Target: "cuda", Quick: true, Each: time.Millisecond, Memory: 64 << 20,
		sizes: []sizes{{1, 32, 64, 64, 96, 2, 1, 32}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Kernels) < 20 || !(r.Both > 0) || !(r.Copying > 0) {
		t.Errorf("%d kernels, copies %v", len(r.Kernels), r.Both)
	}
}
