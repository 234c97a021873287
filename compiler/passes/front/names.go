package front

import (
	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/diag/suggest"
	"github.com/megatrain/mtc/lang/source"
)

// builtins cannot be declared.
var builtins = map[string]string{
	"B":        "the rows of a batch",
	"T":        "the sequence length",
	"tokens":   "the ids of the batch, i32[B, T]",
	"position": "the position of each token, i32[B, T]",
}

// Names resolves every name of every file, in branches that are not taken and blocks that
// are not called too, and checks the arguments of every call against its callee.
func Names(s *State) {
	s.labels = map[*ast.Model]*labelSet{}
	defer s.noteUnknown()
	for _, f := range s.Files {
		for _, m := range ownModels(f) {
			if m.Instance != nil {
				s.instanceNames(f, m)
			} else {
				s.modelNamesCheck(f, m)
			}
		}
	}
	if t := s.target; t.model != nil {
		for _, set := range t.sets {
			for i, p := range t.model.Params {
				if p.Name.Name == set.key.Name {
					s.paramValue(t.model, i, set.value)
				}
			}
		}
	}
}

// instanceNames checks `model a = b(...)`: b exists, its parameters do.
func (s *State) instanceNames(f *ast.File, m *ast.Model) {
	s.notBuiltin(m.Name, "a model")
	callee := m.Instance.Callee
	if s.lookupModel(f, callee.Name) == nil {
		d := s.errorf(codeUnknown, callee.Span, "there is no model `%s`", callee.Name)
		if s.full() {
			return
		}
		names := s.modelNames(f)
		if i := indexOf(names, m.Name.Name); i >= 0 {
			names = append(names[:i:i], names[i+1:]...)
		}
		if len(names) > 0 {
			d.Hint("%s", suggest.HintOr(callee.Name, few(names)))
		} else {
			d.Hint("import the file that has it: `use \"%s.mt\"`", callee.Name)
		}
		return
	}
	base := s.baseOf(m)
	if base == nil {
		return
	}
	g := textSig("model", base.Name, base.Params)
	b := &binder{s: s, inScope: func(string) bool { return false }, scope: func() []string { return nil }, partial: true}
	for i, a := range b.bind(g, m.Instance.Args, m.Instance.Span) {
		if a.given() && !a.flag {
			s.paramValue(base, i, a.arg.Value)
		}
	}
	if l := m.Instance.Label; l != nil {
		s.errorf(codeForm, l.Span, "an instance takes no label").Hint("remove `%s:`", l.Name)
	}
}

// paramValue checks a value given to parameter i of m: it may name earlier parameters.
func (s *State) paramValue(m *ast.Model, i int, e ast.Expr) { s.newNames(m, i).expr(e, nil) }

func (s *State) notBuiltin(id ast.Ident, what string) bool {
	doc, ok := builtins[id.Name]
	if ok {
		s.errorf(codeBuiltin, id.Span, "`%s` is built in and cannot be %s", id.Name, what).
			Note("`%s` is %s", id.Name, doc).
			Hint("choose another name")
	}
	return !ok
}

// modelNamesCheck checks a model with a body.
func (s *State) modelNamesCheck(f *ast.File, m *ast.Model) {
	s.notBuiltin(m.Name, "a model")
	s.labels[m] = s.collectLabels(m)
	s.declaredOnce(m)
	if s.tooManyParams(m) {
		return
	}
	for i, p := range m.Params {
		if s.notBuiltin(p.Name, "a parameter") && p.Default != nil {
			s.paramValue(m, i, p.Default)
		}
	}
	s.presetNames(m)
	for i, in := range m.Inits {
		if i > 0 {
			s.errorf(codeInit, headSpan(in.Span, "init"), "`init` stands once in a model").
				Also(headSpan(m.Inits[0].Span, "init"), "the first one").
				Hint("give a single weight its own: `linear(..., init = %s)`", in.Value.Pos().Text())
		}
		s.bodyNames(m).expr(in.Value, initParam)
	}
	for _, b := range m.Blocks {
		s.blockNames(m, b)
	}
	s.blockCycles(m)
	switch {
	case len(m.Forwards) == 0:
		s.errorf(codeForm, m.Name.Span, "model `%s` has no `forward`", m.Name.Name).
			Hint("write `forward(tokens) { ... return head: linear(x, V) }`")
	case len(m.Forwards) > 1:
		s.errorf(codeTwice, headSpan(m.Forwards[1].Span, "forward"), "a model has one `forward`").
			Also(headSpan(m.Forwards[0].Span, "forward"), "the first one")
	}
	for _, fw := range m.Forwards {
		s.forwardNames(m, fw)
	}
	s.mapNames(m)
}

