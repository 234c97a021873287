package front

import (
	"math"
	"strings"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/moe"
	"github.com/megatrain/mtc/runtime/plan"
)

// Params gives every weight its path, resolves ties and inits, and binds parameters to the
// weight slots of the units.
func Params(s *State) {
	if s.spent {
		return
	}
	p := &paramPass{s: s, owners: map[string][]*ir.Param{}, first: map[string]*ir.Node{}, said: map[source.Span]bool{}}
	p.modelInit()
	for _, b := range s.units {
		slots := map[*ir.Param]*ir.Weight{}
		for _, n := range b.unit.Graph.Nodes {
			info := s.nodes[n]
			if info.bad {
				if !s.Diags.HasErrors() {
					panic("an op has no shape, and nothing says why")
				}
				continue
			}
			p.node(b, n, info, slots)
		}
	}
	p.starts()
	var total int64
	for _, q := range s.Model.Params {
		total += q.Elems()
		if total > maxElems {
			s.errorf(codeOverflow, q.Span, "the model has more than 2^58 parameters")
			return
		}
	}
}

type paramPass struct {
	s      *State
	init   *plan.Init // the model's, nil without
	badIni bool       // the model's init was reported, or its absence
	owners map[string][]*ir.Param
	first  map[string]*ir.Node // by path, for weights named twice
	said   map[source.Span]bool
}

func (p *paramPass) modelInit() {
	s := p.s
	if s.target.model == nil || len(s.target.model.Inits) == 0 {
		return
	}
	e := s.target.model.Inits[0].Value
	v, ok := s.eval(e, s.consts, initParam)
	if ok {
		v, ok = s.fit(v, initParam, s.Model.Name, e)
	}
	if !ok {
		p.badIni = true
		return
	}
	in, ok := s.initOf(v, e.Pos())
	if !ok {
		p.badIni = true
		return
	}
	p.init = &in
}

// initOf turns a constant into an init.
func (s *State) initOf(v op.Value, at source.Span) (plan.Init, bool) {
	switch v.Str {
	case "zero":
		return plan.Init{Kind: plan.InitZero}, true
	case "one":
		return plan.Init{Kind: plan.InitOne}, true
	}
	scale := v.Args[0].Num()
	if !(scale >= 0) {
		s.errorf(codeRange, at, "`%s` takes a number of at least 0, not %s", v.Str, v.Args[0])
		return plan.Init{}, false
	}
	kind := plan.InitNormal
	if v.Str == "uniform" {
		kind = plan.InitUniform
	}
	return plan.Init{Kind: kind, Scale: scale}, true
}

// once reports whether a span has not been spoken of yet: instances of a block share spans.
func (p *paramPass) once(at source.Span) bool {
	if p.said[at] {
		return false
	}
	p.said[at] = true
	return true
}

func (p *paramPass) node(b *build, n *ir.Node, info *nodeInfo, slots map[*ir.Param]*ir.Weight) {
	s := p.s
	owned := n.Call.Weights
	if info.tie != nil {
		if len(owned) == 0 {
			return
		}
		q := p.tied(b, n, info)
		if q == nil {
			return
		}
		bind(b, n, q, q.Path, slots)
		owned = owned[1:]
	}
	if len(owned) == 0 {
		return
	}
	if info.name.Name == "" {
		if p.once(n.Span) {
			p.noName(n)
		}
		return
	}
	local := info.prefix + info.name.Name
	var mine []*ir.Param
	for _, w := range owned {
		path := b.prefix + local + "." + w.Name
		if first := p.first[path]; first != nil {
			if p.once(n.Span) {
				p.twice(n, info, first, path)
			}
			return
		}
		p.first[path] = n
		q := &ir.Param{Path: path, Shape: w.Shape, Role: w.Role, Span: n.Span}
		if !p.setInit(n, info, q) {
			return
		}
		if w.Experts > 0 {
			p.parts(b, info, q, w, local[len(info.expert):]+"."+w.Name)
		} else {
			s.params[path] = q
			s.Model.Params = append(s.Model.Params, q)
		}
		mine = append(mine, q)
		bind(b, n, q, local+"."+w.Name, slots)
	}
	p.owners[b.prefix+local] = mine
}

// parts makes a parameter of each expert's share of a weight: layer[3].moe.expert[5].up.weight.
func (p *paramPass) parts(b *build, info *nodeInfo, q *ir.Param, w op.Weight, rest string) {
	for e := range w.Experts {
		path := b.prefix + info.expert + "[" + itoa(int(e)) + "]" + rest
		part := &ir.Param{Path: path, Shape: w.Shape[1:], Role: q.Role, Init: q.Init, Span: q.Span, Uses: 1}
		p.s.params[path] = part
		p.s.Model.Params = append(p.s.Model.Params, part)
		q.Parts = append(q.Parts, part)
	}
}

