package jinja

import "strings"

// scope is a set of names inside of another.
type scope struct {
	vars map[string]any
	up   *scope
}

func newScope(up *scope) *scope { return &scope{vars: map[string]any{}, up: up} }

func (s *scope) get(name string) (any, bool) {
	for ; s != nil; s = s.up {
		if v, ok := s.vars[name]; ok {
			return v, true
		}
	}
	return nil, false
}

// renderer is a rendering under way.
type renderer struct {
	out   *strings.Builder
	scope *scope
	spans []Span
	steps int
	depth int
	// inner counts the buffers that output goes to in place of the result: what is generated
	// there has no place in it yet.
	inner int
}

// macro is a function that a template defines.
type macro struct {
	*macroStmt
	scope *scope
}

// Ways out of a loop's body.
const (
	onward = iota
	leave
	again
)

func (r *renderer) write(s string, line int) {
	if int64(r.out.Len()+len(s)) > maxOutput {
		throw(line, "the text that it makes is longer than %d MiB", maxOutput>>20)
	}
	r.work(len(s)>>8, line)
	r.out.WriteString(s)
}

// run runs statements and says how a loop around them goes on.
func (r *renderer) run(body []stmt) int {
	for _, s := range body {
		switch s := s.(type) {
		case text:
			r.step(0)
			r.write(string(s), 0)
		case print:
			r.step(s.line)
			r.write(str(r.eval(s.e)), s.line)
		case *ifStmt:
			if how := r.choose(s); how != onward {
				return how
			}
		case *forStmt:
			r.loop(s)
		case *setStmt:
			r.set(s)
		case *macroStmt:
			r.scope.vars[s.name] = &macro{s, r.scope}
		case *callStmt:
			c, ok := s.call.(call)
			if !ok {
				throw(s.line, "`call` needs a call")
			}
			r.write(str(r.call(c, &macro{s.macro, r.scope})), s.line)
		case *filterStmt:
			r.write(str(r.onBlock(s.e, s.body)), s.line)
		case *genStmt:
			from := r.out.Len()
			up := r.scope
			r.scope = newScope(up)
			how := r.run(s.body)
			r.scope = up
			if r.inner > 0 {
				throw(0, "`generation` inside of a macro or a block that is set is not known")
			}
			r.spans = append(r.spans, Span{from, r.out.Len()})
			if how != onward {
				return how
			}
		case breakStmt:
			if s.next {
				return again
			}
			return leave
		}
	}
	return onward
}

func (r *renderer) choose(s *ifStmt) int {
	for i, c := range s.conds {
		r.step(s.line)
		if truth(r.eval(c)) {
			return r.run(s.thens[i])
		}
	}
	return r.run(s.other)
}

// capture runs statements and gives their output.
func (r *renderer) capture(body []stmt) string {
	out := r.out
	r.out = &strings.Builder{}
	r.inner++
	defer func() { r.out = out; r.inner-- }()
	r.run(body)
	return r.out.String()
}

// onBlock applies filters to the output of a block, which has names of its own.
func (r *renderer) onBlock(e expr, body []stmt) any {
	up := r.scope
	r.scope = newScope(up)
	s := r.capture(body)
	r.scope = up
	if e == nil {
		return s
	}
	return r.eval(withBlock(e, s))
}

// withBlock puts a text in the place of blockValue in a chain of filters.
func withBlock(e expr, s string) expr {
	switch e := e.(type) {
	case blockValue:
		return literal{s}
	case filter:
		e.of = withBlock(e.of, s)
		return e
	case test:
		e.of = withBlock(e.of, s)
		return e
	}
	return e
}

func (r *renderer) set(s *setStmt) {
	r.step(s.line)
	var v any
	if s.val != nil {
		v = r.eval(s.val)
	} else {
		v = r.onBlock(s.filters, s.body)
	}
	vals := []any{v}
	if len(s.targets) > 1 {
		if vals = items(v, s.line); len(vals) != len(s.targets) {
			throw(s.line, "%d values for %d names", len(vals), len(s.targets))
		}
	}
	for i, t := range s.targets {
		switch t := t.(type) {
		case nameExpr:
			r.scope.vars[t.name] = vals[i]
		case attr:
			ns, ok := r.eval(t.of).(*namespace)
			if !ok {
				throw(s.line, "only a namespace can be changed")
			}
			ns.vars[t.name] = vals[i]
		}
	}
}

// loop is the value `loop` inside of one.
type loop struct {
	items   []any
	at      int
	depth   int
	changed []any
}

func (r *renderer) loop(s *forStmt) {
	up := r.scope
	defer func() { r.scope = up }()
	all := items(r.eval(s.iter), s.line)
	r.work(len(all)>>4, s.line)
	if s.where != nil {
		var kept []any
		for _, x := range all {
			r.step(s.line)
			r.scope = newScope(up)
			r.unpack(s.names, x, s.line)
			if truth(r.eval(s.where)) {
				kept = append(kept, x)
			}
		}
		all = kept
		r.scope = up
	}
	if len(all) == 0 {
		r.scope = newScope(up)
		r.run(s.other)
		return
	}
	l := &loop{items: all}
	if outer, ok := up.get("loop"); ok {
		if o, ok := outer.(*loop); ok {
			l.depth = o.depth + 1
		}
	}
	for i, x := range all {
		r.step(s.line)
		// Names that an iteration sets end with it.
		r.scope = newScope(up)
		l.at = i
		r.scope.vars["loop"] = l
		r.unpack(s.names, x, s.line)
		if r.run(s.body) == leave {
			return
		}
	}
}

func (r *renderer) unpack(names []string, v any, line int) {
	if len(names) == 1 {
		r.scope.vars[names[0]] = v
		return
	}
	l := items(v, line)
	if len(l) != len(names) {
		throw(line, "%d values for %d names", len(l), len(names))
	}
	for i, n := range names {
		r.scope.vars[n] = l[i]
	}
}

// attr is an attribute of `loop`.
func (l *loop) attr(name string) (any, bool) {
	n := len(l.items)
	switch name {
	case "index":
		return int64(l.at + 1), true
	case "index0":
		return int64(l.at), true
	case "revindex":
		return int64(n - l.at), true
	case "revindex0":
		return int64(n - l.at - 1), true
	case "first":
		return l.at == 0, true
	case "last":
		return l.at == n-1, true
	case "length":
		return int64(n), true
	case "depth":
		return int64(l.depth + 1), true
	case "depth0":
		return int64(l.depth), true
	case "previtem":
		if l.at > 0 {
			return l.items[l.at-1], true
		}
		return undefined{name}, true
	case "nextitem":
		if l.at < n-1 {
			return l.items[l.at+1], true
		}
		return undefined{name}, true
	case "cycle":
		return function(func(c *callArgs) any {
			if len(c.args) == 0 {
				throw(c.line, "`cycle` needs values")
			}
			return c.args[l.at%len(c.args)]
		}), true
	case "changed":
		return function(func(c *callArgs) any {
			same := l.changed != nil && equalAll(l.changed, c.args)
			l.changed = append([]any{}, c.args...)
			return !same
		}), true
	}
	return nil, false
}
