package schedule

import (
	"fmt"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/tensor"
)

// toy describes a small program: embedding, layers, head, in the shapes that schedules differ by.
type toy struct {
	layers    int
	micros    int
	tied      bool // head and embedding share a slab
	shared    bool // the first and last layer share a tensor
	twoKinds  bool // odd layers are of another template and size
	glue      bool // a weightless unit in the middle that adds the embedding's output again
	skip      bool // every layer reads the embedding's output too
	recompute bool
	position  bool
	noClip    bool
	half      bool  // bf16: split masters
	adapters  bool  // layers have a small slab that learns, and all else is frozen
	width     int64 // of the activations, 0: 16
	saved     int64 // bytes a layer saves, 0: 4 values
}

func (y toy) String() string {
	type plain toy
	return fmt.Sprintf("%+v", plain(y))
}

const (
	toyRows, toySeq, toyVocab, toyPrefill = 2, 8, 64, 4
)

// program builds the toy's templates by hand: no bodies, only what schedules read.
func (y toy) program() *ir.Program {
	if y.width == 0 {
		y.width = 16
	}
	act := tensor.Type{Shape: tensor.Shape{{Name: "B", N: toyRows}, {Name: "T", N: toySeq}, {Name: "D", N: y.width}}}
	ints := tensor.Type{DType: tensor.I32, Shape: act.Shape[:2]}
	logits := tensor.Type{Shape: tensor.Shape{{Name: "V", N: toyVocab}}}
	if y.saved == 0 {
		y.saved = 4 * act.Bytes()
	}
	m := &ir.Model{Name: "toy", Batch: int64(y.micros) * toyRows, Seq: toySeq, Vocab: toyVocab, Train: &ir.Train{}}
	if !y.noClip {
		m.Train.Run.Clip = 1
	}
	p := &ir.Program{Model: m, Rows: toyRows, Prefill: toyPrefill}
	if y.half {
		p.DType = tensor.BF16
	}
	value := func(name string, t tensor.Type) int {
		m.Values = append(m.Values, &ir.Value{Name: name, Type: t})
		return len(m.Values) - 1
	}
	slab := func(name string, elems int64) int {
		q := &ir.Param{Path: name + ".w", Shape: tensor.Shape{{N: elems}}}
		m.Params = append(m.Params, q)
		p.Slabs = append(p.Slabs, &ir.Slab{Name: name, Params: []*ir.Param{q}, Offs: []int64{0}, Elems: elems, Decay: elems})
		return len(p.Slabs) - 1
	}
	fn := func(f plan.Func, work int64) *ir.Function {
		return &ir.Function{Func: f, WorkBytes: work, FLOPs: 1000, Moved: 100}
	}
	template := func(t *ir.Template, fs ...*ir.Function) int {
		for _, f := range fs {
			t.Funcs[f.Func] = f
		}
		p.Templates = append(p.Templates, t)
		return len(p.Templates) - 1
	}
	unit := func(kind ir.UnitKind, name string, index, tmpl int, slabs, in, out []int) {
		p.Units = append(p.Units, &ir.UnitBinding{
			Unit: &ir.Unit{Kind: kind, Name: name, Index: index}, Template: tmpl, Slabs: slabs, In: in, Out: out,
		})
	}

	tok := value("tokens", ints)
	wte := slab("wte", 4096)
	embedIn, embedTypes, embedModes := []int{tok}, []tensor.Type{ints}, []ir.GradMode{ir.GradNone}
	if y.position {
		embedIn, embedTypes, embedModes = append(embedIn, value("position", ints)), append(embedTypes, ints), append(embedModes, ir.GradNone)
	}
	x := value("x", act)
	first := x
	// As of a real embedding, its backward reads no weights.
	scatter := fn(plan.Backward, 0)
	scatter.Body = []ir.Stmt{&ir.Call{Args: []ir.Arg{{Place: ir.Place{Region: ir.RDOut}}, {Place: ir.Place{Region: ir.RGrad}}}}}
	embed := template(&ir.Template{Name: "embed", In: embedTypes, Out: []tensor.Type{act}, DIn: embedModes, DOut: []bool{true}},
		fn(plan.Forward, 0), scatter, fn(plan.Infer, 0))
	unit(ir.EmbedUnit, "embed", -1, embed, []int{wte}, embedIn, []int{x})

	layer := func(name string, saved int64, last bool) int {
		t := &ir.Template{
			Name: name, In: []tensor.Type{act}, Out: []tensor.Type{act}, DIn: []ir.GradMode{ir.GradSet}, DOut: []bool{true},
			SavedBytes: saved, StateBytes: 2 * act.Bytes(), Recompute: y.recompute,
		}
		fs := []*ir.Function{fn(plan.Forward, 512), fn(plan.Backward, 4096), fn(plan.Infer, 256)}
		if y.skip {
			t.In, t.DIn = append(t.In, act), append(t.DIn, ir.GradAdd)
			if last {
				t.DIn[1] = ir.GradSet
			}
		}
		if y.recompute {
			fs = append(fs, fn(plan.Recompute, 512), fn(plan.Again, 512))
		}
		return template(t, fs...)
	}
	kinds := []int{layer("layer", y.saved, false)}
	if y.twoKinds {
		kinds = append(kinds, layer("layer2", 2*y.saved, false))
	}
	lastKind := layer("last", y.saved, true)
	both := -1
	if y.shared && y.layers > 1 {
		both = slab("both", 256)
	}
	for l := range y.layers {
		k := kinds[l%len(kinds)]
		if y.skip && l == y.layers-1 {
			k = lastKind
		}
		slabs := []int{slab(fmt.Sprintf("layer[%d]", l), int64(1024+512*(l%len(kinds))))}
		if both >= 0 && (l == 0 || l == y.layers-1) {
			slabs = append(slabs, both)
		}
		in := []int{x}
		if y.skip {
			in = append(in, first)
			if l == 0 { // its input is that value already
				in = in[:1]
				k = template(&ir.Template{
					Name: "layer0", In: []tensor.Type{act}, Out: []tensor.Type{act}, DIn: []ir.GradMode{ir.GradAdd}, DOut: []bool{true},
					SavedBytes: y.saved, StateBytes: act.Bytes(),
				}, fn(plan.Forward, 512), fn(plan.Backward, 4096), fn(plan.Infer, 256))
				if y.layers == 1 {
					p.Templates[k].DIn[0] = ir.GradSet
				}
			}
		}
		x = value("x", act)
		unit(ir.LayerUnit, "layer", l, k, slabs, in, []int{x})
		if y.glue && !y.skip && l == y.layers/2 && l < y.layers-1 {
			g := template(&ir.Template{
				Name: "glue", In: []tensor.Type{act, act}, Out: []tensor.Type{act},
				DIn: []ir.GradMode{ir.GradSet, ir.GradSet}, DOut: []bool{true},
			}, fn(plan.Forward, 0), fn(plan.Backward, 0), fn(plan.Infer, 0))
			in := []int{x, first}
			x = value("x", act)
			unit(ir.GlueUnit, "glue", -1, g, nil, in, []int{x})
			// What reads the embedding's output first in forward adds to its gradient.
			t := *p.Templates[p.Units[1].Template]
			t.Name, t.DIn = "layer0", []ir.GradMode{ir.GradAdd}
			p.Templates = append(p.Templates, &t)
			p.Units[1].Template = len(p.Templates) - 1
		}
	}
	head := wte
	if !y.tied {
		head = slab("head", 4096)
	}
	h := template(&ir.Template{Name: "head", In: []tensor.Type{act}, Out: []tensor.Type{logits}, DIn: []ir.GradMode{ir.GradSet}, DOut: []bool{false}},
		fn(plan.Loss, 8192), fn(plan.EvalLoss, 8192), fn(plan.Infer, 0))
	unit(ir.HeadUnit, "head", -1, h, []int{head}, []int{x}, nil)
	p.Tables = []*ir.TableBuf{{Name: "cs", Table: op.Table{Type: act}}}
	if y.adapters {
		freeze(p)
	}
	return p
}

