package lower

import (
	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/runtime/op"
)

// arguments binds the operand fields of a launch: what it reads, what it writes and did not
// read already, and the addends.
func arguments(in *inst, p *placement) []ir.Arg {
	var out []ir.Arg
	seen := map[string]bool{}
	for _, list := range [][]operand{in.reads, in.writes} {
		for _, o := range list {
			if !seen[o.name] {
				seen[o.name] = true
				out = append(out, ir.Arg{Field: op.Field(o.name), Place: p.placeOf(in, o)})
			}
		}
	}
	for _, o := range in.adds {
		out = append(out, ir.Arg{Field: "Add" + op.Field(o.name), Place: p.placeOf(in, o)})
	}
	return out
}

// placeOf is the place of an operand as a statement names it.
func (p *placement) placeOf(in *inst, o operand) ir.Place {
	if o.v == nil {
		return ir.Place{}
	}
	at := p.at[o.v]
	at.Name = o.v.name
	at.Value = o.v.typ.String()
	if in.inLoop && !o.v.chunk {
		at.RowBytes = o.v.rowBytes
	}
	if o.maybe {
		at.Region = ir.RGradAdd
	}
	return at
}
