package front

import (
	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/op"
)

// given is the value a parameter was given outside its default.
type given struct {
	expr ast.Expr
	flag bool // a bare name in an instance
	from string
}

// Constants evaluates the parameters of the target in declaration order. A value comes from
// the default, then the preset, then the instances from the inside out, then --set: the last
// one that gives it wins, and only that one is evaluated, so `hd = D / H` follows an
// overridden D. Every expression may name the parameters before its own.
func Constants(s *State) {
	t := s.target
	m := s.Model
	if s.Main != nil {
		m.File = s.Main.Source
	}
	for _, f := range s.Files {
		m.Files = append(m.Files, f.Source)
	}
	root := newScope(nil)
	if m.Seq > 0 {
		root.vals["T"] = constant{v: op.Value{Kind: op.VInt, Int: m.Seq, Dim: "T"}}
	}
	s.consts = newScope(root)
	if t.model == nil {
		return
	}
	m.Name, m.Span = t.name.Name, t.name.Span
	values := t.values()
	var missing []*ast.Param
	for _, p := range t.model.Params {
		name := p.Name.Name
		if _, twice := s.consts.vals[name]; twice {
			continue // reported by names
		}
		g, ok := values[name]
		if !ok {
			g = given{expr: p.Default, from: "default"}
		}
		v, ok := op.Value{}, true
		switch {
		case g.flag:
			v = *op.BoolValue(true)
		case g.expr == nil:
			ok = false
			missing = append(missing, p)
		default:
			v, ok = s.eval(g.expr, s.consts, nil)
		}
		if v.Kind == op.VInt {
			v.Dim = name
		}
		s.consts.set(name, constant{v, !ok})
		if ok {
			m.Consts = append(m.Consts, ir.Const{Name: name, Value: v, From: g.from})
		}
	}
	s.noValues(missing)
}

// values collects what preset, instances and --set give, later ones over earlier ones.
func (t *target) values() map[string]given {
	out := map[string]given{}
	if t.preset != nil {
		for _, a := range t.preset.Args {
			if a.Name != nil {
				out[a.Name.Name] = given{expr: a.Value, from: "preset " + t.preset.Name.Name}
			}
		}
	}
	g := textSig("model", t.model.Name, t.model.Params)
	for _, inst := range t.chain {
		for i, a := range (*binder)(nil).bind(g, inst.Instance.Args, inst.Instance.Span) {
			if a.given() {
				out[g.params[i].name] = given{expr: a.arg.Value, flag: a.flag, from: "instance " + inst.Name.Name}
			}
		}
	}
	for _, set := range t.sets {
		out[set.key.Name] = given{expr: set.value, from: "--set"}
	}
	return out
}

// noValues reports the parameters that nothing gives a value, together: at the instance if
// there is one.
func (s *State) noValues(params []*ast.Param) {
	if len(params) == 0 {
		return
	}
	t := s.target
	var names []string
	for _, p := range params {
		names = append(names, p.Name.Name)
	}
	first := names[0]
	if len(t.chain) > 0 {
		callee := t.chain[0].Instance.Callee
		s.errorf(codeMissing, callee.Span, "`%s` needs a value for %s", callee.Name, inOrder(names)).
			Also(params[0].Name.Span, "declared here without a default").
			Hint("write `%s(%s = ...)`", callee.Name, first)
		return
	}
	s.errorf(codeMissing, params[0].Name.Span, "nothing gives a value to %s", inOrder(names)).
		Mark("no default").
		Hint("give it a default, make an instance, `model mine = %s(%s = ...)`, or pass `--set %s=...`", t.model.Name.Name, first, first)
}

// noSeq reports a use of T where nothing says what it is.
func (s *State) noSeq(at source.Span) {
	s.errorf(codeMissing, at, "`T` has no value: it comes from the train block").
		Hint("add `train { seq = 1024 ... }`, or use a parameter of the model")
}
