package lower

import (
	"fmt"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/tensor"
)

// value is one tensor of a template's functions, defined once. Gradients are values too: a
// sum is another value than its addend, though memory may give both one place.
type value struct {
	id    int
	name  string // unique in the template
	typ   tensor.Type
	bytes int64
	// rowBytes is what one row takes when the value has a row for each position of the
	// micro-batch, else 0.
	rowBytes int64
	// chunk says that the value exists for the rows of one head chunk only.
	chunk bool
	// mutable values keep their identity when written: partial sums, caches, and the
	// gradients of weights, which several launches add to.
	mutable bool
}

// operand binds a value to an operand name of a launch. A nil value is an absent operand.
type operand struct {
	name string
	v    *value
	// maybe: the value counts only when the slab's gradients are added to (RGradAdd).
	maybe bool
}

// inst is one launch.
type inst struct {
	call   *op.Call
	launch *op.Launch
	reads  []operand
	writes []operand
	adds   []operand // named by the gradient they are added to
	span   source.Span
	inLoop bool
	guard  int // index of the slab whose first contribution it serves, -1: always runs
	whole  int // 1 + index of the slab whose gradient must be complete, 0: always runs
}

// pin is a value's fixed place.
type pin struct {
	region ir.Region
	index  int
	off    int64
	filled bool // holds the value when the function starts
	result bool // must hold the value when the function ends
	locked bool // nothing else may be written there: memory of somebody else
}

// fn is a function in the making.
type fn struct {
	kind  plan.Func
	sizes op.Sizes
	insts []*inst
	pins  map[*value]pin
	loop  ir.Loop // Rows 0: none; Body is filled when the function is written out
}

// builder makes the launches of one template. One builder serves functions that share
// values (forward, recompute and backward).
type builder struct {
	l     *Lowering
	t     *tmpl
	sizes *sizing // types and calls now: of the micro-batch, of a chunk, of a prefill chunk
	emit  *sizing // calls that give constants, tables and state; differs from sizes in generation
	rows  int64   // all rows of the function

	count   int
	names   map[string]bool
	values  map[*ir.Value]*value
	extra   map[extraKey]*value // saved values and state of nodes
	weights map[*ir.Weight]*value
	dw      map[*ir.Weight]*value
	dwSeen  map[*ir.Weight]bool
	tables  map[int]*value
	pending map[*value][]*value // gradients of a value that wait to be added up
	order   []*value            // forward values in order of creation
	needs   map[*ir.Value]bool

	given map[string]*value // what the schedule binds besides operands
	// By slab: all of its gradient, and the sums of its squares.
	slabGrad, slabParts map[int]*value

	insts  []*inst
	pins   map[*value]pin
	inLoop bool
	infer  bool // for generation
}

type extraKey struct {
	node *ir.Node
	name string
}

func newBuilder(l *Lowering, t *tmpl, sizes, emit *sizing) *builder {
	b := &builder{
		l: l, t: t, sizes: sizes, emit: emit, rows: sizes.Rows(),
		names: map[string]bool{}, values: map[*ir.Value]*value{}, extra: map[extraKey]*value{},
		weights: map[*ir.Weight]*value{}, dw: map[*ir.Weight]*value{}, dwSeen: map[*ir.Weight]bool{},
		tables: map[int]*value{}, pending: map[*value][]*value{}, pins: map[*value]pin{}, given: map[string]*value{},
	}
	in := make([]bool, len(t.DIn))
	for i, m := range t.DIn {
		in[i] = m != ir.GradNone
	}
	b.needs = gradientNeeds(t.Graph, in)
	for i, v := range t.Graph.Inputs {
		x := b.value(v.Name, sizes.types[v])
		b.pins[x] = pin{region: ir.RIn, index: i, filled: true, locked: true}
		if l.Program.Documents && (emit == nil || emit == sizes) && v.Type.DType == tensor.I32 && v.Name == "position" {
			b.pins[x] = pin{region: ir.RTargets, off: 2 * x.bytes, filled: true, locked: true} // behind targets and starts
		}
		b.values[v] = x
		b.order = append(b.order, x)
	}
	for s, layout := range t.Slabs {
		for k, i := range layout.Weights {
			w := t.Graph.Weights[i]
			typ := tensor.Type{DType: l.Program.DType, Shape: w.Shape}
			x := b.fixed(w.Path, typ, pin{region: ir.RWeight, index: s, off: layout.Offs[k] * typ.DType.Size(), filled: true, locked: true})
			b.weights[w] = x
			if w.Frozen {
				continue
			}
			typ.DType = tensor.F32
			dw := b.fixed("d."+w.Path, typ, pin{region: ir.RGrad, index: s, off: layout.Offs[k] * typ.DType.Size(), filled: true, locked: true})
			dw.mutable = true
			b.dw[w] = dw
		}
	}
	return b
}

// value makes a value with a row for each row of the function or of the chunk.
func (b *builder) value(name string, typ tensor.Type) *value {
	return b.named(uniqueIdent(name, b.names), typ)
}

// gradient makes a value that is a gradient of x, or a part of it.
func (b *builder) gradient(x *value, typ tensor.Type) *value {
	return b.named(gradIdent(x.name, b.names), typ)
}

func (b *builder) named(name string, typ tensor.Type) *value {
	v := &value{id: b.count, name: name, typ: typ, bytes: typ.Bytes(), chunk: b.inLoop}
	v.rowBytes = v.bytes / b.sizes.Rows()
	b.count++
	return v
}

