package jinja

import (
	"math"
	"strings"
	"unicode/utf8"
)

// callArgs are the arguments of a call.
type callArgs struct {
	name  string
	args  []any
	named *Dict
	line  int
	r     *renderer // which the call is a part of
}

// arg is argument i, or the one of a name, or what stands for it.
func (c *callArgs) arg(i int, name string, or any) any {
	if i >= 0 && i < len(c.args) {
		return c.args[i]
	}
	if v, ok := c.named.Get(name); ok {
		return v
	}
	return or
}

func (c *callArgs) str(i int, name, or string) string {
	v := c.arg(i, name, or)
	s, ok := v.(string)
	if !ok {
		throw(c.line, "`%s` wants a string, not a %s", c.name, kind(v))
	}
	return s
}

func (c *callArgs) int(i int, name string, or int64) int64 {
	v := c.arg(i, name, or)
	n, ok := whole(v)
	if !ok {
		throw(c.line, "`%s` wants a whole number, not a %s", c.name, kind(v))
	}
	return n
}

func (r *renderer) eval(e expr) any {
	if r.depth++; r.depth > 4*maxDepth {
		throw(0, "calls are nested too deeply")
	}
	defer func() { r.depth-- }()
	switch e := e.(type) {
	case literal:
		return e.val
	case nameExpr:
		if v, ok := r.scope.get(e.name); ok {
			return v
		}
		return undefined{e.name}
	case attr:
		return r.attr(r.eval(e.of), e.name, e.line)
	case index:
		return r.index(r.eval(e.of), r.eval(e.at), e.line)
	case slice:
		return r.slice(e)
	case call:
		return r.call(e, nil)
	case filter:
		return r.filter(e)
	case test:
		return r.test(e) != e.not
	case unary:
		return r.unary(e)
	case binary:
		return r.binary(e)
	case compare:
		return r.compare(e)
	case cond:
		if truth(r.eval(e.c)) {
			return r.eval(e.a)
		}
		if e.b == nil {
			return undefined{"the other side of an `if` without `else`"}
		}
		return r.eval(e.b)
	case list:
		l := make([]any, 0, len(e.items))
		for _, x := range e.items {
			l = append(l, r.eval(x))
		}
		if e.tuple {
			return tuple(l)
		}
		return l
	case dictExpr:
		d := NewDict()
		for i, k := range e.keys {
			d.Set(str(r.eval(k)), r.eval(e.vals[i]))
		}
		return d
	}
	throw(0, "there is no block here")
	return nil
}

// attr is `v.name`: a method or attribute, else an item.
func (r *renderer) attr(v any, name string, line int) any {
	switch v := v.(type) {
	case undefined:
		throw(line, "`%s` is not defined, so it has no `%s`", v.name, name)
	case *loop:
		if x, ok := v.attr(name); ok {
			return x
		}
	case *namespace:
		if x, ok := v.vars[name]; ok {
			return x
		}
	case *Dict:
		if m := method(v, name); m != nil {
			return m
		}
		if x, ok := v.vals[name]; ok {
			return x
		}
	default:
		if m := method(v, name); m != nil {
			return m
		}
	}
	return undefined{name}
}

// index is `v[i]`: an item, else an attribute.
func (r *renderer) index(v, i any, line int) any {
	switch v := v.(type) {
	case undefined:
		throw(line, "`%s` is not defined, so it has no items", v.name)
	case *Dict:
		if x, ok := v.vals[str(i)]; ok {
			return x
		}
	case string:
		if n, ok := whole(i); ok {
			chars := items(v, line)
			if n < 0 {
				n += int64(len(chars))
			}
			if n >= 0 && n < int64(len(chars)) {
				return chars[n]
			}
			return undefined{str(i)}
		}
	case []any, tuple:
		if n, ok := whole(i); ok {
			l := items(v, line)
			if n < 0 {
				n += int64(len(l))
			}
			if n >= 0 && n < int64(len(l)) {
				return l[n]
			}
			return undefined{str(i)}
		}
	}
	if name, ok := i.(string); ok {
		return r.attr(v, name, line)
	}
	return undefined{str(i)}
}

