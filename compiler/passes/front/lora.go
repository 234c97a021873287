package front

import (
	"fmt"

	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/op"
)

// loraSpec is `lora(rank, alpha, targets)` as the train block has it.
type loraSpec struct {
	at      source.Span
	rank    int64
	alpha   float64
	targets []loraName
}

// Bounds of what a text may ask for.
const (
	maxRank    = 1 << 16
	maxTargets = 2000
)

// loraName is one of the targets, as it was written.
type loraName struct {
	text string
	at   source.Span
}

// lora reads the field. The names in it are those of the model, which Targets looks up.
func (c *trainCheck) lora() {
	_, v, at, ok := c.args("lora")
	if !ok {
		return
	}
	spec := &loraSpec{at: c.fields["lora"].Span, rank: v["rank"].Int, alpha: v["alpha"].Num()}
	c.check(spec.rank >= 1 && spec.rank <= maxRank, at["rank"], "rank", fmt.Sprintf("1 to %d", maxRank), v["rank"])
	c.check(spec.alpha > 0 && float32(spec.alpha/float64(max(1, spec.rank))) > 0, at["alpha"], "alpha", "above 0, also divided by the rank in f32", v["alpha"])
	list := v["targets"]
	if list.Kind != op.VList {
		list = op.Value{Kind: op.VList, Args: []op.Value{list}}
	}
	if len(list.Args) > maxTargets {
		c.s.errorf(codeTooMany, at["targets"], "%d targets; at most %d are possible", len(list.Args), maxTargets).
			Hint("a name without an index, or a pattern, stands for those of all layers")
		return
	}
	spans := spansOf(c.fields["lora"].Value, at["targets"])
	for i, x := range list.Args {
		spec.targets = append(spec.targets, loraName{x.Str, spans[min(i, len(spans)-1)]})
	}
	if len(spec.targets) == 0 {
		c.s.errorf(codeLoRA, at["targets"], "nothing would learn: the list of targets is empty").
			Hint("name linears of the model, `targets = [q, v]`, or write `targets = all`")
	}
	c.s.lora = spec
}

// spansOf finds where each name of a list stands.
func spansOf(e ast.Expr, whole source.Span) []source.Span {
	call, ok := unparen(e).(*ast.Call)
	if !ok {
		return []source.Span{whole}
	}
	for _, a := range call.Args {
		if l, ok := a.Value.(*ast.List); ok && l.Span == whole && len(l.Items) > 0 {
			out := make([]source.Span, len(l.Items))
			for i, x := range l.Items {
				out[i] = x.Pos()
			}
			return out
		}
	}
	return []source.Span{whole}
}

// evalNames evaluates a name or a list of names without looking them up.
func (s *State) evalNames(e ast.Expr) (op.Value, bool) {
	switch e := e.(type) {
	case *ast.Paren:
		return s.evalNames(e.X)
	case *ast.Ident:
		return op.Value{Kind: op.VWord, Str: e.Name}, true
	case *ast.String:
		return op.Value{Kind: op.VString, Str: e.Value}, true
	case *ast.List:
		out := op.Value{Kind: op.VList}
		for _, x := range e.Items {
			v, ok := s.evalNames(x)
			if !ok || v.Kind == op.VList {
				if ok {
					s.errorf(codeType, x.Pos(), "a name is wanted, not a list")
				}
				return v, false
			}
			out.Args = append(out.Args, v)
		}
		return out, true
	}
	s.errorf(codeType, e.Pos(), "a name is wanted: that of a linear, or a pattern in quotes").
		Hint("write `targets = [q, v]`, or `targets = all`")
	return op.Value{}, false
}
