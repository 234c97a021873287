package front

import (
	"math"
	"strconv"
	"strings"

	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/diag/suggest"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/op"
)

func itoa(n int) string { return strconv.Itoa(n) }

// inits are the constructors and words of an init.
var (
	initCtors = []op.Ctor{
		{Name: "normal", Params: []op.Param{{Name: "std", Kind: op.Float, Doc: "standard deviation, around 0"}}},
		{Name: "uniform", Params: []op.Param{{Name: "width", Kind: op.Float, Doc: "half width, around 0"}}},
	}
	initWords = []string{"zero", "one"}
)

// functions are the functions of constants.
var functions = []op.Ctor{
	{Name: "sqrt", Params: []op.Param{{Name: "x", Kind: op.Float}}},
	{Name: "ceil", Params: []op.Param{
		{Name: "n", Kind: op.Int, Doc: "the int to round up"},
		{Name: "m", Kind: op.Int, Doc: "a multiple of this"},
	}},
}

func findCtor(list []op.Ctor, name string) *op.Ctor {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

// words returns the bare words and the constructors that a value of p may be; for a nil p,
// whose value goes somewhere unknown, all that any op takes.
func (s *State) words(p *op.Param) (words []string, ctors []op.Ctor) {
	if p != nil {
		if p.Kind == op.InitKind {
			return initWords, initCtors
		}
		for _, w := range p.Words {
			// A constructor without a required argument may stand bare: `adamw`.
			if c := findCtor(p.Ctors, w); w != "none" && (c == nil || allDefaults(c)) {
				words = append(words, w)
			}
		}
		return words, p.Ctors
	}
	if s.allWords == nil {
		s.allWords, s.allCtors = append([]string{}, initWords...), append([]op.Ctor{}, initCtors...)
		for _, name := range s.In.Ops.Names() {
			d := s.In.Ops.Lookup(name)
			for i := range d.Params {
				w, c := s.words(&d.Params[i])
				if d.Params[i].Kind == op.Word {
					s.allWords, s.allCtors = append(s.allWords, w...), append(s.allCtors, c...)
					s.nestedWords(c)
				}
			}
		}
	}
	return s.allWords, s.allCtors
}

// nestedWords adds what the parameters of constructors take.
func (s *State) nestedWords(ctors []op.Ctor) {
	for _, c := range ctors {
		for i := range c.Params {
			if c.Params[i].Kind != op.Word {
				continue
			}
			w, inner := s.words(&c.Params[i])
			for _, x := range w {
				if indexOf(s.allWords, x) < 0 {
					s.allWords = append(s.allWords, x)
				}
			}
			for _, x := range inner {
				if findCtor(s.allCtors, x.Name) == nil {
					s.allCtors = append(s.allCtors, x)
				}
			}
			s.nestedWords(inner)
		}
	}
}

// ctorText is a constructor with its parameters: "cosine(peak, warmup = 0, final = 0.0)".
func ctorText(c *op.Ctor) string {
	var args []string
	for _, p := range c.Params {
		if args = append(args, p.Name); p.Default != nil {
			args[len(args)-1] += " = " + p.Default.String()
		}
	}
	return "`" + c.Name + "(" + strings.Join(args, ", ") + ")`"
}

func allDefaults(c *op.Ctor) bool {
	for _, p := range c.Params {
		if p.Default == nil {
			return false
		}
	}
	return true
}

// isWord reports whether a bare name may stand for itself as a value of p.
func (s *State) isWord(name string, p *op.Param) bool {
	w, _ := s.words(p)
	return indexOf(w, name) >= 0
}

// evalCall evaluates a call in a constant: a function, a constructor, or a block with some
// arguments bound.
func (s *State) evalCall(e *ast.Call, sc *scope, p *op.Param) (op.Value, bool) {
	if p != nil && p.Kind == op.BlockKind || s.bound[e] {
		return s.evalBlock(e, sc)
	}
	_, ctors := s.words(p)
	c := findCtor(ctors, e.Callee.Name)
	fn := findCtor(functions, e.Callee.Name)
	if c == nil {
		c = fn
	}
	if c == nil {
		if !s.bound[e] && (s.In.Ops.Lookup(e.Callee.Name) != nil || s.blockNamed(e.Callee.Name)) {
			s.errorf(codeNotConst, e.Span, "a constant is wanted, `%s` makes a tensor", e.Callee.Name)
		}
		return op.Value{}, false
	}
	g := declSig("word", c.Name, c.Params)
	out := op.Value{Kind: op.VCall, Str: c.Name}
	ok := true
	for i, b := range (*binder)(nil).bind(g, e.Args, e.Span) {
		decl := g.params[i].decl
		if !b.given() {
			if decl.Default == nil {
				return op.Value{}, false
			}
			out.Args = append(out.Args, *decl.Default)
			continue
		}
		if b.flag {
			out.Args = append(out.Args, *op.BoolValue(true))
			continue
		}
		v, vok := s.eval(b.arg.Value, sc, decl)
		if vok {
			v, vok = s.fit(v, decl, c.Name, b.arg.Value)
		}
		ok = ok && vok
		out.Args = append(out.Args, v)
	}
	switch {
	case !ok:
		return op.Value{}, false
	case c == fn:
		return s.callFunction(e, out.Args)
	case callDepth(out) > maxCallDepth:
		s.errorf(codeTooMany, e.Span, "constants nest deeper than %d calls", maxCallDepth)
		return op.Value{}, false
	}
	return out, true
}

func callDepth(v op.Value) int {
	d := 0
	for _, a := range v.Args {
		d = max(d, callDepth(a))
	}
	if v.Kind == op.VCall || v.Kind == op.VBlock {
		d++
	}
	return d
}

// evalBlock binds some arguments of a block; the rest of its parameters, left none, are what
// the op that takes the block passes.
func (s *State) evalBlock(e *ast.Call, sc *scope) (op.Value, bool) {
	b := s.findBlock(e.Callee.Name)
	if b == nil {
		return op.Value{}, false
	}
	out := op.Value{Kind: op.VBlock, Str: b.Name.Name}
	s.values[b.Name.Name] = true
	g := textSig("block", b.Name, b.Params)
	for i, a := range (*binder)(nil).bind(g, e.Args, e.Span) {
		v := op.Value{Kind: op.VUnbound}
		switch {
		case a.flag:
			v = *op.BoolValue(true)
		case a.given():
			var ok bool
			if v, ok = s.eval(a.arg.Value, sc, g.params[i].decl); !ok {
				return op.Value{}, false
			}
		}
		out.Args = append(out.Args, v)
	}
	return out, true
}

// callFunction evaluates sqrt and ceil.
func (s *State) callFunction(e *ast.Call, args []op.Value) (op.Value, bool) {
	switch e.Callee.Name {
	case "sqrt":
		return s.sqrt(e, args[0])
	}
	return s.ceil(e, args[0].Int, args[1].Int)
}

// fit checks that v may be a value of p, of callee. Ints become floats where a float is wanted.
func (s *State) fit(v op.Value, p *op.Param, callee string, at ast.Expr) (op.Value, bool) {
	if v.IsNone() && p.Default != nil && p.Default.IsNone() {
		return v, true
	}
	switch p.Kind {
	case op.Int:
		if v.Kind == op.VInt {
			return v, true
		}
	case op.Float:
		if v.Kind == op.VInt {
			return op.Value{Kind: op.VFloat, Float: float64(v.Int)}, true
		}
		if v.Kind == op.VFloat {
			return v, s.single(v.Float, p.Name, callee, at.Pos())
		}
	case op.Bool:
		if v.Kind == op.VBool {
			return v, true
		}
	case textKind:
		if v.Kind == op.VString {
			return v, true
		}
	case namesKind:
		return v, true
	case op.Word, op.InitKind:
		return s.fitWord(v, p, callee, at)
	case op.BlockKind:
		if v.Kind == op.VBlock {
			return v, true
		}
	}
	d := s.errorf(codeType, at.Pos(), "`%s` of `%s` is %s, not %s", p.Name, callee, article(p.Kind), describe(v))
	switch {
	case p.Kind == op.Int && v.Kind == op.VFloat && v.Float == float64(int64(v.Float)):
		d.Hint("a float operand makes the whole expression a float; write `%d`", int64(v.Float))
	case v.IsNone():
		d.Hint("`%s` must have a value here", p.Name)
	}
	return op.Value{}, false
}

func (s *State) fitWord(v op.Value, p *op.Param, callee string, at ast.Expr) (op.Value, bool) {
	words, ctors := s.words(p)
	all := append([]string(nil), words...)
	for _, c := range ctors {
		if indexOf(all, c.Name) < 0 {
			all = append(all, c.Name)
		}
	}
	if v.Kind == op.VWord && indexOf(words, v.Str) >= 0 {
		return v, true
	}
	if v.Kind == op.VCall {
		if c := findCtor(ctors, v.Str); c != nil && len(c.Params) == len(v.Args) {
			return v, true
		}
	}
	if p.Default != nil && p.Default.IsNone() {
		all = append(all, "none")
	}
	d := s.errorf(codeType, at.Pos(), "`%s` of `%s` cannot be %s", p.Name, callee, describe(v))
	switch {
	case v.Kind == op.VString && indexOf(words, v.Str) >= 0:
		d.Hint("write the word without quotes: `%s`", v.Str)
	case v.Kind == op.VWord || v.Kind == op.VString || v.Kind == op.VCall:
		d.Hint("%s", suggest.HintOr(v.Str, all))
	default:
		d.Hint("one of %s", suggest.List(all))
	}
	return op.Value{}, false
}

func article(k op.ParamKind) string {
	switch k {
	case textKind:
		return "a string"
	case namesKind:
		return "a list of names"
	case op.Int, op.InitKind:
		return "an " + k.String()
	case op.Bool:
		return "true or false"
	case op.Float:
		return "a number"
	}
	return "a " + k.String()
}

// single checks that a float is one in f32 too, in which kernels compute: one that vanishes or
// overflows there would make every step NaN.
func (s *State) single(x float64, param, callee string, at source.Span) bool {
	switch y := float64(float32(x)); {
	case x != 0 && y == 0:
		s.errorf(codeRange, at, "`%s` of `%s` is %s, which is 0 in f32", param, callee, op.FloatValue(x)).
			Hint("the smallest numbers of f32 are near 1e-38")
	case math.IsInf(y, 0):
		s.errorf(codeRange, at, "`%s` of `%s` is %s, which is too large for f32", param, callee, op.FloatValue(x)).
			Hint("the largest numbers of f32 are near 3e38")
	default:
		return true
	}
	return false
}