func (r *renderer) slice(e slice) any {
	v := r.eval(e.of)
	l := items(v, e.line)
	bound := func(x expr) *int64 {
		if x == nil {
			return nil
		}
		switch v := r.eval(x).(type) {
		case nil:
			return nil
		default:
			n, ok := whole(v)
			if !ok {
				throw(e.line, "a slice wants whole numbers, not a %s", kind(v))
			}
			return &n
		}
	}
	from, to, by := bound(e.from), bound(e.to), bound(e.step)
	n, step := int64(len(l)), int64(1)
	if by != nil {
		step = *by
	}
	if step == 0 {
		throw(e.line, "a slice of step 0")
	}
	low, high := int64(0), n
	if step < 0 {
		low, high = -1, n-1
	}
	clamp := func(p *int64, none int64) int64 {
		if p == nil {
			return none
		}
		i := *p
		if i < 0 {
			i += n
		}
		return min(max(i, low), high)
	}
	var out []any
	if step > 0 {
		for i := clamp(from, 0); i < clamp(to, n); i += step {
			out = append(out, l[i])
		}
	} else {
		for i := clamp(from, n-1); i > clamp(to, -1); i += step {
			out = append(out, l[i])
		}
	}
	switch v.(type) {
	case string:
		var b strings.Builder
		for _, x := range out {
			b.WriteString(x.(string))
		}
		return b.String()
	case tuple:
		return tuple(out)
	}
	if out == nil {
		out = []any{}
	}
	return out
}

// call calls a function or macro; caller is the block of a `call`.
func (r *renderer) call(e call, caller *macro) any {
	r.step(e.line)
	f := r.eval(e.f)
	c := &callArgs{name: "function", named: NewDict(), line: e.line, r: r}
	switch n := e.f.(type) {
	case nameExpr:
		c.name = n.name
	case attr:
		c.name = n.name
	}
	for i, a := range e.args {
		if e.names[i] != "" {
			c.named.Set(e.names[i], r.eval(a))
		} else {
			c.args = append(c.args, r.eval(a))
		}
	}
	switch f := f.(type) {
	case function:
		return f(c)
	case *macro:
		return r.callMacro(f, c, caller)
	case undefined:
		throw(e.line, "`%s` is not defined and cannot be called", f.name)
	}
	throw(e.line, "a %s cannot be called", kind(f))
	return nil
}

func (r *renderer) callMacro(m *macro, c *callArgs, caller *macro) any {
	up := r.scope
	defer func() { r.scope = up }()
	r.scope = newScope(m.scope)
	if caller != nil {
		r.scope.vars["caller"] = caller
	}
	if len(c.args) > len(m.names) {
		throw(c.line, "`%s` takes %d arguments", m.name, len(m.names))
	}
	for i, n := range m.names {
		v := c.arg(i, n, undefined{n})
		if _, missing := v.(undefined); missing && i >= len(c.args) && m.defaults[i] != nil {
			if _, given := c.named.Get(n); !given {
				v = r.eval(m.defaults[i])
			}
		}
		r.scope.vars[n] = v
	}
	return r.capture(m.body)
}

func (r *renderer) unary(e unary) any {
	v := r.eval(e.a)
	if e.op == "not" {
		return !truth(v)
	}
	switch n := v.(type) {
	case float64:
		if e.op == "-" {
			return -n
		}
		return n
	case int64, bool:
		i, _ := whole(v)
		if e.op == "-" {
			return -i
		}
		return i
	}
	throw(e.line, "`%s` of a %s", e.op, kind(v))
	return nil
}

func (r *renderer) binary(e binary) any {
	a := r.eval(e.a)
	switch e.op {
	case "or":
		if truth(a) {
			return a
		}
		return r.eval(e.b)
	case "and":
		if !truth(a) {
			return a
		}
		return r.eval(e.b)
	}
	b := r.eval(e.b)
	if e.op == "~" {
		x, y := str(a), str(b)
		r.fits(len(x)+len(y), e.line)
		return x + y
	}
	if u, ok := a.(undefined); ok {
		throw(e.line, "`%s` is not defined", u.name)
	}
	if u, ok := b.(undefined); ok {
		throw(e.line, "`%s` is not defined", u.name)
	}
	if v, ok := r.sequences(e.op, a, b, e.line); ok {
		return v
	}
	i, ok := whole(a)
	j, ok2 := whole(b)
	if ok && ok2 {
		if v, ok := ints(e.op, i, j, e.line); ok {
			return v
		}
	}
	x, ok := num(a)
	y, ok2 := num(b)
	if !ok || !ok2 {
		throw(e.line, "`%s` of a %s and a %s", e.op, kind(a), kind(b))
	}
	return floats(e.op, x, y, e.line)
}

