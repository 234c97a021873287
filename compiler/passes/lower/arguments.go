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
	at.Value = typeText(f, o.v)
	if in.inLoop && !o.v.chunk {
		at.RowBytes = o.v.rowBytes
	}
	if o.maybe {
		at.Region = ir.RGradAdd
	}
	return at
}

// typeText is a value's type for a comment. Where a function does not run over all of the
// micro-batch, the two leading dims of an activation are its rows.
func typeText(f *fn, v *value) string {
	if v.rowBytes == 0 || len(v.typ.Shape) < 2 || !v.chunk && f.kind != plan.Infer {
		return v.typ.String()
	}
	rows := tensor.Dim{Name: "rows"}
	if v.chunk && f.loop.Last {
		rows = tensor.Dim{N: 1}
	}
	return tensor.Type{DType: v.typ.DType, Shape: append(tensor.Shape{rows}, v.typ.Shape[2:]...)}.String()
}