// declaredOnce reports parameters, presets, blocks and maps with one name.
func (s *State) declaredOnce(m *ast.Model) {
	once := func(what string) func(ast.Ident) {
		seen := map[string]source.Span{}
		return func(id ast.Ident) {
			if first, ok := seen[id.Name]; ok {
				s.errorf(codeTwice, id.Span, "%s `%s` is declared twice", what, id.Name).Also(first, "the first one")
				return
			}
			seen[id.Name] = id.Span
		}
	}
	param, preset, block, weights := once("parameter"), once("preset"), once("block"), once("weights map")
	for _, p := range m.Params {
		param(p.Name)
	}
	for _, p := range m.Presets {
		preset(p.Name)
	}
	for _, b := range m.Blocks {
		block(b.Name)
		if d := s.In.Ops.Lookup(b.Name.Name); d != nil && !d.Hidden {
			s.errorf(codeTwice, b.Name.Span, "`%s` is an op, so a block cannot have this name", b.Name.Name).Hint("choose another name")
		} else if findCtor(functions, b.Name.Name) != nil {
			s.errorf(codeTwice, b.Name.Span, "`%s` is a function of constants, so a block cannot have this name", b.Name.Name).Hint("choose another name")
		}
		s.notBuiltin(b.Name, "a block")
	}
	for _, w := range m.Weights {
		weights(w.Name)
	}
}

// maxParams bounds the parameters of one model or block.
const maxParams = 256

func (s *State) tooManyParams(m *ast.Model) bool {
	many := func(id ast.Ident, n int) bool {
		if n > maxParams {
			s.errorf(codeTooMany, id.Span, "`%s` has %d parameters, and may have %d", id.Name, n, maxParams)
		}
		return n > maxParams
	}
	bad := many(m.Name, len(m.Params))
	for _, b := range m.Blocks {
		bad = many(b.Name, len(b.Params)) || bad
	}
	return bad
}

func (s *State) presetNames(m *ast.Model) {
	params := paramNames(m)
	for _, p := range m.Presets {
		seen := map[string]*ast.Arg{}
		for _, a := range p.Args {
			if a.Name == nil {
				s.errorf(codeForm, a.Span, "a preset sets parameters by name").Hint("write `D = 1024`")
				continue
			}
			i := indexOf(params, a.Name.Name)
			if i < 0 {
				s.errorf(codeUnknown, a.Name.Span, "model `%s` has no parameter `%s`", m.Name.Name, a.Name.Name).
					Hint("%s", suggest.HintOr(a.Name.Name, params))
				continue
			}
			if first := seen[a.Name.Name]; first != nil {
				s.errorf(codeTwice, a.Name.Span, "preset `%s` sets `%s` twice", p.Name.Name, a.Name.Name).Also(first.Span, "the first time")
				continue
			}
			seen[a.Name.Name] = a
			s.paramValue(m, i, a.Value)
		}
	}
}

