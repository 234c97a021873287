package front

import "github.com/megatrain/mtc/lang/ast"

// hasReturn reports whether a body returns a value on some branch.
func hasReturn(list []ast.Stmt) bool {
	for _, st := range list {
		switch st := st.(type) {
		case *ast.Return:
			return true
		case *ast.If:
			if hasReturn(st.Then) || hasReturn(st.Else) {
				return true
			}
		case *ast.Repeat:
			if hasReturn(st.Body) {
				return true
			}
		}
	}
	return false
}

// returns is hasReturn of a block, looked at once.
func (s *State) returns(b *ast.Block) bool {
	r, ok := s.returning[b]
	if !ok {
		r = hasReturn(b.Body)
		s.returning[b] = r
	}
	return r
}

// blockOf finds a block of a model.
func (s *State) blockOf(m *ast.Model, name string) *ast.Block {
	by := s.blocks[m]
	if by == nil {
		by = map[string]*ast.Block{}
		for _, b := range m.Blocks {
			if by[b.Name.Name] == nil {
				by[b.Name.Name] = b
			}
		}
		s.blocks[m] = by
	}
	return by[name]
}

// paramIndex is the place of each parameter of a model.
func (s *State) paramIndex(m *ast.Model) map[string]int {
	by := s.index[m]
	if by == nil {
		by = map[string]int{}
		for i, p := range m.Params {
			if _, twice := by[p.Name.Name]; !twice {
				by[p.Name.Name] = i
			}
		}
		s.index[m] = by
	}
	return by
}

// assignsParam reports whether a block assigns one of its parameters, itself or through a
// block it calls.
func (s *State) assignsParam(m *ast.Model, b *ast.Block) bool {
	for _, p := range b.Params {
		if p.Default == nil && s.assigns(m, b, p.Name.Name) {
			return true
		}
	}
	return false
}

// assignKey is a question that assigns answers once.
type assignKey struct {
	block *ast.Block
	name  string
}

// assigns reports whether a block assigns a name. Answers are kept: blocks that call blocks
// twice would else cost 2^n. A circle of blocks answers no; it is an error of its own.
func (s *State) assigns(m *ast.Model, b *ast.Block, name string) bool {
	k := assignKey{b, name}
	if known, ok := s.assigned[k]; ok {
		return known
	}
	s.assigned[k] = false
	r := s.assignsIn(m, b.Body, name)
	s.assigned[k] = r
	return r
}

func (s *State) assignsIn(m *ast.Model, list []ast.Stmt, name string) bool {
	for _, st := range list {
		switch st := st.(type) {
		case *ast.Assign:
			if st.Target.Name == name {
				return true
			}
		case *ast.If:
			if s.assignsIn(m, st.Then, name) || s.assignsIn(m, st.Else, name) {
				return true
			}
		case *ast.CallStmt:
			callee := s.blockOf(m, st.Call.Callee.Name)
			if callee == nil || s.returns(callee) {
				continue
			}
			g := textSig("block", callee.Name, callee.Params)
			for i, a := range (*binder)(nil).bind(g, st.Call.Args, st.Call.Span) {
				if !a.given() || a.flag {
					continue
				}
				if id, ok := a.arg.Value.(*ast.Ident); ok && id.Name == name && s.assigns(m, callee, g.params[i].name) {
					return true
				}
			}
		}
	}
	return false
}

// walkCalls visits every call of a body, in text order.
func walkCalls(list []ast.Stmt, visit func(*ast.Call)) {
	for _, st := range list {
		switch st := st.(type) {
		case *ast.Assign:
			exprCalls(st.Value, visit)
		case *ast.CallStmt:
			exprCalls(st.Call, visit)
		case *ast.If:
			exprCalls(st.Cond, visit)
			walkCalls(st.Then, visit)
			walkCalls(st.Else, visit)
		case *ast.Repeat:
			exprCalls(st.Count, visit)
			walkCalls(st.Body, visit)
		case *ast.Return:
			exprCalls(st.Value, visit)
		}
	}
}

func exprCalls(e ast.Expr, visit func(*ast.Call)) {
	switch e := e.(type) {
	case *ast.Paren:
		exprCalls(e.X, visit)
	case *ast.Unary:
		exprCalls(e.X, visit)
	case *ast.Binary:
		exprCalls(e.X, visit)
		exprCalls(e.Y, visit)
	case *ast.Cond:
		exprCalls(e.If, visit)
		exprCalls(e.Then, visit)
		exprCalls(e.Else, visit)
	case *ast.Call:
		visit(e)
		for _, a := range e.Args {
			exprCalls(a.Value, visit)
		}
	}
}

// labelSet holds the names that weights can have: labels, variables that a call is bound to,
// names of called blocks. forward and blocks keep them by body, for ties; all has every one.
type labelSet struct {
	forward map[string]bool
	blocks  map[string]map[string]bool
	all     map[string]bool
}

func (s *State) collectLabels(m *ast.Model) *labelSet {
	ls := &labelSet{forward: map[string]bool{}, blocks: map[string]map[string]bool{}, all: map[string]bool{}}
	collect := func(body []ast.Stmt, own map[string]bool) {
		walkCalls(body, func(c *ast.Call) {
			if c.Label != nil {
				own[c.Label.Name] = true
				ls.all[c.Label.Name] = true
			} else if s.blockOf(m, c.Callee.Name) != nil {
				ls.all[c.Callee.Name] = true
			}
		})
		eachAssign(body, func(a *ast.Assign) {
			if c, ok := a.Value.(*ast.Call); ok && c.Label == nil && !a.Add && s.blockOf(m, c.Callee.Name) == nil {
				own[a.Target.Name] = true
				ls.all[a.Target.Name] = true
			}
		})
	}
	for _, f := range m.Forwards {
		collect(f.Body, ls.forward)
	}
	for _, b := range m.Blocks {
		own := map[string]bool{}
		ls.blocks[b.Name.Name] = own
		collect(b.Body, own)
	}
	return ls
}

func eachAssign(list []ast.Stmt, visit func(*ast.Assign)) {
	for _, st := range list {
		switch st := st.(type) {
		case *ast.Assign:
			visit(st)
		case *ast.If:
			eachAssign(st.Then, visit)
			eachAssign(st.Else, visit)
		case *ast.Repeat:
			eachAssign(st.Body, visit)
		}
	}
}

// makesTensor reports whether an expression is a tensor by its form: it reads a variable or
// calls an op. It decides what a name that is both an op and a constructor means.
func (s *State) makesTensor(e ast.Expr, isVar func(string) bool) bool {
	switch e := e.(type) {
	case *ast.Paren:
		return s.makesTensor(e.X, isVar)
	case *ast.Unary:
		return s.makesTensor(e.X, isVar)
	case *ast.Binary:
		return s.makesTensor(e.X, isVar) || s.makesTensor(e.Y, isVar)
	case *ast.Cond:
		return s.makesTensor(e.Then, isVar) || s.makesTensor(e.Else, isVar)
	case *ast.Ident:
		return isVar(e.Name)
	case *ast.Call:
		if e.Label != nil || s.blockNamed(e.Callee.Name) {
			return true
		}
		if d := s.In.Ops.Lookup(e.Callee.Name); d == nil || d.Hidden {
			return false
		}
		if _, ctors := s.words(nil); findCtor(ctors, e.Callee.Name) == nil {
			return true
		}
		for _, a := range e.Args {
			if s.makesTensor(a.Value, isVar) {
				return true
			}
		}
	}
	return false
}
