package checkpoint

import (
	"fmt"
	"io"
	"unsafe"

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
// A slab is looked at while its tensors are written, so view may hold a few at a time. Weights are f32 in the file however the plan keeps them,
// so that a checkpoint does not depend on the device that wrote it. Frozen slabs are left out:
// State.Base says where their weights come from.
func FromSlabs(p *plan.Plan, view View) []File {
	weights := File{Name: WeightsFile, Meta: map[string]string{"format": "pt", "model": p.Model, "hash": p.ModelHash}}
	var block []float32 // for all: tensors are written one after another
	moments := File{Name: OptimizerFile, Meta: map[string]string{"model": p.Model, "hash": p.ModelHash}}
	for i := range p.Trained() {
		s := &p.Slabs[i]
		for j := range s.Params {
			param := &s.Params[j]
			weights.Tensors = append(weights.Tensors, safetensors.Entry{Name: param.Name, DType: "F32", Shape: param.Shape, Stream: stream(s, param, view, &block)})
			moments.Tensors = append(moments.Tensors, entry(momentM, param, s.M, view), entry(momentV, param, s.V, view))
		}
	}
	if len(p.Routers) > 0 {
		return []File{weights, moments, fromRouters(p, view)}
	}
	return []File{weights, moments}
}

func entry(kind string, p *plan.Param, slab plan.BufID, view View) safetensors.Entry {
	return safetensors.Entry{Name: kind + p.Name, DType: "F32", Shape: p.Shape, Stream: func(w io.Writer) error {
		_, err := w.Write(part(p, view(slab)))
		return err
	}}
}

// stream writes the masters of a parameter: as they lie there, or split ones a block at a time.
func stream(s *plan.Slab, p *plan.Param, view View, block *[]float32) func(w io.Writer) error {
	return func(w io.Writer) error {
		m := MastersOf(s, view)
		if !m.Split() {
			_, err := w.Write(bytesOf(m.Range(p.Off, elems(p))))
			return err
		}
		if *block == nil {
			*block = make([]float32, 1<<16)
		}
		for at, n := int64(0), elems(p); at < n; at += 1 << 16 {
			b := (*block)[:min(n-at, 1<<16)]
			m.Read(b, p.Off+at)
			if _, err := w.Write(bytesOf(b)); err != nil {
				return err
			}
		}
		return nil
	}
}

func bytesOf(v []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}

func elems(p *plan.Param) int64 {
	n := int64(1)
	for _, d := range p.Shape {
		n *= d
	}
	return n
}

// part is a parameter's bytes in an f32 buffer of its slab.
func part(p *plan.Param, slab []byte) []byte {
	return slab[4*p.Off : 4*(p.Off+elems(p))]
}

// LoadSlabs fills the weights of a plan and, with moments, the optimizer state, from a
// checkpoint. Every parameter must be there with its shape, and nothing else. When it fails,
// the memory holds nothing that may be used. Frozen slabs stay as they are.
func (c *Checkpoint) LoadSlabs(p *plan.Plan, view View, moments bool) error {
	weights, state := map[string]target{}, map[string]target{}
	for i := range p.Trained() {
		s := &p.Slabs[i]
		for j := range s.Params {
			x := &s.Params[j]
			weights[x.Name] = target{x, s}
			state[momentM+x.Name] = target{x, &plan.Slab{Weight: s.M}}
			state[momentV+x.Name] = target{x, &plan.Slab{Weight: s.V}}
		}
	}
	if err := c.loadRouters(p, view); err != nil {
		return err
	}
	if err := c.fill(WeightsFile, weights, view); err != nil || !moments {
		return err
	}
	return c.fill(OptimizerFile, state, view)
}

// target is where a tensor belongs; to a moment its buffer is the weights of a slab.
type target struct {
	param *plan.Param
	slab  *plan.Slab
}

func (c *Checkpoint) fill(name string, want map[string]target, view View) error {
	done := 0
	err := c.Load(name, func(t *safetensors.Tensor) (Use, error) {
		w, ok := want[t.Name]
		switch {
		case !ok:
			return nil, fault.New("MT0625", c.Path, "%s has a tensor %q that the model does not have", name, t.Name)
		case t.DType != "F32" || fmt.Sprint(t.Shape) != fmt.Sprint(w.param.Shape):
			return nil, fault.New("MT0625", c.Path, "%s: tensor %q is %s%v, the model has F32%v", name, t.Name, t.DType, t.Shape, w.param.Shape)
		}
		done++
		masters := MastersOf(w.slab, view)
		return func(at int64, b []byte) { masters.Write(w.param.Off+at/4, valuesOf[float32](b)) }, nil
	})
	if err == nil && done != len(want) {
		return fault.New("MT0625", c.Path, "%s has %d of the model's %d tensors", name, done, len(want))
	}
	return err
}
