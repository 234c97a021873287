package codegen

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/plan"
)

// lineWidth is where a launch is broken over several lines.
const lineWidth = 120

// field is one field of an argument struct.
type field struct {
	name string
	expr *jen.Statement
	text int // about how wide it prints
}

// launch writes one launch: on one line where it fits, else operands, gradients and
// constants on lines of their own.
func (w *funcWriter) launch(c *ir.Call) (jen.Code, error) {
	var operands, gradients, consts []field
	for _, a := range c.Args {
		if a.Place.Region == ir.RNil {
			continue
		}
		f := field{name: a.Field, expr: w.pointer(a.Place)}
		f.text = len(f.name) + len(fmt.Sprintf("%#v", f.expr)) + 4
		if strings.HasPrefix(a.Field, "Add") || isGradient(c.Launch, a.Field) {
			gradients = append(gradients, f)
		} else {
			operands = append(operands, f)
		}
	}
	for _, k := range c.Op.Consts {
		expr, err := w.constant(k)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", c.Op.Def.Name, c.Launch.Func, err)
		}
		if expr != nil {
			consts = append(consts, field{name: k.Field, expr: expr, text: len(k.Field) + len(fmt.Sprintf("%#v", expr)) + 4})
		}
	}
	room := pkgOps + c.Op.Def.Package()
	call := jen.Qual(room, c.Launch.Func)
	args := jen.Qual(room, c.Launch.Func+"Args")
	width := 2*len(c.Op.Def.Package()) + 2*len(c.Launch.Func) + 20
	width += sum(operands) + sum(gradients) + sum(consts)
	var values *jen.Statement
	if width <= lineWidth {
		var all []jen.Code
		for _, list := range [][]field{operands, gradients, consts} {
			for _, f := range list {
				all = append(all, keyed(f))
			}
		}
		values = args.Values(all...)
	} else {
		if sum(operands)+sum(gradients) <= lineWidth-16 {
			operands, gradients = append(operands, gradients...), nil
		}
		var lines []jen.Code
		for _, list := range [][]field{operands, gradients, consts} {
			lines = append(lines, broken(list)...)
		}
		values = args.Custom(jen.Options{Open: "{", Close: "}", Separator: ",", Multi: true}, lines...)
	}
	st := call.Call(jen.Id("queue"), values)
	if c.Span.Valid() {
		st.Comment(lineOf(c.Span))
	}
	return st, nil
}

// broken puts fields on as few lines as they need.
func broken(list []field) []jen.Code {
	var lines []jen.Code
	var line *jen.Statement
	used := 0
	for _, f := range list {
		if line != nil && used+f.text > lineWidth-16 {
			lines = append(lines, line)
			line, used = nil, 0
		}
		if line == nil {
			line = keyed(f)
		} else {
			line.Op(",").Add(keyed(f))
		}
		used += f.text
	}
	if line != nil {
		lines = append(lines, line)
	}
	return lines
}

func sum(list []field) int {
	n := 0
	for _, f := range list {
		n += f.text
	}
	return n
}

func keyed(f field) *jen.Statement { return jen.Id(f.name).Op(":").Add(f.expr) }

// isGradient tells whether an argument field is a gradient that the launch writes.
func isGradient(l *op.Launch, name string) bool {
	for _, w := range l.Writes {
		if strings.HasPrefix(w, "d.") && op.Field(w) == name {
			return true
		}
	}
	return false
}

// pointer is the address of an operand.
func (w *funcWriter) pointer(p ir.Place) *jen.Statement {
	b := jen.Id("b")
	switch p.Region {
	case ir.RWeight:
		return jen.Id(w.slabs[p.Index]).Dot("At").Call(w.offset(p))
	case ir.RGrad:
		return b.Dot("Grad").Call(jen.Lit(p.Index), w.offset(p))
	case ir.RGradAdd:
		if w.in == chunks {
			return jen.Id(w.carry(p))
		}
		return b.Dot("GradAdd").Call(jen.Lit(p.Index), w.offset(p))
	}
	switch p.Region {
	case ir.RSlabGrad:
		return b.Dot("Grads").Index(jen.Lit(p.Index))
	case ir.RSquares:
		return b.Dot("Squares").Index(jen.Lit(p.Index))
	}
	l := w.local(p)
	if view := w.rows[l]; view != "" && p.RowBytes > 0 {
		return jen.Id(view)
	}
	return jen.Id(l.name)
}

// offset is the named constant of a weight's place in its slab; a part that has no weight
// (a gap) is a number.
func (w *funcWriter) offset(p ir.Place) *jen.Statement {
	if name := w.weightConst(p); name != "" {
		return jen.Id(name)
	}
	return jen.Lit(int(p.Off))
}

func (w *funcWriter) weightConst(p ir.Place) string {
	for _, i := range w.t.Slabs[p.Index].Weights {
		if path := w.t.Graph.Weights[i].Path; path != strings.TrimPrefix(p.Name, "d.") {
			continue
		}
		if p.Region == ir.RWeight {
			return w.weights.value[i]
		}
		return w.weights.grad[i]
	}
	return ""
}

// carry names the addend of a weight's gradient inside the loop over chunks: nil or the
// gradient so far for the first chunk, the gradient itself for later ones.
func (w *funcWriter) carry(p ir.Place) string {
	off := w.weightConst(p)
	for _, c := range w.carried {
		if c.slab == p.Index && c.off == off {
			return c.name
		}
	}
	c := carried{name: w.names.take("add" + camel(strings.TrimPrefix(p.Name, "d."))), slab: p.Index, off: off}
	w.carried = append(w.carried, c)
	return c.name
}

// constant is a constant field; nil when it is the zero of its type.
func (w *funcWriter) constant(k op.Const) (*jen.Statement, error) {
	infer := w.fn.Func == plan.Infer
	switch k.Kind {
	case op.CRows:
		return w.rowsExpr(), nil
	case op.CBatch:
		if infer {
			return jen.Lit(1), nil
		}
		return jen.Id("B"), nil
	case op.CSeq:
		if infer {
			return jen.Id("b").Dot("Rows"), nil
		}
		return jen.Id("T"), nil
	case op.CPos:
		if infer {
			return jen.Id("b").Dot("Pos"), nil
		}
		return nil, nil
	}
	return literal(k)
}

// literal is an int, float32 or bool constant; nil when it is zero.
func literal(k op.Const) (*jen.Statement, error) {
	switch k.Kind {
	case op.CInt:
		if k.Int != 0 {
			return jen.Lit(int(k.Int)), nil
		}
	case op.CFloat:
		x := float32(k.Float)
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return nil, fmt.Errorf("constant %s is %v, which no float32 literal can say", k.Field, k.Float)
		}
		if x != 0 {
			return jen.Op(strconv.FormatFloat(float64(x), 'g', -1, 32)), nil
		}
	case op.CBool:
		if k.Bool {
			return jen.True(), nil
		}
	case op.CString:
		return jen.Lit(k.Str), nil
	default:
		return nil, fmt.Errorf("constant %s depends on the rows that a function runs over", k.Field)
	}
	return nil, nil
}