func (s *State) blockNames(m *ast.Model, b *ast.Block) {
	n := s.bodyNames(m)
	n.block = b
	n.labels = s.labels[m].blocks[b.Name.Name]
	seen := map[string]source.Span{}
	for i, p := range b.Params {
		name := p.Name.Name
		if first, ok := seen[name]; ok {
			s.errorf(codeTwice, p.Name.Span, "parameter `%s` is declared twice", name).Also(first, "the first one")
			continue
		}
		seen[name] = p.Name.Span
		if !s.notBuiltin(p.Name, "a parameter") {
			continue
		}
		if n.kind(name) == constName {
			s.errorf(codeTwice, p.Name.Span, "`%s` is a parameter of model `%s`, which a block sees already", name, m.Name.Name).
				Hint("choose another name, or leave it out")
		}
		if p.Default == nil {
			n.layer.vals[name] = eitherName
			continue
		}
		for _, q := range b.Params[i:] {
			n.later[q.Name.Name] = true
		}
		n.expr(p.Default, nil)
		clear(n.later)
		n.layer.vals[name] = constName
	}
	n.body(b.Body)
	if !s.returns(b) && !s.assignsParam(m, b) && !n.callsParam {
		d := s.errorf(codeForm, b.Name.Span, "block `%s` neither returns a value nor assigns its parameter", b.Name.Name)
		if len(b.Params) > 0 {
			d.Hint("write `%s += ...`, or `return ...`", b.Params[0].Name.Name)
		} else {
			d.Hint("a block takes the tensor it works on: `block %s(x) { ... }`", b.Name.Name)
		}
	}
}

func (s *State) forwardNames(m *ast.Model, fw *ast.Forward) {
	n := s.bodyNames(m)
	n.forward = true
	n.labels = s.labels[m].forward
	n.layer.vals["tokens"], n.layer.vals["position"] = tensorName, tensorName
	seen := map[string]bool{}
	for _, p := range fw.Params {
		name := p.Name.Name
		switch {
		case name != "tokens" && name != "position":
			s.errorf(codeUnknown, p.Name.Span, "`forward` takes `tokens` and `position`, not `%s`", name).
				Hint("%s", suggest.HintOr(name, []string{"tokens", "position"}))
			n.layer.vals[name] = tensorName // so that its uses stay silent
		case p.Default != nil:
			s.errorf(codeForm, p.Span, "`%s` has no default: it comes with the batch", name).Hint("write `forward(%s)`", name)
		case seen[name]:
			s.errorf(codeTwice, p.Name.Span, "parameter `%s` is declared twice", name)
		}
		seen[name] = true
	}
	n.body(fw.Body)
	if !hasReturn(fw.Body) {
		s.errorf(codeReturn, headSpan(fw.Span, "forward"), "`forward` returns no logits").
			Hint("end it with `return head: linear(x, V)`")
	}
}

// blockCycles reports blocks that call themselves, directly or through others, once a circle.
func (s *State) blockCycles(m *ast.Model) {
	const open, done = 1, 2
	mark := map[string]int{}
	var path []string
	var visit func(b *ast.Block)
	visit = func(b *ast.Block) {
		mark[b.Name.Name] = open
		path = append(path, b.Name.Name)
		walkCalls(b.Body, func(c *ast.Call) {
			next := s.blockOf(m, c.Callee.Name)
			if next == nil {
				return
			}
			switch mark[next.Name.Name] {
			case 0:
				visit(next)
			case open:
				chain := path[indexOf(path, next.Name.Name):]
				if len(chain) == 1 {
					s.errorf(codeRecursion, c.Callee.Span, "block `%s` calls itself", chain[0]).
						Hint("repetition belongs into `forward`: `repeat n { %s(x) }`", chain[0])
				} else {
					s.errorf(codeRecursion, c.Callee.Span, "blocks call each other in a circle: %s", circle(chain)).
						Hint("everything in a model is static, so a circle of blocks would never end")
				}
			}
		})
		path = path[:len(path)-1]
		mark[b.Name.Name] = done
	}
	for _, b := range m.Blocks {
		if mark[b.Name.Name] == 0 {
			visit(b)
		}
	}
}

func circle(chain []string) string {
	out := ""
	for _, c := range chain {
		out += c + " -> "
	}
	return out + chain[0]
}
