package parser

import (
	"github.com/alecthomas/participle/v2/lexer"

	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/source"
)

// spanOf is the place of the tokens a production took.
func (p *parser) spanOf(toks []lexer.Token) source.Span {
	if len(toks) == 0 {
		return source.Span{}
	}
	return p.span(toks[0].Pos.Offset, p.endOf(toks[len(toks)-1]))
}

func (p *parser) endOf(t lexer.Token) int {
	if g := p.bodies[t.Pos.Offset]; g != nil && t.Type >= kModelBody {
		return g.end
	}
	return min(t.Pos.Offset+len(t.Value), len(p.file.Text))
}

// nth makes an Ident of the n-th token of a production.
func (p *parser) nth(toks []lexer.Token, n int) ast.Ident {
	return ast.Ident{Span: p.spanOf(toks[n : n+1]), Name: toks[n].Value}
}

// body finds the group of the last token of a production.
func (p *parser) body(toks []lexer.Token) *group { return p.bodies[toks[len(toks)-1].Pos.Offset] }

func (p *parser) use(g *gUse) *ast.Use {
	return &ast.Use{Span: p.spanOf(g.Tokens), Path: unquote(g.Path), PathSpan: p.spanOf(g.Tokens[1:])}
}

func (p *parser) model(g *gModel) *ast.Model {
	m := &ast.Model{Span: p.spanOf(g.Tokens), Name: p.nth(g.Tokens, 1)}
	if g.Instance != nil {
		m.Instance = p.call(g.Instance.Of)
		return m
	}
	m.Params = p.params(g.Plain.Params)
	p.items(m, p.body(g.Tokens))
	return m
}

func (p *parser) params(gs []*gParam) []*ast.Param {
	var out []*ast.Param
	for _, g := range gs {
		a := &ast.Param{Span: p.spanOf(g.Tokens), Name: p.nth(g.Tokens, 0)}
		if g.Default != nil {
			a.Default = p.expr(g.Default)
		}
		out = append(out, a)
	}
	return out
}

func (p *parser) preset(g *gPreset) *ast.Preset {
	return &ast.Preset{Span: p.spanOf(g.Tokens), Name: p.nth(g.Tokens, 1), Args: p.presetArgs(p.body(g.Tokens))}
}

func (p *parser) named(g *gNamed) *ast.Arg {
	name := p.nth(g.Tokens, 0)
	return &ast.Arg{Span: p.spanOf(g.Tokens), Name: &name, Value: p.expr(g.Value)}
}

func (p *parser) init(g *gInit) *ast.Init {
	return &ast.Init{Span: p.spanOf(g.Tokens), Value: p.expr(g.Value)}
}

func (p *parser) block(g *gBlock) *ast.Block {
	return &ast.Block{
		Span: p.spanOf(g.Tokens), Name: p.nth(g.Tokens, 1), Params: p.params(g.Params), Body: p.stmts(p.body(g.Tokens)),
	}
}

func (p *parser) forward(g *gForward) *ast.Forward {
	return &ast.Forward{Span: p.spanOf(g.Tokens), Params: p.params(g.Params), Body: p.stmts(p.body(g.Tokens))}
}

func (p *parser) weights(g *gWeights) *ast.Weights {
	return &ast.Weights{Span: p.spanOf(g.Tokens), Name: p.nth(g.Tokens, 1), Body: p.weightStmts(p.body(g.Tokens))}
}

func (p *parser) weightStmt(g *gWeightLine) ast.WeightStmt {
	if g.If != nil {
		return p.weightIf(g.If)
	}
	e := &ast.WeightEntry{Span: p.spanOf(g.Entry.Tokens), Value: p.expr(g.Entry.Value)}
	for _, t := range g.Entry.Targets {
		e.Targets = append(e.Targets, p.path(t))
	}
	return e
}

func (p *parser) path(g *gPath) ast.WeightPath {
	path := ast.WeightPath{Span: p.spanOf(g.Tokens)}
	for _, part := range g.Parts {
		w := ast.WeightPart{Name: p.nth(part.Tokens, 0)}
		if part.Index != "" {
			i := p.nth(part.Tokens, 2)
			w.Index = &i
		}
		path.Parts = append(path.Parts, w)
	}
	return path
}

func (p *parser) weightIf(g *gWeightIf) *ast.WeightIf {
	w := &ast.WeightIf{Span: p.spanOf(g.Tokens), Cond: p.expr(g.Cond)}
	w.Then = p.weightStmts(p.firstBody(g.Tokens))
	switch {
	case g.ElseIf != nil:
		w.Else, w.HasElse = []ast.WeightStmt{p.weightIf(g.ElseIf)}, true
	case g.Else != nil:
		w.Else, w.HasElse = p.weightStmts(p.body(g.Tokens)), true
	}
	return w
}

// firstBody finds the group of the first body token of a production.
func (p *parser) firstBody(toks []lexer.Token) *group {
	for _, t := range toks {
		if t.Type >= kModelBody {
			return p.bodies[t.Pos.Offset]
		}
	}
	return &group{}
}

func (p *parser) train(g *gTrain) *ast.Train {
	return &ast.Train{Span: p.spanOf(g.Tokens), Fields: p.fields(p.body(g.Tokens))}
}

func (p *parser) field(g *gField) *ast.Field {
	if g.Call != nil {
		c := p.call(g.Call)
		return &ast.Field{Span: c.Span, Name: c.Callee, Value: c}
	}
	f := &ast.Field{Span: p.spanOf(g.Tokens), Name: p.nth(g.Tokens, 0), Value: p.expr(g.Value)}
	if g.Unit != "" {
		u := p.nth(g.Tokens, len(g.Tokens)-1)
		f.Unit = &u
	}
	return f
}

func (p *parser) stmt(g *gStmt) ast.Stmt {
	switch {
	case g.If != nil:
		return p.ifStmt(g.If)
	case g.Repeat != nil:
		r := &ast.Repeat{Span: p.spanOf(g.Repeat.Tokens), Count: p.expr(g.Repeat.Count)}
		if g.Repeat.Var != "" {
			v := p.nth(g.Repeat.Tokens, len(g.Repeat.Tokens)-2)
			r.Var = &v
		}
		r.Body = p.stmts(p.body(g.Repeat.Tokens))
		return r
	case g.Return != nil:
		return &ast.Return{Span: p.spanOf(g.Return.Tokens), Value: p.expr(g.Return.Value)}
	case g.Assign != nil:
		toks := g.Assign.Tokens
		return &ast.Assign{
			Span: p.spanOf(toks), Target: p.nth(toks, 0), Add: g.Assign.Op == "+=",
			OpSpan: p.spanOf(toks[1:2]), Value: p.expr(g.Assign.Value),
		}
	}
	return &ast.CallStmt{Span: p.spanOf(g.Call.Tokens), Call: p.call(g.Call)}
}

func (p *parser) ifStmt(g *gIf) *ast.If {
	s := &ast.If{Span: p.spanOf(g.Tokens), Cond: p.expr(g.Cond), Then: p.stmts(p.firstBody(g.Tokens))}
	switch {
	case g.ElseIf != nil:
		s.Else, s.HasElse = []ast.Stmt{p.ifStmt(g.ElseIf)}, true
	case g.Else != nil:
		s.Else, s.HasElse = p.stmts(p.body(g.Tokens)), true
	}
	return s
}
