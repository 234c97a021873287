package front

import (
	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/diag/suggest"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/op"
)

// sig is what can be called: an op, a block, a model, a constructor or a function of constants.
type sig struct {
	what   string // "op", "block", "model", "word", "function"
	name   string
	span   source.Span // of the declaration, when it is in a text
	params []sigParam
}

// sigParam is one parameter of a sig.
type sigParam struct {
	name string
	flag bool      // a bare name sets it
	must bool      // has no default
	decl *op.Param // of an op or constructor: what its value may be; nil: anything
}

// bound is the argument of one parameter; the zero bound is an absent one.
type bound struct {
	arg  *ast.Arg
	flag bool // a bare name: the value is true
}

func (b bound) given() bool { return b.arg != nil }

func (g *sig) names() []string {
	out := make([]string, len(g.params))
	for i, p := range g.params {
		out[i] = p.name
	}
	return out
}

func (g *sig) index(name string) int {
	for i := range g.params {
		if g.params[i].name == name {
			return i
		}
	}
	return -1
}

func opSig(d *op.Def) *sig { return declSig("op", d.Name, d.Params) }

func declSig(what, name string, params []op.Param) *sig {
	g := &sig{what: what, name: name}
	for i := range params {
		p := &params[i]
		g.params = append(g.params, sigParam{p.Name, p.Kind == op.Bool, p.Default == nil, p})
	}
	return g
}

// textSig is the signature of a block or model. A parameter whose default is true or false
// is a flag.
func textSig(what string, name ast.Ident, params []*ast.Param) *sig {
	g := &sig{what: what, name: name.Name, span: name.Span}
	for _, p := range params {
		_, flag := p.Default.(*ast.Bool)
		g.params = append(g.params, sigParam{name: p.Name.Name, flag: flag, must: p.Default == nil})
	}
	return g
}

// binder reports what is wrong with a call's arguments. A nil *binder binds silently, for
// passes after names.
type binder struct {
	s       *State
	inScope func(string) bool
	scope   func() []string // names for did-you-mean
	partial bool            // missing arguments are fine: more may be bound later
}

// bind gives each parameter of g its argument. The order is: positional arguments, then named
// ones; flags stand anywhere (rule 5).
func (b *binder) bind(g *sig, args []*ast.Arg, call source.Span) []bound {
	out := make([]bound, len(g.params))
	next, named, broken := 0, false, false
	for _, a := range args {
		if a.Name != nil {
			named = true
			i := g.index(a.Name.Name)
			if i < 0 {
				broken = true
				b.unknownArg(g, a.Name)
				continue
			}
			if out[i].given() {
				broken = true
				b.twice(g, a.Name.Span, g.params[i].name, out[i].arg)
				continue
			}
			out[i] = bound{arg: a}
			continue
		}
		if id, ok := a.Value.(*ast.Ident); ok {
			if i := g.index(id.Name); i >= 0 && g.params[i].flag {
				if b != nil && b.inScope(id.Name) {
					broken = true
					b.s.errorf(codeFlag, id.Span, "`%s` is a flag of `%s` and also a name here", id.Name, g.name).
						Hint("write `%s = %s` to pass the value, or `%s = true` to set the flag", id.Name, id.Name, id.Name)
				} else if out[i].given() {
					broken = true
					b.twice(g, id.Span, id.Name, out[i].arg)
				}
				out[i] = bound{arg: a, flag: true}
				continue
			}
			if b != nil && b.misspeltFlag(g, id, next, named) {
				broken = true
				continue
			}
		}
		for next < len(out) && out[next].given() && out[next].flag {
			next++
		}
		switch {
		case next >= len(out):
			broken = true
			b.tooMany(g, a)
		case named:
			broken = true
			b.afterNamed(g, a, next)
		case out[next].given():
			broken = true
			b.twice(g, a.Span, g.params[next].name, out[next].arg)
		default:
			out[next] = bound{arg: a}
		}
		next++
	}
	if b != nil && !b.partial && !broken {
		b.missing(g, out, call)
	}
	return out
}

