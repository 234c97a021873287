package codegen

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/runtime/plan"
)

// funcWriter writes one function.
type funcWriter struct {
	t       *ir.Template
	fn      *ir.Function
	name    string // Go name of the template
	weights weightNames

	names   localNames
	slabs   []string // names of the weights of each slab, "" where none is used
	locals  []*local // declared at the top, in order of first use
	byPlace map[localKey]*local
	rows    map[*local]string // inside a loop: names of the views that move with the row
	carried []carried         // inside a loop: addends that later chunks have and the first may not
	chunked bool              // has a loop over chunks
	hasLast bool
	in      loopKind
}

// local is a named address.
type local struct {
	name  string
	place ir.Place
	early bool // lies where a result comes later
	// Constants in plan_gen.go: its offset in its region, and the bytes of a row of it where a
	// loop moves along the rows.
	off, row string
	rowBytes int64
}

type localKey struct {
	region ir.Region
	index  int
	off    int64
	name   string
}

// carried is a gradient of a weight that the loop over chunks adds to.
type carried struct {
	name string
	slab int
	off  string
}

// loopKind tells how many rows a launch runs over.
type loopKind int

const (
	noLoop loopKind = iota
	chunks
	lastRow
)

func newFuncWriter(t *ir.Template, fn *ir.Function, name string, weights weightNames) *funcWriter {
	w := &funcWriter{t: t, fn: fn, name: name, weights: weights, names: localNames{}, byPlace: map[localKey]*local{}}
	for _, s := range []string{"b", "queue", "row", "rows", "device", "engine", "min", "int", "int64", "opcopy"} {
		w.names[s] = true
	}
	w.reserve(fn.Body)
	w.slabs = make([]string, len(t.Slabs))
	w.collect(fn.Body)
	w.results()
	return w
}

// reserve keeps the names of the packages that the function calls.
func (w *funcWriter) reserve(body []ir.Stmt) {
	for _, s := range body {
		switch s := s.(type) {
		case *ir.Call:
			w.names[s.Op.Def.Package()] = true
		case *ir.Loop:
			w.reserve(s.Body)
		case *ir.IfFirst:
			w.reserve(s.Body)
		case *ir.IfWhole:
			w.reserve(s.Body)
		}
	}
}

// collect finds every value that gets a local.
func (w *funcWriter) collect(body []ir.Stmt) {
	for _, s := range body {
		switch s := s.(type) {
		case *ir.Call:
			for _, a := range s.Args {
				if l := w.local(a.Place); l != nil {
					l.rowBytes = max(l.rowBytes, a.Place.RowBytes)
				}
				if a.Place.Region == ir.RWeight && w.slabs[a.Place.Index] == "" {
					w.slabs[a.Place.Index] = w.slabName(a.Place.Index)
				}
			}
		case *ir.Loop:
			if s.Last {
				w.hasLast = true
			} else {
				w.chunked = true
			}
			w.collect(s.Body)
		case *ir.IfFirst:
			w.collect(s.Body)
		}
	}
}

// slabName is "w", or "w0", "w1" where a template binds several slabs.
func (w *funcWriter) slabName(slab int) string {
	name := "w"
	if len(w.t.Slabs) > 1 {
		name += strconv.Itoa(slab)
	}
	return w.names.take(name)
}

// results finds the values that only pass through the place of a result.
func (w *funcWriter) results() {
	last := map[[2]int]*local{}
	for _, l := range w.locals {
		if r := l.place.Region; r == ir.ROut || r == ir.RDIn {
			k := [2]int{int(r), l.place.Index}
			if last[k] != nil {
				last[k].early = true
			}
			last[k] = l
		}
	}
}

// local returns the local of a place, nil for weights and gradients of weights, which are
// written out as offsets in their slab.
func (w *funcWriter) local(p ir.Place) *local {
	switch p.Region {
	case ir.RNil, ir.RWeight, ir.RGrad, ir.RGradAdd, ir.RSlabGrad, ir.RSquares:
		return nil
	}
	k := localKey{p.Region, p.Index, p.Off, p.Name}
	l := w.byPlace[k]
	if l == nil {
		l = &local{name: w.names.take(lowerFirst(camel(p.Name))), place: p}
		w.byPlace[k] = l
		w.locals = append(w.locals, l)
	}
	return l
}

