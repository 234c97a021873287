package lower

import (
	"path"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/ops/finite"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/tensor"
)

// CheckNaN puts a check behind every launch of training and evaluation, for each value that
// it sets, and before the first launch that reads a weight. So the first value that is not
// finite is found where it is made. What lies in the rows of experts is left out: behind the
// last row in use there is whatever was there before.
func CheckNaN(l *Lowering) {
	if !l.opts.CheckNaN {
		return
	}
	for _, t := range l.tmpls {
		for _, f := range t.funcs {
			if f.kind != plan.Infer {
				f.insts = checked(f)
			}
		}
	}
}

// checked is a function's launches with checks between them.
func checked(f *fn) []*inst {
	var out []*inst
	ragged := map[*value]bool{}
	known := map[*value]bool{}
	for _, in := range f.insts {
		rows := in.ragged(ragged)
		for _, o := range in.reads {
			pin, fixed := f.pins[o.v]
			if o.v != nil && fixed && pin.region == ir.RWeight && !known[o.v] {
				known[o.v] = true
				out = appendCheck(out, in, o.v, "weight")
			}
		}
		out = append(out, in)
		for _, o := range in.writes {
			if o.v == nil {
				continue
			}
			if ragged[o.v] = rows; !rows && (!o.v.mutable || f.pins[o.v].region == ir.RGrad) {
				out = appendCheck(out, in, o.v, in.what())
			}
		}
	}
	return out
}

func appendCheck(out []*inst, in *inst, v *value, what string) []*inst {
	t := v.typ.DType
	if t == tensor.I32 {
		return out
	}
	pitch := v.rowBytes
	if pitch == 0 {
		pitch = v.bytes
	}
	pitch /= t.Size()
	width := pitch
	// Behind the last logit of a row there may be anything.
	if s := v.typ.Shape; v.rowBytes != 0 && len(s) == 3 && s.Last().N < pitch {
		width = s.Last().N
	}
	return append(out, &inst{
		call:   finite.Call(v.rowBytes != 0, width, pitch, t, what, v.name, lineText(in.span)),
		launch: &finite.Def.Forward, reads: []operand{{name: "x", v: v}},
		span: in.span, inLoop: in.inLoop, guard: in.guard,
	})
}

// what is the op of a launch as a person calls it.
func (in *inst) what() string {
	if in.launch == &in.call.Def.Forward {
		return in.call.Def.Name
	}
	for i := range in.call.Def.Backward {
		if in.launch == &in.call.Def.Backward[i] {
			return "backward of " + in.call.Def.Name
		}
	}
	return in.call.Def.Name
}

func lineText(s source.Span) string {
	if !s.Valid() {
		return "an op of the compiler"
	}
	return path.Base(s.Line())
}

// ragged says whether what a launch sets has rows of experts, of which only some are in use.
func (in *inst) ragged(of map[*value]bool) bool {
	forward := in.launch == &in.call.Def.Forward
	switch in.call.Def.Name {
	case "moe_gather":
		return forward
	case "moe_combine":
		return !forward
	case "moe_select", "moe_gate", "moe_observe":
		return true
	case "grouped", "grouped_norm":
		return in.launch.Writes[0] == "y" || in.launch.Writes[0] == "d.x" // others are an expert's
	}
	for _, list := range [][]operand{in.reads, in.adds} {
		for _, o := range list {
			if o.v != nil && of[o.v] { // nil: an operand that is not there, which many launches have
				return true
			}
		}
	}
	return false
}