// misspeltFlag reports a bare name that is near a flag and means nothing else.
func (b *binder) misspeltFlag(g *sig, id *ast.Ident, next int, named bool) bool {
	if b.inScope(id.Name) {
		return false
	}
	if next < len(g.params) && !named && g.params[next].decl != nil && b.s.isWord(id.Name, g.params[next].decl) {
		return false
	}
	var flags []string
	for _, p := range g.params {
		if p.flag {
			flags = append(flags, p.name)
		}
	}
	n := suggest.Nearest(id.Name, flags)
	if n == "" && !named && next < len(g.params) {
		return false // an ordinary positional argument, checked as such
	}
	d := b.s.errorf(codeUnknown, id.Span, "`%s` has no flag `%s`", g.name, id.Name)
	if n = suggest.Nearest(id.Name, few(append(flags, b.scope()...))); n != "" {
		d.Hint("did you mean `%s`?", n)
	} else if len(flags) > 0 {
		d.Hint("its flags are %s", suggest.List(flags))
	}
	return true
}

func (b *binder) unknownArg(g *sig, name *ast.Ident) {
	if b == nil {
		return
	}
	d := b.s.errorf(codeUnknown, name.Span, "`%s` has no parameter `%s`", g.name, name.Name)
	if g.span.Valid() {
		d.Also(g.span, "declared here")
	}
	if len(g.params) == 0 {
		d.Hint("it takes no arguments")
		return
	}
	if p := foreignParam(name.Name, g.names()); p != "" {
		d.Hint("it is called `%s` here", p)
		return
	}
	d.Hint("%s", suggest.HintOr(name.Name, g.names()))
}

func (b *binder) twice(g *sig, at source.Span, param string, first *ast.Arg) {
	if b == nil {
		return
	}
	b.s.errorf(codeArgs, at, "`%s` gets its `%s` twice", g.name, param).Also(first.Span, "the first time")
}

func (b *binder) tooMany(g *sig, a *ast.Arg) {
	if b == nil {
		return
	}
	d := b.s.errorf(codeArgs, a.Span, "`%s` takes %s", g.name, plural(len(g.params), "argument"))
	if g.span.Valid() {
		d.Also(g.span, "declared here")
	}
	if len(g.params) > 0 {
		d.Hint("its parameters are %s", inOrder(g.names()))
	}
}

func (b *binder) afterNamed(g *sig, a *ast.Arg, next int) {
	if b == nil {
		return
	}
	d := b.s.errorf(codeArgs, a.Span, "a positional argument of `%s` stands after a named one", g.name)
	for i := next; i < len(g.params); i++ {
		if p := g.params[i]; p.must {
			d.Hint("write `%s = %s`, or move it to the front", p.name, a.Value.Pos().Text())
			return
		}
	}
	d.Hint("give its name: `name = %s`", a.Value.Pos().Text())
}

func (b *binder) missing(g *sig, got []bound, call source.Span) {
	var absent []string
	for i, p := range g.params {
		if p.must && !got[i].given() {
			absent = append(absent, p.name)
		}
	}
	if len(absent) == 0 {
		return
	}
	d := b.s.errorf(codeMissing, call, "`%s` needs %s", g.name, inOrder(absent))
	if g.span.Valid() {
		d.Also(g.span, "declared here")
	}
	for _, p := range g.params {
		if p.name == absent[0] && p.decl != nil && p.decl.Doc != "" {
			d.Note("%s: %s", p.name, p.decl.Doc)
		}
	}
}

func plural(n int, word string) string {
	switch n {
	case 0:
		return "no " + word + "s"
	case 1:
		return "1 " + word
	}
	return itoa(n) + " " + word + "s"
}

// inOrder writes names as they are declared: "`x`, `out` and `bias`".
func inOrder(names []string) string {
	out := ""
	for i, n := range names {
		switch {
		case i == 0:
		case i == len(names)-1:
			out += " and "
		default:
			out += ", "
		}
		out += "`" + n + "`"
	}
	return out
}
