package lower

import (
	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/tensor"
)

// arguments binds the operand fields of a launch: what it reads, what it writes and did not
// read already, and the addends.
func arguments(f *fn, in *inst, p *placement) []ir.Arg {
	var out []ir.Arg
	seen := map[string]bool{}
	for _, list := range [][]operand{in.reads, in.writes} {
		for _, o := range list {
			if !seen[o.name] {
				seen[o.name] = true
				out = append(out, ir.Arg{Field: op.Field(o.name), Place: p.placeOf(f, in, o)})
			}
		}
	}
	for _, o := range in.adds {
		out = append(out, ir.Arg{Field: "Add" + op.Field(o.name), Place: p.placeOf(f, in, o)})
	}
	return out
}

// placeOf is the place of an operand as a statement names it.
func (p *placement) placeOf(f *fn, in *inst, o operand) ir.Place {
	if o.v == nil {
		return ir.Place{}
	}
	at := p.at[o.v]
	at.Name = o.v.name
	at.Value = shapeText(f, o.v)
	at.DType = o.v.typ.DType
	if in.inLoop && !o.v.chunk {
		at.RowBytes = o.v.rowBytes
	}
	if o.maybe {
		at.Region = ir.RGradAdd
	}
	return at
}

// shapeText is a value's shape for a comment, the same on every device. Where a function does not run over all of the
// micro-batch, the two leading dims of an activation are its rows.
func shapeText(f *fn, v *value) string {
	if v.rowBytes == 0 || len(v.typ.Shape) < 2 || !v.chunk && f.kind != plan.Infer {
		return commentType(v.typ)
	}
	rows := tensor.Dim{Name: "rows"}
	if v.chunk && f.loop.Last {
		rows = tensor.Dim{N: 1}
	}
	return commentType(tensor.Type{DType: v.typ.DType, Shape: append(tensor.Shape{rows}, v.typ.Shape[2:]...)})
}

// commentType leaves out the element type, except that of ids.
func commentType(t tensor.Type) string {
	if t.DType == tensor.BF16 {
		t.DType = tensor.F32
	}
	return t.String()
}
