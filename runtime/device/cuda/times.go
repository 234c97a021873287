//go:build cuda

package cuda

import (
	"time"

	"github.com/megatrain/mtc/runtime/device"
)

// times are how long the parts of the start-up took.
type times struct{ open, memory, kernels, products time.Duration }

var _ device.Starter = (*Device)(nil)

// Phases implements device.Starter: opening the GPU, taking its memory and choosing algorithms of
// products; kernels, and touching and locking host memory, go on beside the others.
func (d *Device) Phases() []device.Phase {
	out := []device.Phase{
		{Name: "GPU", Time: d.times.open},
		{Name: "memory", Time: d.times.memory},
		{Name: "products", Time: d.times.products},
		{Name: "kernels", Time: d.times.kernels, Beside: true},
	}
	if b := d.backing; !b.ended.IsZero() {
		out = append(out, device.Phase{Name: "pin", Time: b.ended.Sub(b.begun), Beside: true})
	}
	return out
}
