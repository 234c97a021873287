package optim

import (
	"math"
	"sync"

	"github.com/megatrain/mtc/runtime/device"
)

// A gradient may cross the link in bf16: whole and in f32 it is rounded on the device (package squares),
// and from then on norm and update are of what was rounded, so that the clip factor is that of the
// gradient that is applied.

// scratch is the elements of a gradient that are widened at once for an update: they stay in a
// core's nearest cache.
const scratch = 1 << 12

var scratches = sync.Pool{New: func() any { return new([scratch]float32) }}

// widen writes bf16 as f32.
func widen(dst []float32, half []uint16) {
	for i, h := range half {
		dst[i] = math.Float32frombits(uint32(h) << 16)
	}
}

// gradient is that of an update, in f32 or in bf16.
type gradient struct {
	f32  []float32
	half []uint16
}

// gradientOf is the gradient of n elements at p.
func gradientOf(c device.CPU, p device.Ptr, n int64, half bool) gradient {
	if half {
		return gradient{half: halves(c, p, n)}
	}
	return gradient{f32: c.F32(p, n)}
}

// each calls f with pieces of [lo, hi) in order and their gradient.
func (g gradient) each(lo, hi int64, f func(lo, hi int64, g []float32)) {
	if g.half == nil {
		if lo < hi {
			f(lo, hi, g.f32[lo:hi])
		}
		return
	}
	wide := scratches.Get().(*[scratch]float32)
	for ; lo < hi; lo += scratch {
		end := min(lo+scratch, hi)
		widen(wide[:], g.half[lo:end])
		f(lo, end, wide[:end-lo])
	}
	scratches.Put(wide)
}
