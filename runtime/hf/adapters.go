package hf

import (
	"io"
	"strings"

	"github.com/megatrain/mtc/runtime/checkpoint/safetensors"
	"github.com/megatrain/mtc/runtime/cores"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/vec"
)

// adapter is one adapter of a checkpoint: A [rank, in] and B [out, rank], f32.
type adapter struct {
	weight   string // path of the weight that it stands beside
	a, b     []float32
	rank     int64
	in, out  int64
	scale    float32
	from, to int64 // rows of the weight as the folder has it, where several lie in one tensor
}

// part is a parameter's share of a tensor.
type part struct {
	path     string
	from, to int64 // its rows in the tensor
	skip     int64 // rows of the parameter that lie in tensors before
}

// parts lists the parameters whose rows lie in a tensor of a line of the map, in the layout
// [out, in]: several of a split, some rows of one of a join, else all of one.
func parts(e *plan.Foreign, k int, shapes Shapes) []part {
	if n := int64(len(e.Names)); strings.HasPrefix(e.Op, "join") {
		rows := shapes[e.Params[0]][0] / n
		return []part{{e.Params[0], 0, rows, int64(k) * rows}}
	}
	var out []part
	at := int64(0)
	for _, p := range e.Params {
		n := shapes[p][0]
		out = append(out, part{p, at, at + n, 0})
		at += n
	}
	return out
}

// adaptersOf reads the adapters of a tensor: those beside the parameters that lie in it.
func (x *exporter) adaptersOf(e *plan.Foreign, k int) ([]adapter, error) {
	l := &x.Plan.LoRA
	if _, err := foreignShape(e, ShapesOf(x.Plan)); err != nil {
		return nil, err // parts of a join that are not alike
	}
	var out []adapter
	for _, p := range parts(e, k, ShapesOf(x.Plan)) {
		for i := range l.Adapters {
			if l.Adapters[i].Weight != p.path {
				continue
			}
			a, err := read(x.weights, l.Adapters[i].A)
			if err != nil {
				return nil, err
			}
			b, err := read(x.weights, l.Adapters[i].B)
			if err != nil {
				return nil, err
			}
			n := p.to - p.from
			out = append(out, adapter{
				weight: p.path, a: a, b: b[p.skip*l.Rank : (p.skip+n)*l.Rank], rank: l.Rank,
				in: int64(len(a)) / l.Rank, out: n, scale: float32(l.Scale()), from: p.from, to: p.to,
			})
		}
	}
	return out, nil
}

func read(f *safetensors.File, name string) ([]float32, error) {
	if t := f.Lookup(name); t == nil || t.DType != "F32" {
		return nil, fault.New("MT0625", f.Path, "there is no tensor %s of f32", name)
	}
	return f.F32(name)
}

// merged hands out the numbers of a tensor of the frozen weights, with what the adapters add to
// it. A tensor without adapters passes as it is.
func (x *exporter) merged(t *outTensor, out *encoder) error {
	base := x.Base.folder.tensor[bare(t.name)]
	if base == nil {
		return fault.New("MT0665", x.Base.folder.Path, "there is no tensor %s", t.name)
	}
	list, err := x.adaptersOf(t.entry, t.part)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return out.elements(base, 0, base.Elems())
	}
	w := make([]float32, base.Elems())
	if _, err := base.elements(0, base.Elems(), func(at int64, v []float32) { copy(w[at:], v) }); err != nil {
		return base.failed(err)
	}
	for i := range list {
		if a := &list[i]; transposed(t.entry) {
			a.addTransposed(w, base.Shape[1])
		} else {
			a.add(w[a.from*a.in : a.to*a.in])
		}
	}
	return out.values(w)
}

// add adds scale B A to rows of a matrix [out, in].
func (a *adapter) add(w []float32) {
	cores.Each(a.out, 16, func(from, to int64) {
		for o := from; o < to; o++ {
			row := w[o*a.in : (o+1)*a.in]
			for r := range a.rank {
				vec.Axpy(row, a.scale*a.b[o*a.rank+r], a.a[r*a.in:(r+1)*a.in])
			}
		}
	})
}

// addTransposed adds it to columns of a matrix [in, width].
func (a *adapter) addTransposed(w []float32, width int64) {
	columns := make([]float32, a.rank*a.out) // B, transposed
	for o := range a.out {
		for r := range a.rank {
			columns[r*a.out+o] = a.b[o*a.rank+r]
		}
	}
	cores.Each(a.in, 16, func(from, to int64) {
		for i := from; i < to; i++ {
			row := w[i*width+a.from : i*width+a.to]
			for r := range a.rank {
				vec.Axpy(row, a.scale*a.a[r*a.in+i], columns[r*a.out:(r+1)*a.out])
			}
		}
	})
}

// stacked is the adapter of a whole tensor from those of its parts: A one below the other, B in
// blocks along the diagonal, so that each part sees its own alone.
func stacked(list []adapter, rows int64) (a, b []float32, rank int64) {
	for i := range list {
		rank += list[i].rank
	}
	b = make([]float32, rows*rank)
	at := int64(0)
	for i := range list {
		x := &list[i]
		a = append(a, x.a...)
		for o := range x.out {
			copy(b[(x.from+o)*rank+at:], x.b[o*x.rank:(o+1)*x.rank])
		}
		at += x.rank
	}
	return a, b, rank
}

// f32 is an entry of a file.
func f32(name string, rows, cols int64, v []float32) safetensors.Entry {
	return safetensors.Entry{Name: name, DType: "F32", Shape: []int64{rows, cols}, Stream: func(w io.Writer) error {
		return (&encoder{w: w, dtype: "F32"}).values(v)
	}}
}
