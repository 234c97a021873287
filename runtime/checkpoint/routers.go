package checkpoint

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/megatrain/mtc/runtime/checkpoint/safetensors"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/plan"
)

// RouterFile holds the states of a model's routers: "layer[3].moe.router.threshold" and others.
// A model without a mixture of experts has none.
const RouterFile = "router.safetensors"

// fromRouters lists the parts of the routers' states that a checkpoint keeps, bit for bit.
func fromRouters(p *plan.Plan, view View) File {
	f := File{Name: RouterFile, Meta: map[string]string{"model": p.Model, "hash": p.ModelHash}}
	for i := range p.Routers {
		r := &p.Routers[i]
		for j := range r.Kept {
			k := &r.Kept[j]
			f.Tensors = append(f.Tensors, safetensors.Entry{Name: routerTensor(r, k), DType: routerType(k), Shape: []int64{k.Elems}, Stream: func(w io.Writer) error {
				_, err := w.Write(keptPart(k, view(r.State)))
				return err
			}})
		}
	}
	return f
}

func routerTensor(r *plan.Router, k *plan.RouterPart) string { return r.Name + ".router." + k.Name }

func routerType(k *plan.RouterPart) string { return fmt.Sprintf("F%d", 8*k.Bytes) }

func keptPart(k *plan.RouterPart, state []byte) []byte {
	return state[k.Off : k.Off+k.Elems*k.Bytes]
}

// loadRouters fills the states of a plan's routers. All that a checkpoint keeps must be there.
func (c *Checkpoint) loadRouters(p *plan.Plan, view View) error {
	return routersFrom(c.Path, p, view, func(into func(t *safetensors.Tensor) (Use, error)) error { return c.Load(RouterFile, into) })
}

// LoadRouters fills them from a file that stands elsewhere.
func LoadRouters(path string, p *plan.Plan, view View) error {
	return routersFrom(path, p, view, func(into func(t *safetensors.Tensor) (Use, error)) error {
		f, err := safetensors.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		for i := range f.Tensors {
			use, err := into(&f.Tensors[i])
			if err == nil {
				_, err = f.Range(&f.Tensors[i], 0, f.Tensors[i].Bytes, use)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func routersFrom(path string, p *plan.Plan, view View, load func(into func(t *safetensors.Tensor) (Use, error)) error) error {
	if len(p.Routers) == 0 {
		return nil
	}
	type place struct {
		router *plan.Router
		part   *plan.RouterPart
	}
	want := map[string]place{}
	for i := range p.Routers {
		r := &p.Routers[i]
		for j := range r.Kept {
			want[routerTensor(r, &r.Kept[j])] = place{r, &r.Kept[j]}
		}
	}
	done := 0
	err := load(func(t *safetensors.Tensor) (Use, error) {
		w, ok := want[t.Name]
		switch {
		case !ok:
			return nil, fault.New("MT0625", path, "%s has a tensor %q that the model does not have", RouterFile, t.Name)
		case t.DType != routerType(w.part) || len(t.Shape) != 1 || t.Shape[0] != w.part.Elems:
			return nil, fault.New("MT0625", path, "%s: tensor %q is %s%v, the model has %s[%d]", RouterFile, t.Name, t.DType, t.Shape, routerType(w.part), w.part.Elems)
		}
		done++
		to := keptPart(w.part, view(w.router.State))
		return func(at int64, b []byte) { copy(to[at:], b) }, nil
	})
	if err == nil && done != len(want) {
		return fault.New("MT0625", path, "%s has %d of the model's %d tensors", RouterFile, done, len(want))
	}
	if err != nil {
		return err
	}
	for name, w := range want {
		if i := firstNotFinite(w.part, keptPart(w.part, view(w.router.State))); i >= 0 {
			return fault.New("MT0621", path, "%s: element %d of %q is no finite number, with which an expert would get all tokens for ever, or none", RouterFile, i, name).
				Help("go on from another checkpoint")
		}
	}
	return nil
}

// firstNotFinite is the first element of a part that is infinite or no number; -1: none.
func firstNotFinite(k *plan.RouterPart, state []byte) int64 {
	for i := range k.Elems {
		x := float64(math.Float32frombits(binary.LittleEndian.Uint32(state[k.Bytes*i:])))
		if k.Bytes == 8 {
			x = math.Float64frombits(binary.LittleEndian.Uint64(state[8*i:]))
		}
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return i
		}
	}
	return -1
}