// sections are the groups of declarations, in order.
var sections = []struct {
	title   string
	regions []ir.Region
	early   bool
}{
	{"What goes in and comes out.", []ir.Region{ir.RIn, ir.RTargets, ir.RScalars, ir.ROut, ir.RDOut, ir.RDIn, ir.RPartials}, false},
	{"Passing through the place of a result.", []ir.Region{ir.ROut, ir.RDIn}, true},
	{"Constant tables.", []ir.Region{ir.RTable}, false},
	{"The router's state.", []ir.Region{ir.RRouter}, false},
	{"Cached from earlier positions.", []ir.Region{ir.RState}, false},
	{"Saved between forward and backward.", []ir.Region{ir.RSaved}, false},
	{"Work memory; values that are not needed at once share it.", []ir.Region{ir.RWork}, false},
}

// body writes declarations and launches.
func (w *funcWriter) body() ([]jen.Code, error) {
	var out []jen.Code
	for _, s := range sections {
		var lines []jen.Code
		for _, r := range s.regions {
			for _, l := range w.inRegion(r) {
				if l.early == s.early {
					lines = append(lines, jen.Id(l.name).Op(":=").Add(address(l)).Comment(l.place.Value))
				}
			}
		}
		if len(lines) > 0 {
			if len(out) > 0 {
				out = append(out, jen.Line())
			}
			out = append(out, jen.Comment(s.title))
			out = append(out, lines...)
		}
	}
	for i, name := range w.slabs {
		if name != "" {
			if i == slices.IndexFunc(w.slabs, func(s string) bool { return s != "" }) {
				out = append(out, jen.Line(), jen.Comment("Weights."))
			}
			line := jen.Id(name).Op(":=").Id("b").Dot("Weights").Index(jen.Lit(i))
			if len(w.slabs) > 1 {
				line.Comment(w.slabText(i))
			}
			out = append(out, line)
		}
	}
	if len(out) > 0 {
		out = append(out, jen.Line())
	}
	stmts, err := w.stmts(w.fn.Body)
	return append(out, stmts...), err
}

// inRegion lists the locals of a region by index, those of one index in order of first use.
func (w *funcWriter) inRegion(r ir.Region) []*local {
	var out []*local
	for _, l := range w.locals {
		if l.place.Region == r {
			out = append(out, l)
		}
	}
	slices.SortStableFunc(out, func(a, b *local) int { return a.place.Index - b.place.Index })
	return out
}

// slabText names the weights of a slab, or how many there are.
func (w *funcWriter) slabText(slab int) string {
	list := w.t.Slabs[slab].Weights
	if len(list) > 3 {
		return fmt.Sprintf("%d weights", len(list))
	}
	names := make([]string, len(list))
	for i, k := range list {
		names[i] = w.t.Graph.Weights[k].Path
	}
	return strings.Join(names, ", ")
}

// address is where a local lies.
func address(l *local) *jen.Statement {
	p := l.place
	b := func(field string) *jen.Statement { return jen.Id("b").Dot(field) }
	at := func(s *jen.Statement) *jen.Statement {
		return s.Dot("At").Call(jen.Id(l.off))
	}
	switch p.Region {
	case ir.RIn:
		return b("In").Index(jen.Lit(p.Index))
	case ir.ROut:
		return b("Out").Index(jen.Lit(p.Index))
	case ir.RDIn:
		return b("DIn").Index(jen.Lit(p.Index))
	case ir.RDOut:
		return b("DOut").Index(jen.Lit(p.Index))
	case ir.RTable:
		return b("Tables").Index(jen.Lit(p.Index))
	case ir.RTargets:
		if p.Off != 0 {
			return at(b("Targets"))
		}
		return b("Targets")
	case ir.RScalars:
		return b("Scalars")
	case ir.RPartials:
		return b("Partials")
	case ir.RRouter:
		return b("Router")
	case ir.RSaved:
		return at(b("Saved"))
	case ir.RWork:
		return at(b("Work"))
	case ir.RState:
		return at(b("State"))
	}
	panic(fmt.Sprintf("a value in region %d has no local", p.Region))
}

