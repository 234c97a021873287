package checkpoint

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/checkpoint/safetensors"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/plan"
)

// TestRoutersAreFinite: a state that no router ever comes out of is refused, whatever its checksum.
func TestRoutersAreFinite(t *testing.T) {
	p := &plan.Plan{Routers: []plan.Router{{Name: "layer[0].moe", Kept: []plan.RouterPart{
		{Name: "threshold", Elems: 2, Bytes: 4}, {Name: "mean", Off: 8, Elems: 1, Bytes: 8},
	}}}}
	for _, c := range []struct {
		threshold, mean float64
		want            string
	}{
		{1, 2, ""}, {math.NaN(), 2, "element 1"}, {math.Inf(1), 2, "threshold"}, {math.Inf(-1), 2, "threshold"}, {1, math.NaN(), "mean"},
	} {
		parts := map[string][]byte{
			"layer[0].moe.router.threshold": binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, 0), math.Float32bits(float32(c.threshold))),
			"layer[0].moe.router.mean":      binary.LittleEndian.AppendUint64(nil, math.Float64bits(c.mean)),
		}
		state := make([]byte, 16)
		err := routersFrom("step-000001", p, func(plan.BufID) []byte { return state }, func(into func(*safetensors.Tensor) (Use, error)) error {
			for name, b := range parts {
				k := p.Routers[0].Kept[0]
				if strings.HasSuffix(name, "mean") {
					k = p.Routers[0].Kept[1]
				}
				w, err := into(&safetensors.Tensor{Name: name, DType: routerType(&k), Shape: []int64{k.Elems}})
				if err != nil {
					return err
				}
				w(0, b)
			}
			return nil
		})
		var f *fault.Error
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%v: %v", c, err)
		case c.want != "" && (!errors.As(err, &f) || f.Code != "MT0621" || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%v: %v, want %q", c, err, c.want)
		}
	}
}
