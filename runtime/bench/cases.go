package bench

import (
	"fmt"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/tensor"
)

// kase is a launcher at a size. setup cuts its operands and returns the launch.
type kase struct {
	kernel string
	cost   op.Cost
	shape  op.Shape
	ring   int64 // bytes after which a step of such a model is back at old operands; 0: any number
	setup  func(m *memory) func(q device.Queue)
}

// sizes are the dims of a model that cases are made at: sequences, positions, widths, heads.
type sizes struct{ b, t, d, f, v, heads, kv, hd int }

func (s sizes) rows() int { return s.b * s.t }

// ring is what a step of a model of such layers goes through: state at 16 bytes a parameter, and what
// forward keeps. A model of narrow layers stays in the caches that all cores share; wide ones are deep.
func (s sizes) ring() int64 {
	layers := max(4, s.d/64)
	params, kept := s.d*(4*s.d+3*s.f), s.rows()*(8*s.d+3*s.f)
	return int64(layers) * int64(16*params+4*kept)
}

// modelSizes are those of small and large models that fit the target's speed.
func modelSizes(target string, quick bool) []sizes {
	switch {
	case quick && target == "cuda":
		return []sizes{{8, 1024, 768, 3072, 50304, 12, 12, 64}}
	case quick:
		return []sizes{{2, 32, 64, 128, 96, 4, 2, 16}}
	case target == "cuda":
		return []sizes{
			{8, 1024, 768, 3072, 50304, 12, 12, 64},
			{64, 1024, 768, 3072, 50304, 12, 12, 64},
			{4, 2048, 2048, 8192, 128256, 32, 8, 64},
			{8, 1024, 3584, 18944, 152064, 28, 4, 128},
			{2, 4096, 5120, 13824, 152064, 40, 8, 128},
		}
	}
	return []sizes{
		{2, 128, 128, 512, 256, 4, 2, 32},
		{16, 128, 128, 512, 256, 4, 2, 32},
		{4, 256, 320, 1280, 8192, 5, 5, 64},
		{1, 256, 768, 3072, 50257, 12, 12, 64},
		{4, 256, 768, 3072, 50257, 12, 12, 64},
		{1, 1024, 768, 3072, 50257, 12, 12, 64},
		{1, 1024, 2048, 5632, 32000, 16, 4, 128},
	}
}

// call binds an op to types, as the compiler does: its costs are then those of a plan.
func call(def *op.Def, act tensor.DType, s sizes, in map[string]int, attrs map[string]op.Value) *op.Call {
	c := &op.Call{Def: def, DType: act, Attr: map[string]op.Value{}}
	for _, p := range def.Params {
		if p.Kind == op.Tensor {
			if width, ok := in[p.Name]; ok {
				t := tensor.Type{DType: act, Shape: tensor.Shape{{Name: "B", N: int64(s.b)}, {Name: "T", N: int64(s.t)}}}
				if width == 0 {
					t.DType = tensor.I32
				} else {
					t.Shape = append(t.Shape, tensor.Dim{N: int64(width)})
				}
				c.Inputs, c.In = append(c.Inputs, p.Name), append(c.In, t)
			}
			continue
		}
		if p.Default != nil {
			c.Attr[p.Name] = *p.Default
		}
		if v, ok := attrs[p.Name]; ok {
			c.Attr[p.Name] = v
		}
	}
	if err := def.Infer(c); err != nil {
		panic(fmt.Sprintf("bench: %s: %v", def.Name, err)) // a fault of the cases
	}
	return c
}

// make makes a case of a launcher of a call.
func (s sizes) make(c *op.Call, launcher string, setup func(m *memory) func(q device.Queue)) kase {
	for _, l := range append([]op.Launch{c.Def.Forward}, c.Def.Backward...) {
		if l.Func != launcher {
			continue
		}
		z := op.Sizes{Batch: int64(s.b), Seq: int64(s.t)}
		k := kase{kernel: c.Def.Name + "." + launcher, cost: l.Cost(c, z), ring: s.ring(), setup: setup}
		if l.Shape != nil {
			k.shape = l.Shape(c, z)
		}
		return k
	}
	panic("bench: " + c.Def.Name + " has no launcher " + launcher)
}
