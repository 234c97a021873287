package checkpoint

import (
	"math"
	"testing"

	"github.com/megatrain/mtc/runtime/plan"
)

// A frozen slab has what the device computes in and no more: f32, or the bfloat16 nearest to it. It
// is in no file of a checkpoint.
func TestFrozenSlabs(t *testing.T) {
	values := []float32{1, -2.5, 3.1415927, 1e-30, float32(math.Inf(1))}
	n := int64(len(values))
	frozen := plan.Slab{Name: "layer[0]", Frozen: true, Elems: n, Weight: 1, Params: []plan.Param{{Name: "layer[0].w", Shape: []int64{n}}}}
	for _, width := range []int64{4, 2} {
		mem := make([]byte, width*n)
		m := MastersOf(&frozen, func(plan.BufID) []byte { return mem })
		m.Write(1, values[1:])
		m.Write(0, values[:1])
		got := make([]float32, n)
		m.Read(got, 0)
		for i, v := range values {
			want := v
			if width == 2 {
				want = math.Float32frombits((math.Float32bits(v) + 0x8000) &^ 0xffff)
			}
			if got[i] != want {
				t.Errorf("%d bytes: %v is read as %v, not %v", width, v, got[i], want)
			}
		}
		tail := make([]float32, 2)
		if m.Read(tail, n-2); tail[1] != values[n-1] {
			t.Errorf("%d bytes: the end is %v", width, tail)
		}
	}
	p := &plan.Plan{Slabs: []plan.Slab{{Name: "layer[0].lora", Elems: 2, Params: []plan.Param{{Name: "layer[0].w.lora_a", Shape: []int64{2}}}}, frozen}}
	for _, f := range FromSlabs(p, nil) {
		for _, x := range f.Tensors {
			if x.Name == "layer[0].w" || x.Name == "m.layer[0].w" {
				t.Errorf("%s has %s, which is frozen", f.Name, x.Name)
			}
		}
	}
}