// starts scales the cutoffs that routers begin with by the deviation that logits have at first:
// that of the router's weight times the root of the input's width, for an input of norm one an
// element.
func (p *paramPass) starts() {
	s := p.s
	for _, r := range s.Model.Routers {
		q := s.params[r.Path+".router.weight"]
		if q == nil {
			continue
		}
		dev := q.Init.Scale * math.Sqrt(float64(q.Shape.Last().N))
		if q.Init.Kind == plan.InitUniform {
			dev /= math.Sqrt(3)
		}
		if q.Init.Kind == plan.InitZero && r.Attr["kind"].Int == moe.Cutoff && r.Attr["pool"].Int == moe.NoPool && p.once(r.Span) {
			s.Diags.Warnf(codeRouter, r.Span, "the router of `%s` starts at zero, so all logits are equal: no token is above a cutoff, and the router gets no gradient", r.Path).
				Hint("give it an init that spreads the logits, `init = normal(1 / sqrt(D))`, or a warm-up in which experts choose")
		}
		if q.Init.Kind == plan.InitZero && r.Attr["kind"].Int == moe.TopK && r.Attr["k"].Int < r.Experts && p.once(r.Span) {
			s.Diags.Warnf(codeRouterIdle, r.Span, "the router of `%s` starts at zero, so all logits are equal: every token of the first step goes to the first %d of %d experts", r.Path, r.Attr["k"].Int, r.Experts).
				Hint("give it an init that spreads the logits: `init = normal(1 / sqrt(D))`")
		}
		if start := r.Attr["start"].Float * dev; math.Abs(start) < math.MaxFloat32 {
			r.Attr["start"] = *op.FloatValue(start)
		}
		for _, b := range s.units {
			if b.unit.Router != r {
				continue
			}
			for _, n := range b.unit.Graph.Nodes {
				if _, ok := n.Call.Attr["start"]; ok && n.Call.Out.Shape != nil {
					n.Call.Attr["start"] = r.Attr["start"]
					_ = n.Call.Def.Infer(n.Call) // it fitted before
				}
			}
		}
	}
}

// bind puts a parameter into a weight slot of the unit, one slot for each parameter.
func bind(b *build, n *ir.Node, q *ir.Param, path string, slots map[*ir.Param]*ir.Weight) {
	w := slots[q]
	if w == nil {
		w = &ir.Weight{Path: path, Shape: q.Shape, Role: q.Role, Span: n.Span}
		slots[q] = w
		b.unit.Graph.Weights = append(b.unit.Graph.Weights, w)
		b.unit.Params = append(b.unit.Params, q)
		q.Uses++
	}
	n.Weights = append(n.Weights, w)
}

func (p *paramPass) setInit(n *ir.Node, info *nodeInfo, q *ir.Param) bool {
	switch q.Role {
	case op.Norm:
		q.Init = plan.Init{Kind: plan.InitOne}
		return true
	case op.Bias:
		q.Init = plan.Init{Kind: plan.InitZero}
		return true
	}
	for _, decl := range n.Call.Def.Params {
		if decl.Kind != op.InitKind {
			continue
		}
		if v := n.Call.Attr[decl.Name]; !v.IsNone() {
			in, ok := p.s.initOf(v, info.inits)
			q.Init = in
			return ok
		}
	}
	if p.init == nil {
		if !p.badIni {
			p.badIni = true
			p.s.errorf(codeInit, n.Span, "nothing says how the weight of `%s` starts", info.name.Name).
				Hint("write `init normal(0.02)` once in the model, or `init = normal(0.02)` in the call")
		}
		return false
	}
	q.Init = *p.init
	return true
}

// tied finds the parameter that a tie names: of this body, else of forward.
func (p *paramPass) tied(b *build, n *ir.Node, info *nodeInfo) *ir.Param {
	s, label := p.s, info.tie
	owner := p.owners[b.prefix+info.prefix+label.Name]
	if owner == nil {
		owner = p.owners[label.Name]
	}
	if len(owner) == 0 {
		if p.once(label.Span) && !s.Diags.HasErrors() {
			s.errorf(codeTie, label.Span, "`%s` owns no weight before this point", label.Name).
				Hint("`tie` takes the label of a call that owns its weight and stands earlier, such as `wte: embed(...)`")
		}
		return nil
	}
	q, w := owner[0], n.Call.Weights[0]
	if !q.Shape.Equal(w.Shape) {
		if p.once(label.Span) {
			s.errorf(codeTie, label.Span, "the weight of `%s` is %s, and `%s` needs %s", label.Name, q.Shape, n.Call.Def.Name, w.Shape).
				Also(q.Span, "%s", q.Shape).
				Hint("tied weights have one shape; a linear has [out, in], an embed [rows, dim]")
		}
		return nil
	}
	if info.inits.Valid() {
		if p.once(info.inits) {
			s.errorf(codeTie, info.inits, "a tied weight starts as `%s` does", label.Name).Hint("remove `init`, or give it to `%s`", label.Name)
		}
		return nil
	}
	return q
}

func (p *paramPass) noName(n *ir.Node) {
	name := opText(p.s, n)
	d := p.s.errorf(codeNoName, n.Span, "`%s` owns weights here, so it needs a name", name)
	label := map[string]string{"linear": "up", "embed": "wte", "rmsnorm": "norm", "layernorm": "norm"}[name]
	if label == "" {
		label = "w"
	}
	text := n.Span.Text()
	if i := strings.IndexByte(text, '('); i > 0 && len(text) > 40 {
		text = text[:i+1] + "...)"
	}
	d.Hint("write a label before it: `%s: %s`", label, text)
}

func (p *paramPass) twice(n *ir.Node, info *nodeInfo, first *ir.Node, path string) {
	at := n.Span
	name := strings.TrimSuffix(path, path[strings.LastIndexByte(path, '.'):])
	if first.Span == n.Span {
		// One call of the text, made twice: by an inlined block or a `repeat`.
		if info.chain.Valid() && info.prefix != "" {
			at = info.chain
		}
		p.s.errorf(codeSamePath, at, "two weights are called `%s`", name).
			Mark("the second time").
			Hint("give each call of the block a label of its own: `first: %s`", at.Text())
		return
	}
	if info.name.Span.Valid() {
		at = info.name.Span
	}
	p.s.errorf(codeSamePath, at, "two weights are called `%s`", name).
		Also(first.Span, "the first one").
		Hint("label this one: `%s2: %s(...)`", info.name.Name, opText(p.s, n))
}