// fixed makes a value outside of activations, at a fixed place, named by its path.
func (b *builder) fixed(name string, typ tensor.Type, p pin) *value {
	v := &value{id: b.count, name: name, typ: typ, bytes: typ.Bytes()}
	b.count++
	b.pins[v] = p
	return v
}

// forward appends the forward launches of nodes.
func (b *builder) forward(nodes []*ir.Node) {
	for _, n := range nodes {
		b.define(n)
		b.launch(n, b.apart(n, &n.Call.Def.Forward))
	}
}

// apart is a launch of a step as it is where documents share rows.
func (b *builder) apart(n *ir.Node, launch *op.Launch) *op.Launch {
	if b.l.Program.Documents && n.Call.Def.Documents {
		return launch.WithStarts()
	}
	return launch
}

// define makes the values that a node's forward writes.
func (b *builder) define(n *ir.Node) {
	c := b.sizes.calls[n]
	y := b.value(resultName(n), c.Out)
	b.values[n.Out] = y
	b.order = append(b.order, y)
	for _, s := range c.Saved {
		b.extra[extraKey{n, s.Name}] = b.value(y.name+"."+s.Name, s.Type)
	}
}

// launch appends one forward launch of a node, whose values exist.
func (b *builder) launch(n *ir.Node, launch *op.Launch) *inst {
	in := &inst{call: b.emit.calls[n], launch: launch, span: n.Span, inLoop: b.inLoop, guard: -1}
	for _, name := range launch.Reads {
		in.reads = append(in.reads, operand{name: name, v: b.operand(n, name)})
	}
	for _, name := range launch.Writes {
		in.writes = append(in.writes, operand{name: name, v: b.operand(n, name)})
	}
	b.insts = append(b.insts, in)
	return in
}

// operand finds the value of a forward operand of a node; nil when the call has none.
func (b *builder) operand(n *ir.Node, name string) *value {
	c := b.emit.calls[n]
	for i, in := range c.Inputs {
		if in == name {
			return b.values[n.Inputs[i]]
		}
	}
	if name == "y" {
		return b.values[n.Out]
	}
	for i, w := range c.Weights {
		if w.Name == name {
			return b.weights[n.Weights[i]]
		}
	}
	for _, t := range c.Tables {
		if t.Operand == name {
			return b.tableValue(c, t)
		}
	}
	if c.Def.Router || c.Def.Documents && name == "starts" {
		if v, ok := b.bound(name); ok {
			return v
		}
	}
	return b.extra[extraKey{n, name}]
}

func (b *builder) tableValue(c *op.Call, t op.Table) *value {
	i := b.l.table[tableKey(c, t)]
	if b.tables[i] == nil {
		b.tables[i] = b.fixed(b.l.Program.Tables[i].Name, t.Type, pin{region: ir.RTable, index: i, filled: true, locked: true})
	}
	return b.tables[i]
}

// bound is what the schedule binds for ops of a router: its state, and of a step the targets
// and the scalars, which generation has none of.
func (b *builder) bound(name string) (*value, bool) {
	regions := map[string]ir.Region{"router": ir.RRouter, "targets": ir.RTargets, "scalars": ir.RScalars, "starts": ir.RTargets}
	region, ok := regions[name]
	if !ok || b.infer && name != "router" {
		return nil, ok
	}
	v := b.given[name]
	if v == nil {
		typ := tensor.Type{Shape: tensor.Shape{{N: 2 * plan.NumScalars}}}
		off := int64(0)
		if name == "targets" || name == "starts" {
			typ = tensor.Type{DType: tensor.I32, Shape: tensor.Shape{{N: b.rows}}}
		}
		if name == "starts" {
			off = typ.Bytes() // behind the targets
		}
		v = b.fixed(name, typ, pin{region: region, off: off, filled: true, locked: true})
		v.mutable = name == "router"
		b.given[name] = v
	}
	return v, true
}

// insert appends a launch of an op that is not in the graph, operands in order of the
// launch's reads and writes.
func (b *builder) insert(c *op.Call, span source.Span, reads, writes []*value) *inst {
	launch := &c.Def.Forward
	in := &inst{call: c, launch: launch, span: span, inLoop: b.inLoop, guard: -1}
	for i, v := range reads {
		in.reads = append(in.reads, operand{name: launch.Reads[i], v: v})
	}
	for i, v := range writes {
		in.writes = append(in.writes, operand{name: launch.Writes[i], v: v})
	}
	b.insts = append(b.insts, in)
	return in
}

// copyTo appends a copy of v, made by name, to a fixed place.
func (b *builder) copyTo(v *value, name func(tensor.Type) *value, span source.Span, p pin) *value {
	typ := v.typ
	if b.inLoop {
		typ = sized(typ, b.sizes.Batch, b.sizes.Seq)
	}
	y := name(typ)
	b.insert(newCall("copy", []string{"x"}, []tensor.Type{typ}, nil), span, []*value{v}, []*value{y})
	b.pins[y] = p
	return y
}

// function takes the launches made so far that keep selects, with the pins of their values.
func (b *builder) function(kind plan.Func, insts []*inst, pins map[*value]pin) *fn {
	f := &fn{kind: kind, sizes: b.sizes.Sizes, insts: insts, pins: map[*value]pin{}}
	for _, in := range insts {
		for _, list := range [][]operand{in.reads, in.writes, in.adds} {
			for _, o := range list {
				if p, ok := pins[o.v]; ok {
					f.pins[o.v] = p
				} else if p, ok := b.pins[o.v]; ok {
					f.pins[o.v] = p
				}
			}
		}
	}
	return f
}

func (v *value) String() string { return fmt.Sprintf("%s#%d", v.name, v.id) }
