package checkpoint

import (
	"fmt"
	"io"

	"github.com/megatrain/mtc/runtime/checkpoint/safetensors"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/plan"
)

// View returns the bytes of a plan's buffer. The f32 values in it are little-endian, as on
// every machine that the runtime supports.
type View func(buf plan.BufID) []byte

// Kinds of slab state, in the prefix of the tensors' names.
const (
	momentM = "m."
	momentV = "v."
)

// FromSlabs lists the weights and the optimizer state of a plan as the files of a checkpoint.
// The tensors alias what view returns.
func FromSlabs(p *plan.Plan, view View) []File {
	weights := File{Name: WeightsFile, Meta: map[string]string{"format": "pt", "model": p.Model, "hash": p.Hash}}
	moments := File{Name: OptimizerFile, Meta: map[string]string{"model": p.Model, "hash": p.Hash}}
	for i := range p.Slabs {
		s := &p.Slabs[i]
		for j := range s.Params {
			weights.Tensors = append(weights.Tensors, entry("", &s.Params[j], view(s.Weight)))
			moments.Tensors = append(moments.Tensors, entry(momentM, &s.Params[j], view(s.M)), entry(momentV, &s.Params[j], view(s.V)))
		}
	}
	return []File{weights, moments}
}

func entry(kind string, p *plan.Param, slab []byte) safetensors.Entry {
	return safetensors.Entry{Name: kind + p.Name, DType: "F32", Shape: p.Shape, Data: part(p, slab)}
}

// part is a parameter's bytes in a buffer of its slab.
func part(p *plan.Param, slab []byte) []byte {
	n := int64(4)
	for _, d := range p.Shape {
		n *= d
	}
	return slab[4*p.Off : 4*p.Off+n]
}

// LoadSlabs fills the weights of a plan and, with moments, the optimizer state, from a
// checkpoint. Every parameter must be there with its shape, and nothing else. When it fails,
// the memory holds nothing that may be used.
func (c *Checkpoint) LoadSlabs(p *plan.Plan, view View, moments bool) error {
	want := map[string]target{}
	for i := range p.Slabs {
		s := &p.Slabs[i]
		for j := range s.Params {
			want[s.Params[j].Name] = target{&s.Params[j], s.Weight}
		}
	}
	if err := c.fill(WeightsFile, want, view); err != nil || !moments {
		return err
	}
	clear(want)
	for i := range p.Slabs {
		s := &p.Slabs[i]
		for j := range s.Params {
			want[momentM+s.Params[j].Name] = target{&s.Params[j], s.M}
			want[momentV+s.Params[j].Name] = target{&s.Params[j], s.V}
		}
	}
	return c.fill(OptimizerFile, want, view)
}

type target struct {
	param *plan.Param
	buf   plan.BufID
}

func (c *Checkpoint) fill(name string, want map[string]target, view View) error {
	done := 0
	err := c.Load(name, func(t *safetensors.Tensor) (io.Writer, error) {
		w, ok := want[t.Name]
		switch {
		case !ok:
			return nil, fault.New("MT0625", c.Path, "%s has a tensor %q that the model does not have", name, t.Name)
		case t.DType != "F32" || fmt.Sprint(t.Shape) != fmt.Sprint(w.param.Shape):
			return nil, fault.New("MT0625", c.Path, "%s: tensor %q is %s%v, the model has F32%v", name, t.Name, t.DType, t.Shape, w.param.Shape)
		}
		done++
		return &filler{part(w.param, view(w.buf))}, nil
	})
	if err == nil && done != len(want) {
		return fault.New("MT0625", c.Path, "%s has %d of the model's %d tensors", name, done, len(want))
	}
	return err
}

// filler writes into memory from its start on.
type filler struct{ rest []byte }

func (f *filler) Write(p []byte) (int, error) {
	n := copy(f.rest, p)
	f.rest = f.rest[n:]
	if n < len(p) {
		return n, io.ErrShortWrite
	}
	return n, nil
}