// freeze gives every layer a slab that learns, freezes all others and puts them last. Nothing of
// the embedding learns, so that no gradient goes there.
func freeze(p *ir.Program) {
	var slabs []*ir.Slab
	for _, u := range p.Units {
		if u.Unit.Kind == ir.LayerUnit {
			name := u.Unit.Path() + ".lora"
			q := &ir.Param{Path: name + ".w", Shape: tensor.Shape{{N: 64}}}
			slabs = append(slabs, &ir.Slab{Name: name, Params: []*ir.Param{q}, Offs: []int64{0}, Elems: 64, Decay: 64})
		}
	}
	n := 0
	for i, u := range p.Units {
		for k := range u.Slabs {
			u.Slabs[k] += len(slabs)
		}
		if u.Unit.Kind == ir.LayerUnit {
			u.Slabs = append(u.Slabs, n)
			n++
		}
		t := *p.Templates[u.Template]
		switch i {
		case 0:
			t.DOut = []bool{false}
			t.Funcs[plan.Backward] = nil
		case 1:
			t.Name, t.DIn = t.Name+"0", []ir.GradMode{ir.GradNone}
		default:
			continue
		}
		u.Template = len(p.Templates)
		p.Templates = append(p.Templates, &t)
	}
	for _, s := range p.Slabs {
		s.Frozen = true
	}
	p.Slabs = append(slabs, p.Slabs...)
}
