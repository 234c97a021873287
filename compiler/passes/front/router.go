package front

import (
	"math"

	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/moe"
	"github.com/megatrain/mtc/runtime/tensor"
)

const poolStep = moe.Step

// routing is the checked constants of a router.
type routing struct {
	experts, slots int64
	mean           float64 // experts a token on average
	attr           map[string]op.Value
}

// tensorDim is the last dim of a routing in generation, where no pair is ever dropped.
func tensorDim(attr map[string]op.Value) tensor.Dim {
	return tensor.Dim{N: moe.RoutingWords(attr["experts"].Int, attr["most"].Int)}
}

// routerCheck reads the arguments of a router's constructor.
type routerCheck struct {
	s    *State
	v    op.Value
	ctor *op.Ctor
	call *ast.Call // its text, nil when it came by a name
	at   source.Span
	attr map[string]op.Value
	ok   bool
}

func (f *frame) router(call *op.Call, info *nodeInfo, c *ast.Call) (*routing, bool) {
	s := f.e.s
	v := call.Attr["router"]
	d := call.Def
	r := &routerCheck{s: s, v: v, at: info.args["router"], attr: map[string]op.Value{}, ok: true}
	for i := range d.Params {
		if d.Params[i].Name == "router" {
			r.ctor = findCtor(d.Params[i].Ctors, v.Str)
		}
	}
	for _, b := range (*binder)(nil).bind(opSig(d), c.Args, c.Span) {
		if b.given() && b.arg.Value.Pos() == r.at {
			r.call, _ = b.arg.Value.(*ast.Call)
		}
	}
	out := &routing{experts: call.Int("experts"), attr: r.attr}
	if out.experts < 1 || out.experts > maxExperts {
		s.errorf(codeRange, info.args["experts"], "`experts` is 1 to %d, not %d", maxExperts, out.experts)
		return nil, false
	}
	r.defaults(call.Attr["experts"])
	switch v.Str {
	case "threshold":
		r.threshold()
	case "expert_choice":
		r.expertChoice()
	case "topk":
		r.topk(out.experts)
	}
	if !r.ok {
		return nil, false
	}
	out.mean = float64(out.experts) * r.attr["rate"].Float
	if v.Str == "topk" {
		out.mean = float64(r.attr["k"].Int)
	}
	out.slots = DefaultSlots(out.mean, out.experts, v.Str == "topk")
	if rows := call.Attr["rows"]; !rows.IsNone() {
		switch {
		case v.Str == "topk":
			s.errorf(codeRange, info.args["rows"], "with `topk` each token has %d rows, so `rows` has no place here", out.slots)
			return nil, false
		case rows.Int < 1 || rows.Int > out.experts || float64(rows.Int) < out.mean:
			s.errorf(codeRange, info.args["rows"], "`rows` is at least the mean of %.4g experts a token and at most the %d experts, not %d", out.mean, out.experts, rows.Int)
			return nil, false
		}
		out.slots = rows.Int
	}
	most := out.experts
	if v.Str == "topk" {
		most = out.slots
	}
	r.set("slots", out.slots)
	r.set("most", most)
	r.attr["mean"] = *op.FloatValue(out.mean)
	r.warnings(out.experts, call.Attr["rows"], info.args["rows"], out.mean)
	return out, true
}

const maxExperts = 4096

// DefaultSlots is how many rows a token memory is made for: half more than the mean, so that a step
// may be uneven.
func DefaultSlots(mean float64, experts int64, exact bool) int64 {
	if exact {
		return int64(mean)
	}
	n := max(int64(math.Ceil(1.5*mean)), int64(math.Floor(mean))+1)
	return min(n, experts)
}

func (r *routerCheck) set(name string, n int64) { r.attr[name] = *op.IntValue(n) }

// defaults sets the constants that not every router has.
func (r *routerCheck) defaults(experts op.Value) {
	r.attr["experts"] = experts
	for _, name := range []string{"kind", "k", "balance", "pool", "choice", "causal"} {
		r.set(name, 0)
	}
	for _, name := range []string{"rate", "ema", "start", "u", "alpha", "zloss"} {
		r.attr[name] = *op.FloatValue(0)
	}
	r.attr["capacity"], r.attr["scale"] = *op.FloatValue(-1), *op.FloatValue(1)
	r.attr["sigmoid"], r.attr["renorm"] = *op.BoolValue(false), *op.BoolValue(false)
}

// arg is an argument of the constructor and where it stands.
func (r *routerCheck) arg(name string) (op.Value, source.Span) {
	return argOf(r.ctor, r.v, r.call, name, r.at)
}

func argOf(ctor *op.Ctor, v op.Value, call *ast.Call, name string, at source.Span) (op.Value, source.Span) {
	for i := range ctor.Params {
		if ctor.Params[i].Name != name {
			continue
		}
		if call != nil {
			if b := (*binder)(nil).bind(declSig("word", ctor.Name, ctor.Params), call.Args, call.Span)[i]; b.given() {
				at = b.arg.Value.Pos()
			}
		}
		return v.Args[i], at
	}
	return op.Value{}, at
}

// single refuses a constant that f32 does not hold.
func (r *routerCheck) single(name string, x float64, at source.Span) {
	r.ok = r.s.single(x, name, r.ctor.Name, at) && r.ok
}

func (r *routerCheck) fail(at source.Span, format string, args ...any) {
	r.s.errorf(codeRange, at, format, args...)
	r.ok = false
}

// share checks a rate against the tokens that it is a share of.
func (r *routerCheck) share(pool int64) {
	v, at := r.arg("rate")
	rate := v.Num()
	r.attr["rate"] = *op.FloatValue(rate)
	if !(rate > 0 && rate <= 1) {
		r.fail(at, "`rate` is a share of tokens, above 0 and at most 1, not %s", v)
		return
	}
	m := r.s.Model
	tokens, what := m.Batch*m.Seq, "a step"
	if pool == moe.Sequence {
		tokens, what = m.Seq, "a sequence"
	}
	r.single("rate", rate, at)
	if m.Train != nil && m.Train.Documents && pool == moe.Sequence {
		r.s.errorf(codeRange, at, "with `documents = packed` a sequence holds several documents, and experts would choose among all of them").
			Hint("`documents = rows` keeps them apart; a pool of `micro` or `step` is one of many documents anyway")
		r.ok = false
	}
	if tokens > 0 && rate*float64(tokens) < 1 && r.ok {
		r.s.errorf(codeRange, at, "a rate of %s gives an expert less than one of the %d tokens of %s", v, tokens, what).
			Hint("`rate` times the tokens is at least 1: take a higher rate or a larger pool")
		r.ok = false
	}
}

func (r *routerCheck) average() {
	v, at := r.arg("ema")
	r.attr["ema"] = v
	switch x := v.Num(); {
	case !(x >= 0 && x < 1):
		r.fail(at, "`ema` is at least 0 and below 1, not %s", v)
	case float32(x) == 1:
		r.s.errorf(codeRange, at, "an `ema` of %s is 1 in f32, with which cutoffs never move", v).
			Hint("a window of a twentieth of the run's steps is usual: `ema = 1 - 20 / steps`")
		r.ok = false
	}
}