// sequences are the operators of strings and lists.
func (r *renderer) sequences(op string, a, b any, line int) (any, bool) {
	switch op {
	case "+":
		switch a := a.(type) {
		case string:
			if s, ok := b.(string); ok {
				r.fits(len(a)+len(s), line)
				return a + s, true
			}
		case []any:
			if l, ok := b.([]any); ok {
				r.list(len(a)+len(l), line)
				return append(append([]any{}, a...), l...), true
			}
		case tuple:
			if l, ok := b.(tuple); ok {
				r.list(len(a)+len(l), line)
				return append(append(tuple{}, a...), l...), true
			}
		}
	case "*":
		n, isInt := whole(b)
		if _, ok := whole(a); ok {
			a, b = b, a
			n, isInt = whole(b)
		}
		if !isInt {
			return nil, false
		}
		switch a := a.(type) {
		case string:
			if n > 0 && int64(len(a)) > maxOutput/n {
				throw(line, "a text that is too long")
			}
			r.fits(len(a)*int(max(n, 0)), line)
			return strings.Repeat(a, int(max(n, 0))), true
		case []any:
			if n > 0 && int64(len(a)) > maxItems/n || n > maxItems {
				throw(line, "a list that is too long")
			}
			r.list(len(a)*int(max(n, 0)), line)
			out := []any{}
			for range max(n, 0) {
				out = append(out, a...)
			}
			return out, true
		}
	case "%":
		if s, ok := a.(string); ok {
			return format(s, b, line), true
		}
	}
	return nil, false
}

func ints(op string, i, j int64, line int) (any, bool) {
	switch op {
	case "+":
		return i + j, true
	case "-":
		return i - j, true
	case "*":
		return i * j, true
	case "//", "%":
		if j == 0 {
			throw(line, "a division by zero")
		}
		q, m := i/j, i%j
		if m != 0 && (m < 0) != (j < 0) {
			q, m = q-1, m+j
		}
		if op == "%" {
			return m, true
		}
		return q, true
	case "**":
		if j < 0 {
			return nil, false
		}
		out := int64(1)
		for range min(j, 64) {
			out *= i
		}
		return out, true
	}
	return nil, false
}

func floats(op string, x, y float64, line int) any {
	switch op {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	case "**":
		return math.Pow(x, y)
	}
	if y == 0 {
		throw(line, "a division by zero")
	}
	switch op {
	case "/":
		return x / y
	case "//":
		return math.Floor(x / y)
	}
	m := math.Mod(x, y)
	if m != 0 && (m < 0) != (y < 0) {
		m += y
	}
	return m
}

func (r *renderer) compare(e compare) any {
	a := r.eval(e.first)
	for i, op := range e.ops {
		b := r.eval(e.rest[i])
		var ok bool
		switch op {
		case "==":
			ok = equal(a, b)
		case "!=":
			ok = !equal(a, b)
		case "in":
			ok = r.contains(b, a, e.line)
		case "not in":
			ok = !r.contains(b, a, e.line)
		case "<":
			ok = less(a, b, e.line)
		case ">":
			ok = less(b, a, e.line)
		case "<=":
			ok = !less(b, a, e.line)
		case ">=":
			ok = !less(a, b, e.line)
		}
		if !ok {
			return false
		}
		a = b
	}
	return true
}

// contains is `x in v`.
func (r *renderer) contains(v, x any, line int) bool {
	switch v := v.(type) {
	case string:
		s, ok := x.(string)
		if !ok {
			throw(line, "a %s cannot be looked for in a string", kind(x))
		}
		r.work(len(v)>>8, line)
		return strings.Contains(v, s)
	case *Dict:
		s, ok := x.(string)
		if ok {
			_, ok = v.vals[s]
		}
		return ok
	case *namespace:
		return false
	}
	for _, y := range items(v, line) {
		r.step(line)
		if equal(x, y) {
			return true
		}
	}
	return false
}

// length counts characters, items or keys.
func length(v any, line int) int64 {
	if s, ok := v.(string); ok {
		return int64(utf8.RuneCountInString(s))
	}
	return int64(len(items(v, line)))
}
