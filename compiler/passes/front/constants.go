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
			s.noValue(p)
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

// noValue reports a parameter that nothing gives a value, at the instance if there is one.
func (s *State) noValue(p *ast.Param) {
	t := s.target
	name := p.Name.Name
	if n := len(t.chain); n > 0 {
		inst := t.chain[0]
		s.errorf(codeMissing, inst.Instance.Callee.Span, "model `%s` needs a value for `%s`", inst.Instance.Callee.Name, name).
			Also(p.Name.Span, "declared here without a default").
			Hint("write `%s(%s = ...)`", inst.Instance.Callee.Name, name)
		return
	}
	s.errorf(codeMissing, p.Name.Span, "`%s` has no default and was given no value", name).
		Hint("give it a default, make an instance `model mine = %s(%s = ...)`, or pass `--set %s=...`", t.model.Name.Name, name, name)
}

// noSeq reports a use of T where nothing says what it is.
func (s *State) noSeq(at source.Span) {
	s.errorf(codeMissing, at, "`T` has no value: it comes from the train block").
		Hint("add `train { seq = 1024 ... }`, or use a parameter of the model")
}
