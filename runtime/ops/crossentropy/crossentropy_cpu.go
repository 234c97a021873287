package crossentropy

import (
	"fmt"
	"math"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/loops"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/vec"
)

func evalCPU(c device.CPU, a *device.Args) {
	rows, v, pitch := a.I[0], a.I[1], a.I[2]
	logits, targets := c.F32(a.P[0], rows*pitch), c.I32(a.P[1], rows)
	total(c, rows, v, targets, c.F64(a.P[2], 2), func(r, target int64) float64 {
		if target < 0 {
			return 0
		}
		row := logits[r*pitch:][:v]
		if a.F[0] != 0 {
			return cappedLoss(row, target, a.F[0])
		}
		top := vec.Max(row)
		return math.Log(vec.SumExp(row, top)) + float64(top) - float64(row[target])
	})
}

func lossCPU(c device.CPU, a *device.Args) {
	rows, v, pitch := a.I[0], a.I[1], a.I[2]
	logits, targets := c.F32(a.P[0], rows*pitch), c.I32(a.P[1], rows)
	dlogits, scalars := c.F32(a.P[4], rows*pitch), c.F64(a.P[3], plan.NumScalars)
	inv := scalars[plan.ScalarInvTokens]
	total(c, rows, v, targets, c.F64(a.P[2], 2), func(r, target int64) float64 {
		row, d := logits[r*pitch:][:v], dlogits[r*pitch:][:v]
		clear(dlogits[r*pitch+v : (r+1)*pitch])
		if target < 0 {
			clear(d)
			return 0
		}
		if a.F[0] != 0 {
			return cappedGradient(d, row, target, a.F[0], inv)
		}
		top, hit := vec.Max(row), row[target] // before d, which may be the same memory
		sum := expSub(d, row, top)
		vec.Scale(d, d, float32(inv/sum))
		d[target] -= float32(inv)
		return math.Log(sum) + float64(top) - float64(hit)
	})
}

// block is how many terms are summed in float32 before they join a float64.
const block = 2048

// expSub sets dst = exp(x - top) and returns its sum.
func expSub(dst, x []float32, top float32) (sum float64) {
	for i := 0; i < len(x); i += block {
		j := min(i+block, len(x))
		sum += float64(vec.ExpSub(dst[i:j], x[i:j], top))
	}
	return sum
}

// total calls row for every row with its target, or with a negative one when the row is
// ignored, and adds the losses and the number of targets to partials, in row order: the
// same bits however the rows are cut into chunks or over threads.
func total(c device.CPU, rows, v int64, targets []int32, partials []float64, row func(r, target int64) float64) {
	losses := make([]float64, rows)
	loops.Rows(c, rows, v, func(lo, hi int64) {
		for r := lo; r < hi; r++ {
			t := int64(targets[r])
			if t >= v {
				panic(fmt.Errorf("target %d is outside of %d logits", t, v))
			}
			losses[r] = row(r, t)
		}
	})
	for r, t := range targets {
		if t >= 0 {
			partials[0] += losses[r]
			partials[1]++
		}
	}
}