func (w *funcWriter) stmts(body []ir.Stmt) ([]jen.Code, error) {
	var out []jen.Code
	for _, s := range body {
		switch s := s.(type) {
		case *ir.Call:
			c, err := w.launch(s)
			if err != nil {
				return nil, err
			}
			out = append(out, c)
		case *ir.IfFirst:
			inner, err := w.stmts(s.Body)
			if err != nil {
				return nil, err
			}
			out = append(out,
				jen.Comment("What no launch writes holds zeros."),
				jen.If(jen.Op("!").Id("b").Dot("Add").Index(jen.Lit(s.Slab))).Block(inner...))
		case *ir.IfWhole:
			inner, err := w.stmts(s.Body)
			if err != nil {
				return nil, err
			}
			out = append(out, jen.If(jen.Op("!").Id("b").Dot("Squares").Index(jen.Lit(s.Slab)).Dot("Nil").Call()).Block(inner...))
		case *ir.Loop:
			loop, err := w.loop(s)
			if err != nil {
				return nil, err
			}
			out = append(out, jen.Line())
			out = append(out, loop...)
			out = append(out, jen.Line())
		}
	}
	if n := len(out); n > 0 {
		if _, ok := body[len(body)-1].(*ir.Loop); ok {
			out = out[:n-1] // no blank line before the closing brace
		}
	}
	return out, nil
}

// loop writes the loop over chunks of rows, or the part that runs for the last row only.
func (w *funcWriter) loop(s *ir.Loop) ([]jen.Code, error) {
	w.in, w.rows, w.carried = chunks, map[*local]string{}, nil
	if s.Last {
		w.in = lastRow
	}
	defer func() { w.in, w.rows = noLoop, nil }()
	views := w.views(s.Body)
	body, err := w.stmts(s.Body)
	if err != nil {
		return nil, err
	}
	if s.Last {
		out := []jen.Code{jen.Comment("From here on the last row is enough.")}
		if len(views) > 0 {
			out = append(out, jen.Id("row").Op(":=").Int64().Call(jen.Id("b").Dot("Rows").Op("-").Lit(1)))
		}
		return append(append(out, views...), body...), nil
	}
	var out, carry []jen.Code
	for _, c := range w.carried {
		slab, off := jen.Lit(c.slab), jen.Id(c.off)
		out = append(out, jen.Id(c.name).Op(":=").Id("b").Dot("GradAdd").Call(slab, off))
		carry = append(carry, jen.Id(c.name).Op("=").Id("b").Dot("Grad").Call(slab, off).Comment("later chunks add"))
	}
	head := []jen.Code{jen.Id("rows").Op(":=").Int().Call(jen.Min(jen.Id(w.chunkName()), jen.Id("Rows").Op("-").Id("row")))}
	head = append(append(head, views...), jen.Line())
	inner := append(append(head, body...), carry...)
	return append(out, jen.For(
		jen.Id("row").Op(":=").Int64().Call(jen.Lit(0)),
		jen.Id("row").Op("<").Id("Rows"),
		jen.Id("row").Op("+=").Id(w.chunkName()),
	).Block(inner...)), nil
}

// chunkName is the constant of the head's chunk.
func (w *funcWriter) chunkName() string { return camel(w.name) + "Chunk" }

// views declares the addresses that move with the row.
func (w *funcWriter) views(body []ir.Stmt) []jen.Code {
	var out []jen.Code
	for _, s := range body {
		c, ok := s.(*ir.Call)
		if !ok {
			continue
		}
		for _, a := range c.Args {
			l := w.local(a.Place)
			if l == nil || a.Place.RowBytes == 0 || w.rows[l] != "" {
				continue
			}
			suffix, comment := "Rows", "its rows of this chunk"
			if w.in == lastRow {
				suffix, comment = "Last", "its last row"
			}
			w.rows[l] = w.names.take(l.name + suffix)
			out = append(out, jen.Id(w.rows[l]).Op(":=").Id(l.name).Dot("At").Call(
				jen.Id("row").Op("*").Id(l.row)).Comment(comment))
		}
	}
	return out
}

// rowsExpr is the number of rows that a launch runs over.
func (w *funcWriter) rowsExpr() *jen.Statement {
	switch {
	case w.in == chunks:
		return jen.Id("rows")
	case w.in == lastRow:
		return jen.Lit(1)
	case w.fn.Func == plan.Infer:
		return jen.Id("b").Dot("Rows")
	}
	return jen.Id("Rows")
}
