package crossentropy

import (
	"math"

	"github.com/megatrain/mtc/runtime/ops/internal/loops"
	"github.com/megatrain/mtc/runtime/vec"
)

// cappedLoss is the loss of a row whose logits are softly capped, block by block.
func cappedLoss(row []float32, target int64, limit float32) float64 {
	scratch := loops.Floats(block)
	defer scratch.Free()
	z := scratch.F
	top := float32(math.Inf(-1))
	for i := 0; i < len(row); i += block {
		x := row[i:min(i+block, len(row))]
		vec.Softcap(z[:len(x)], x, limit)
		top = max(top, vec.Max(z[:len(x)]))
	}
	sum, hit := 0.0, float32(0)
	for i := 0; i < len(row); i += block {
		x := row[i:min(i+block, len(row))]
		vec.Softcap(z[:len(x)], x, limit)
		if at := int(target) - i; at >= 0 && at < len(x) {
			hit = z[at]
		}
		sum += float64(vec.ExpSub(z[:len(x)], z[:len(x)], top))
	}
	return math.Log(sum) + float64(top) - float64(hit)
}

// cappedGradient also sets d, which may be the row, to the gradient of the row: that of the capped logits z
// times 1 - (z / limit)^2. d holds z between.
func cappedGradient(d, row []float32, target int64, limit float32, inv float64) float64 {
	vec.Softcap(d, row, limit)
	scratch := loops.Floats(block)
	defer scratch.Free()
	e := scratch.F
	top, hit, sum := vec.Max(d), d[target], 0.0
	for i := 0; i < len(d); i += block {
		z := d[i:min(i+block, len(d))]
		sum += float64(vec.ExpSub(e[:len(z)], z, top))
	}
	s := float32(-1 / (float64(limit) * float64(limit)))
	for i := 0; i < len(d); i += block {
		z := d[i:min(i+block, len(d))]
		dz := e[:len(z)]
		vec.ExpSub(dz, z, top)
		vec.Scale(dz, dz, float32(inv/sum))
		if at := int(target) - i; at >= 0 && at < len(z) {
			dz[at] -= float32(inv)
		}
		vec.MulScale(z, z, z, s)
		vec.MulAdd(z, dz, z, dz)
	}
	return math.Log(sum) + float64(top) - float64(hit)
}
