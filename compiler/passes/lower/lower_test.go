package lower

import (
	"slices"
	"strings"
	"testing"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/all"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/tensor"
)

// small cuts micro-batches and head chunks so that a tiny model has several of each.
var small = Options{Rows: 2, LogitsBytes: 512, MinChunk: 4, Prefill: 5}

// oddModel has one layer whose body is given, between a plain embedding and a plain head.
func oddModel(t *testing.T, layers int, body func(u *unitBuilder, x *ir.Value) *ir.Value) *ir.Model {
	mb := newModel(t, 4, 6, 12)
	e := mb.unit(ir.EmbedUnit, "embed", -1)
	x := e.out(e.embed("wte", 12, 10, e.in(mb.tokens)))
	for i := range layers {
		u := mb.unit(ir.LayerUnit, "layer", i)
		x = u.out(body(u, u.in(x)))
	}
	h := mb.unit(ir.HeadUnit, "head", -1)
	h.out(h.linear("head", 12, h.op("rmsnorm", "norm", nil, h.in(x))))
	return spans(mb.m)
}

// models are graphs chosen for the ways in which values can be shared.
var models = map[string]func(t *testing.T) *ir.Model{
	"llama, tied, window in every second layer": func(t *testing.T) *ir.Model {
		return spans(llama(t, 4, 8, 24, 16, 3, 4, 2, 20, true, 4))
	},
	"llama, untied": func(t *testing.T) *ir.Model { return spans(llama(t, 4, 6, 20, 16, 2, 2, 1, 24, false, 0)) },
	"x * x": func(t *testing.T) *ir.Model {
		return oddModel(t, 2, func(u *unitBuilder, x *ir.Value) *ir.Value {
			y := u.linear("up", 10, x)
			return u.add(x, u.mul(y, y))
		})
	},
	"x + x, x - x": func(t *testing.T) *ir.Model {
		return oddModel(t, 2, func(u *unitBuilder, x *ir.Value) *ir.Value {
			y := u.linear("up", 10, u.add(x, x))
			return u.add(u.add(y, y), u.op("sub", "", nil, u.mul(x, y), x))
		})
	},
	"silu(x) * x and its fusion with both sides one value": func(t *testing.T) *ir.Model {
		return oddModel(t, 1, func(u *unitBuilder, x *ir.Value) *ir.Value {
			y := u.linear("up", 10, x)
			return u.add(u.mul(u.op("silu", "", nil, y), y), u.mul(x, u.op("silu", "", nil, x)))
		})
	},
	"silu read twice is not fused away": func(t *testing.T) *ir.Model {
		return oddModel(t, 1, func(u *unitBuilder, x *ir.Value) *ir.Value {
			s := u.op("silu", "", nil, u.linear("up", 10, x))
			return u.add(u.mul(s, x), s)
		})
	},
	"a value with five readers": func(t *testing.T) *ir.Model {
		return oddModel(t, 1, func(u *unitBuilder, x *ir.Value) *ir.Value {
			h := u.op("rmsnorm", "n", nil, x)
			a := u.linear("a", 10, h)
			b := u.op("gelu", "", nil, h)
			c := u.mul(h, a)
			return u.add(u.add(u.add(a, b), c), u.add(h, x))
		})
	},
	"the output is the input": func(t *testing.T) *ir.Model {
		mb := newModel(t, 4, 6, 12)
		e := mb.unit(ir.EmbedUnit, "embed", -1)
		x := e.out(e.embed("wte", 12, 10, e.in(mb.tokens)))
		u := mb.unit(ir.LayerUnit, "layer", 0)
		in := u.in(x)
		pass, y := u.out(in), u.out(u.linear("up", 10, in))
		h := mb.unit(ir.HeadUnit, "head", -1)
		h.out(h.linear("head", 12, h.add(h.in(pass), h.in(y))))
		return spans(mb.m)
	},
	"two outputs are one value that is read inside too": func(t *testing.T) *ir.Model {
		mb := newModel(t, 4, 6, 12)
		e := mb.unit(ir.EmbedUnit, "embed", -1)
		x := e.out(e.embed("wte", 12, 10, e.in(mb.tokens)))
		u := mb.unit(ir.LayerUnit, "layer", 0)
		y := u.linear("up", 10, u.in(x))
		z := u.op("softcap", "", attrs{"cap": *op.FloatValue(2)}, y)
		a, b, c := u.out(y), u.out(y), u.out(z)
		h := mb.unit(ir.HeadUnit, "head", -1)
		h.out(h.linear("head", 12, h.add(h.add(h.in(a), h.op("gelu", "", nil, h.in(b))), h.in(c))))
		return spans(mb.m)
	},
	"an output that backward reads": func(t *testing.T) *ir.Model {
		return oddModel(t, 2, func(u *unitBuilder, x *ir.Value) *ir.Value {
			return u.op("softcap", "", attrs{"cap": *op.FloatValue(3)}, u.linear("up", 10, x))
		})
	},
	"one sum is the gradient of two inputs, one of which others read too": func(t *testing.T) *ir.Model {
		mb := newModel(t, 4, 6, 12)
		e := mb.unit(ir.EmbedUnit, "embed", -1)
		ids := e.in(mb.tokens)
		x, x0 := e.out(e.embed("wte", 12, 10, ids)), e.out(e.embed("wte0", 12, 10, ids))
		for i := range 3 {
			u := mb.unit(ir.LayerUnit, "layer", i)
			x = u.out(u.add(u.in(x), u.in(x0)))
		}
		h := mb.unit(ir.HeadUnit, "head", -1)
		h.out(h.linear("head", 12, h.add(h.in(x), h.op("silu", "", nil, h.in(x0)))))
		return spans(mb.m)
	},
	"an early value read by every layer": func(t *testing.T) *ir.Model {
		mb := newModel(t, 4, 6, 12)
		e := mb.unit(ir.EmbedUnit, "embed", -1)
		x0 := e.out(e.op("rmsnorm", "n", nil, e.embed("wte", 12, 10, e.in(mb.tokens))))
		x := x0
		for i := range 4 {
			u := mb.unit(ir.LayerUnit, "layer", i)
			a, b := u.in(x), u.in(x0)
			h := u.op("layernorm", "ln", nil, u.add(a, u.op("scale", "", attrs{"by": *op.FloatValue(0.5)}, b)))
			x = u.out(u.add(u.add(a, u.linear("up", 10, h)), u.mul(b, h)))
		}
		h := mb.unit(ir.HeadUnit, "head", -1)
		h.out(h.linear("head", 12, h.in(x)))
		return spans(mb.m)
	},
	"a weight used twice in a unit, and across units": func(t *testing.T) *ir.Model {
		mb := newModel(t, 4, 6, 12)
		e := mb.unit(ir.EmbedUnit, "embed", -1)
		x := e.out(e.embed("wte", 12, 10, e.in(mb.tokens)))
		for i := range 2 {
			u := mb.unit(ir.LayerUnit, "layer", i)
			h := u.linear("up", 10, u.in(x))
			h = u.op("gelu", "", nil, h)
			x = u.out(u.tied("linear", "again", u.u.Path()+".up.weight", attrs{"out": *op.IntValue(10)}, h))
		}
		h := mb.unit(ir.HeadUnit, "head", -1)
		n := h.op("layernorm", "ln", nil, h.in(x))
		a := h.tied("linear", "head", "wte.weight", attrs{"out": *op.IntValue(12)}, n)
		b := h.tied("linear", "head2", "wte.weight", attrs{"out": *op.IntValue(12)}, h.op("silu", "", nil, n))
		h.out(h.add(a, b))
		return spans(mb.m)
	},
	"gaps for alignment, biases and a dead weight": func(t *testing.T) *ir.Model {
		return oddModel(t, 1, func(u *unitBuilder, x *ir.Value) *ir.Value {
			u.linear("dead", 3, x)
			h := u.op("linear", "up", attrs{"out": *op.IntValue(7), "bias": *op.BoolValue(true)}, x)
			return u.add(x, u.linear("down", 10, u.op("gelu", "", nil, h)))
		})
	},
	"a head with a soft cap and a scale after the last linear": func(t *testing.T) *ir.Model {
		mb := newModel(t, 4, 6, 12)
		e := mb.unit(ir.EmbedUnit, "embed", -1)
		x := e.out(e.embed("wte", 12, 10, e.in(mb.tokens)))
		h := mb.unit(ir.HeadUnit, "head", -1)
		y := h.linear("head", 12, h.op("rmsnorm", "norm", nil, h.in(x)))
		y = h.op("scale", "", attrs{"by": *op.FloatValue(0.7)}, y)
		h.out(h.op("softcap", "", attrs{"cap": *op.FloatValue(1.5)}, y))
		return spans(mb.m)
	},
	"a head that reads its input in the chunks and before them": func(t *testing.T) *ir.Model {
		mb := newModel(t, 4, 6, 12)
		e := mb.unit(ir.EmbedUnit, "embed", -1)
		x := e.out(e.embed("wte", 12, 12, e.in(mb.tokens)))
		h := mb.unit(ir.HeadUnit, "head", -1)
		in := h.in(x)
		n := h.op("rmsnorm", "norm", nil, in)
		h.out(h.add(h.add(h.linear("head", 12, n), h.mul(in, n)), h.add(in, in)))
		return spans(mb.m)
	},
	"a head without any op": func(t *testing.T) *ir.Model {
		mb := newModel(t, 4, 6, 12)
		e := mb.unit(ir.EmbedUnit, "embed", -1)
		x := e.out(e.embed("wte", 12, 12, e.in(mb.tokens)))
		h := mb.unit(ir.HeadUnit, "head", -1)
		h.out(h.in(x))
		return spans(mb.m)
	},
	"an op that mixes rows in the head, before the last linear": func(t *testing.T) *ir.Model {
		mb := newModel(t, 4, 6, 12)
		e := mb.unit(ir.EmbedUnit, "embed", -1)
		x := e.out(e.embed("wte", 12, 8, e.in(mb.tokens)))
		h := mb.unit(ir.HeadUnit, "head", -1)
		in := h.in(x)
		q := h.op("rope", "", attrs{"hd": *op.IntValue(4)}, h.linear("q", 8, in))
		a := h.op("attention", "a", attrs{"heads": *op.IntValue(2), "causal": *op.BoolValue(true)}, q, h.linear("k", 8, in), h.linear("v", 8, in))
		h.out(h.linear("head", 12, h.add(a, in)))
		return spans(mb.m)
	},
	"one value bound to two inputs of a unit": func(t *testing.T) *ir.Model {
		mb := newModel(t, 4, 6, 12)
		e := mb.unit(ir.EmbedUnit, "embed", -1)
		x := e.out(e.embed("wte", 12, 10, e.in(mb.tokens)))
		u := mb.unit(ir.LayerUnit, "layer", 0)
		x = u.out(u.mul(u.in(x), u.linear("up", 10, u.in(x))))
		h := mb.unit(ir.HeadUnit, "head", -1)
		h.out(h.linear("head", 12, h.in(x)))
		return spans(mb.m)
	},
	"glue between blocks, attention whose q, k and v are one value": func(t *testing.T) *ir.Model {
		mb := newModel(t, 4, 6, 12)
		e := mb.unit(ir.EmbedUnit, "embed", -1)
		x := e.out(e.embed("wte", 12, 8, e.in(mb.tokens)))
		u := mb.unit(ir.LayerUnit, "layer", 0)
		in := u.in(x)
		y := u.out(u.add(in, u.op("attention", "a", attrs{"heads": *op.IntValue(2), "causal": *op.BoolValue(true)}, in, in, in)))
		g := mb.unit(ir.GlueUnit, "glue", 0)
		z := g.out(g.op("gelu", "", nil, g.in(y)))
		u = mb.unit(ir.LayerUnit, "layer", 1)
		z = u.out(u.linear("up", 8, u.in(z)))
		h := mb.unit(ir.HeadUnit, "head", -1)
		h.out(h.linear("head", 12, h.add(h.in(z), h.in(y))))
		return spans(mb.m)
	},
}

func eachModel(t *testing.T, f func(t *testing.T, build func() *ir.Model)) {
	var names []string
	for name := range models {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		t.Run(name, func(t *testing.T) { f(t, func() *ir.Model { return models[name](t) }) })
	}
}

func TestGradientsEqualFiniteDifferences(t *testing.T) {
	eachModel(t, func(t *testing.T, build func() *ir.Model) {
		checkGradients(t, mustLower(t, build(), small))
	})
}

// trainOnce runs one step and returns the loss and the gradients, by parameter path.
func trainOnce(t *testing.T, m *ir.Model, o Options) (float64, [][]float32) {
	p := mustLower(t, m, o)
	mc := newMachine(t, p)
	tokens, targets := batch(p.Model)
	loss := mc.step(tokens, targets, true)
	return loss, mc.grads()
}

func TestRecomputeChangesNoBit(t *testing.T) {
	eachModel(t, func(t *testing.T, build func() *ir.Model) {
		o := small
		loss, grads := trainOnce(t, build(), o)
		o.Recompute = "all"
		again, same := trainOnce(t, build(), o)
		if loss != again {
			t.Errorf("loss %v, with recompute %v", loss, again)
		}
		equalBits(t, "gradients", grads, same)
	})
}

func TestMicroBatchesAndChunksEqualOne(t *testing.T) {
	eachModel(t, func(t *testing.T, build func() *ir.Model) {
		_, cut := trainOnce(t, build(), small)
		_, whole := trainOnce(t, build(), Options{Rows: 4})
		near(t, "gradients", whole, cut, 2e-5)
	})
}

func TestPrefillEqualsDecoding(t *testing.T) {
	eachModel(t, func(t *testing.T, build func() *ir.Model) {
		p := mustLower(t, build(), small)
		tokens, _ := batch(p.Model)
		tokens = tokens[:p.Model.Seq]
		m := newMachine(t, p)
		var ones []int
		for range tokens {
			ones = append(ones, 1)
		}
		one := m.generate(tokens, ones)
		chunks := []int{int(p.Prefill), len(tokens) - int(p.Prefill)}
		many := m.generate(tokens, chunks)
		equalBits(t, "logits", [][]float32{one[chunks[0]-1], one[len(one)-1]}, many)
	})
}

func TestEveryTemplateIsSharedAndNamed(t *testing.T) {
	p := mustLower(t, spans(llama(t, 4, 8, 24, 16, 6, 4, 2, 20, true, 4)), small)
	var names []string
	for _, u := range p.Units {
		names = append(names, p.Templates[u.Template].Name)
	}
	want := "embed layer layer2 layer layer2 layer layer2 head"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("templates %q, want %q", got, want)
	}
}

func TestTemplateKey(t *testing.T) {
	build := func(change func(i int, u *unitBuilder) attrs) int {
		mb := newModel(t, 4, 6, 12)
		e := mb.unit(ir.EmbedUnit, "embed", -1)
		x := e.out(e.embed("wte", 12, 8, e.in(mb.tokens)))
		for i := range 2 {
			u := mb.unit(ir.LayerUnit, "layer", i)
			x = u.out(u.op("rmsnorm", "n", change(i, u), u.in(x)))
		}
		h := mb.unit(ir.HeadUnit, "head", -1)
		h.out(h.linear("head", 12, h.in(x)))
		n := 0
		for _, t := range mustLower(t, mb.m, small).Templates {
			if strings.HasPrefix(t.Name, "layer") {
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		name   string
		change func(i int, u *unitBuilder) attrs
		want   int
	}{
		{"equal", func(int, *unitBuilder) attrs { return nil }, 1},
		{"a constant differs", func(i int, _ *unitBuilder) attrs { return attrs{"eps": *op.FloatValue(1e-5 * float64(i+1))} }, 2},
		{"a weight is missing", func(i int, _ *unitBuilder) attrs { return attrs{"weight": *op.BoolValue(i == 0)} }, 2},
		{"the name of the block differs", func(i int, u *unitBuilder) attrs {
			if i == 1 {
				u.u.Name, u.u.Graph.Name = "other", "other"
			}
			return nil
		}, 1},
	} {
		if got := build(c.change); got != c.want {
			t.Errorf("%s: %d templates, want %d", c.name, got, c.want)
		}
	}
}

// TestResiduals: the additions of a layer are done by the products before them, which stand
// where the additions stood; a product that something else reads too is left alone.
func TestResiduals(t *testing.T) {
	p := mustLower(t, spans(llama(t, 4, 8, 24, 16, 2, 4, 2, 20, false, 0)), small)
	i := slices.IndexFunc(p.Templates, func(t *ir.Template) bool { return t.Name == "layer" })
	for _, kind := range []plan.Func{plan.Forward, plan.Infer} {
		var addends []string
		for _, s := range p.Templates[i].Funcs[kind].Body {
			c := s.(*ir.Call)
			if c.Op.Def.Name == "add" {
				t.Errorf("%s: an addition is left", kind)
			}
			for _, a := range c.Args {
				if a.Field == "AddY" {
					addends = append(addends, a.Place.Name)
				}
			}
		}
		if len(addends) != 2 {
			t.Errorf("%s: products add %q, want two residuals", kind, addends)
		}
	}
	b := &builder{t: &tmpl{Template: &ir.Template{Graph: &ir.Graph{}}}}
	linear, add := all.Lookup("linear"), all.Lookup("add")
	v := func(name string) *value { return &value{name: name, bytes: 8} }
	x, y, sum, other := v("x"), v("y"), v("sum"), v("other")
	product := &inst{call: &op.Call{Def: linear}, launch: &linear.Forward, reads: []operand{{name: "x", v: x}}, writes: []operand{{name: "y", v: y}}}
	addition := &inst{call: &op.Call{Def: add}, launch: &add.Forward, reads: []operand{{name: "a", v: x}, {name: "b", v: y}}, writes: []operand{{name: "y", v: sum}}}
	reader := &inst{call: &op.Call{Def: add}, launch: &add.Forward, reads: []operand{{name: "a", v: y}, {name: "b", v: y}}, writes: []operand{{name: "y", v: other}}}
	for _, c := range []struct {
		name   string
		others []*inst
		left   int
	}{{"alone", nil, 1}, {"read in backward", []*inst{reader}, 2}} {
		if got := b.residuals([]*inst{product, addition}, c.others); len(got) != c.left {
			t.Errorf("%s: %d launches left, want %d", c.name, len(got), c.left)
		}
	}
}

// TestEpilogues: in a layer like GPT-2's no GELU is left; its sums are kept for backward, and in
// generation they are not.
func TestEpilogues(t *testing.T) {
	p := mustLower(t, oddModel(t, 2, func(u *unitBuilder, x *ir.Value) *ir.Value {
		return u.add(x, u.linear("down", 10, u.op("gelu", "", nil, u.linear("up", 24, x))))
	}), small)
	i := slices.IndexFunc(p.Templates, func(t *ir.Template) bool { return t.Name == "layer" })
	for kind, want := range map[plan.Func]string{plan.Forward: "ForwardGelu with Pre", plan.Infer: "ForwardGelu", plan.Backward: "BackwardInputGelu with Pre"} {
		var got []string
		for _, s := range p.Templates[i].Funcs[kind].Body {
			c, ok := s.(*ir.Call)
			if !ok {
				continue
			}
			if c.Op.Def.Name == "gelu" {
				t.Errorf("%s: gelu.%s is left", kind, c.Launch.Func)
			}
			if strings.HasSuffix(c.Launch.Func, "Gelu") {
				name := c.Launch.Func
				if slices.ContainsFunc(c.Args, func(a ir.Arg) bool { return a.Field == "Pre" && a.Place.Region != ir.RNil }) {
					name += " with Pre"
				}
				got = append(got, name)
			}
		}
		if !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
}

func TestRecomputeOmitsWhatBackwardDoesNotRead(t *testing.T) {
	o := small
	o.Recompute = "layer"
	p := mustLower(t, spans(llama(t, 4, 8, 24, 16, 2, 4, 2, 20, false, 0)), o)
	i := slices.IndexFunc(p.Templates, func(t *ir.Template) bool { return t.Name == "layer" })
	f := p.Templates[i].Funcs
	if !p.Templates[i].Recompute || f[plan.Recompute] == nil {
		t.Fatal("the layer is not recomputed")
	}
	forward, again := launches(f[plan.Forward].Body), launches(f[plan.Recompute].Body)
	// The down projection, which adds the residual, is left out.
	if want := forward[:len(forward)-1]; !slices.Equal(again, want) {
		t.Errorf("recompute launches\n%v, want\n%v", again, want)
	}
	if f[plan.Recompute].FLOPs >= f[plan.Forward].FLOPs {
		t.Errorf("recompute costs %d FLOPs, forward %d", f[plan.Recompute].FLOPs, f[plan.Forward].FLOPs)
	}
}

// TestAddendsStayApart: no forward product works in place, whether its addend is kept for backward or
// not, so that values made again are made in the same way.
func TestAddendsStayApart(t *testing.T) {
	for _, recompute := range []string{"none", "all"} {
		o := small
		o.Recompute, o.Again = recompute, recompute == "all"
		p := mustLower(t, spans(llama(t, 4, 8, 24, 16, 2, 4, 2, 20, false, 0)), o)
		i := slices.IndexFunc(p.Templates, func(t *ir.Template) bool { return t.Name == "layer" })
		seen := 0
		for _, kind := range []plan.Func{plan.Forward, plan.Again, plan.Recompute} {
			f := p.Templates[i].Funcs[kind]
			if f == nil {
				continue
			}
			for _, s := range f.Body {
				at := map[string]ir.Place{}
				for _, a := range s.(*ir.Call).Args {
					at[a.Field] = a.Place
				}
				y, add := at["Y"], at["AddY"]
				if add.Region == ir.RNil {
					continue
				}
				if seen++; y.Region == add.Region && y.Index == add.Index && y.Off == add.Off {
					t.Errorf("recompute %s: in %s, %s is made where its addend %s lies", recompute, kind, y.Name, add.Name)
				}
			}
		}
		if seen < 2 {
			t.Errorf("recompute %s: %d residuals", recompute, seen)
		}
	}
}

func launches(body []ir.Stmt) []string {
	var out []string
	for _, s := range body {
		switch s := s.(type) {
		case *ir.Call:
			out = append(out, s.Op.Def.Name+"."+s.Launch.Func)
		case *ir.Loop:
			out = append(out, launches(s.Body)...)
		case *ir.IfFirst:
			out = append(out, launches(s.Body)...)
		case *ir.IfWhole:
			out = append(out, launches(s.Body)...)
		}
	}
	return out
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		name, code string
		build      func() (*ir.Model, Options)
	}{
		{"rows mix after the last linear", "MT0334", func() (*ir.Model, Options) {
			mb := newModel(t, 4, 6, 12)
			e := mb.unit(ir.EmbedUnit, "embed", -1)
			x := e.out(e.embed("wte", 12, 8, e.in(mb.tokens)))
			h := mb.unit(ir.HeadUnit, "head", -1)
			h.out(h.op("rope", "", attrs{"hd": *op.IntValue(4)}, h.linear("head", 12, h.in(x))))
			return mb.m, small
		}},
		{"a unit that changes nothing", "MT0330", func() (*ir.Model, Options) {
			mb := newModel(t, 4, 6, 12)
			e := mb.unit(ir.EmbedUnit, "embed", -1)
			x := e.out(e.embed("wte", 12, 8, e.in(mb.tokens)))
			u := mb.unit(ir.LayerUnit, "layer", 0)
			u.out(u.linear("up", 8, u.in(x)))
			h := mb.unit(ir.HeadUnit, "head", -1)
			h.out(h.linear("head", 12, h.in(x)))
			return mb.m, small
		}},
		{"rows that do not divide the batch", "MT0411", func() (*ir.Model, Options) {
			return models["x * x"](t), Options{Rows: 3}
		}},
		{"a block that is not there", "MT0414", func() (*ir.Model, Options) {
			return models["x * x"](t), Options{Rows: 2, Recompute: "layr"}
		}},
		{"five tied weights in a unit", "MT0412", func() (*ir.Model, Options) {
			mb := newModel(t, 4, 6, 8)
			e := mb.unit(ir.EmbedUnit, "embed", -1)
			ids := e.in(mb.tokens)
			var x *ir.Value
			for _, n := range []string{"a", "b", "c", "d"} {
				y := e.embed(n, 8, 8, ids)
				if x != nil {
					y = e.add(x, y)
				}
				x = y
			}
			h := mb.unit(ir.HeadUnit, "head", -1)
			y := h.linear("own", 8, h.in(e.out(x)))
			for _, n := range []string{"a", "b", "c", "d"} {
				y = h.tied("linear", "h"+n, n+".weight", attrs{"out": *op.IntValue(8)}, y)
			}
			h.out(y)
			return mb.m, small
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, o := c.build()
			var diags diag.List
			if p := Lower(m, o, &diags); p != nil {
				t.Error("a program in spite of the error")
			}
			list := diags.Sorted()
			if len(list) == 0 || list[0].Code != c.code {
				t.Errorf("diagnostics %v, want %s", &diags, c.code)
			}
		})
	}
}

func TestDefaultRows(t *testing.T) {
	for _, c := range []struct{ batch, seq, want int64 }{
		{512, 1024, 8}, {512, 4096, 2}, {512, 10000, 1}, {6, 2048, 3}, {7, 2048, 1}, {4, 8, 4}, {1, 1, 1},
	} {
		if got := DefaultRows(c.batch, c.seq, microTokens); got != c.want {
			t.Errorf("batch %d, seq %d: %d rows, want %d", c.batch, c.seq, got, c.want)
		}
	}
}

// TestRowsOnGPU: a micro-batch grows with the room for activations, within bounds.
func TestRowsOnGPU(t *testing.T) {
	mb := newModel(t, 512, 1024, 12)
	e := mb.unit(ir.EmbedUnit, "embed", -1)
	x := e.out(e.embed("wte", 12, 1000, e.in(mb.tokens)))
	h := mb.unit(ir.HeadUnit, "head", -1)
	h.out(h.linear("head", 12, h.in(x))) // 2000 bytes a token
	for _, c := range []struct {
		o    Options
		want int64
	}{
		{Options{}, 8},
		{Options{DType: tensor.BF16}, 64},
		{Options{DType: tensor.BF16, DeviceMemory: 256 << 20}, 32}, // 64 MiB are 33554 tokens
		{Options{DType: tensor.BF16, DeviceMemory: 1 << 20}, 8},
		{Options{DType: tensor.BF16, Rows: 2}, 2},
	} {
		if got := c.o.rows(mb.m); got != c.want {
			t.Errorf("%d bytes of device memory: %d rows, want %d", c.o.DeviceMemory, got, c.want)
		}
	}
}

func TestChunkRows(t *testing.T) {
	for _, c := range []struct {
		vocab, rows, want int64
		chunked           bool
		o                 Options
	}{
		{256, 8192, 8192, false, Options{}}, // 8 MiB: no chunks
		{50257, 8192, 256, true, Options{}}, // 16 MiB hold 83 rows, but fewer than 256 do not pay
		{8192, 8192, 512, true, Options{}},  // 16 MiB
		{50257, 100, 100, false, Options{}}, // all there are
		{64, 100, 16, true, Options{LogitsBytes: 4096, MinChunk: 4}},
		{50257, 8192, 8192, true, Options{DType: tensor.BF16}},   // 824 MB: the same loop as above, once
		{50257, 65536, 16384, true, Options{DType: tensor.BF16}}, // 1.6 GB of 2 GiB
		{152064, 65536, 4096, true, Options{DType: tensor.BF16}},
		{152064, 65536, 2048, true, Options{DType: tensor.BF16, DeviceMemory: 24 << 30}},
		{1 << 21, 65536, 1024, true, Options{DType: tensor.BF16}}, // 4 GiB, but fewer rows do not pay
		{256, 8192, 8192, false, Options{DType: tensor.BF16}},
	} {
		l := &Lowering{opts: c.o}
		logits := tensor.Type{DType: c.o.DType, Shape: tensor.Shape{{N: 1}, {N: c.rows}, {N: c.vocab}}}
		if got, chunked := l.chunkRows(logits, c.rows); got != c.want || chunked != c.chunked {
			t.Errorf("%d rows of %d %s logits: chunks of %d rows, %t; want %d, %t", c.rows, c.vocab, c.o.DType, got, chunked, c.want, c.chunked)
		}
	}
}

func TestCost(t *testing.T) {
	head := func(o Options) (flops [plan.NumFuncs]int64) {
		mb := newModel(t, 2, 5, 12)
		e := mb.unit(ir.EmbedUnit, "embed", -1)
		x := e.out(e.embed("wte", 12, 10, e.in(mb.tokens)))
		h := mb.unit(ir.HeadUnit, "head", -1)
		h.out(h.linear("head", 12, h.in(x)))
		p := mustLower(t, mb.m, o)
		for k, f := range p.Templates[1].Funcs {
			if f != nil {
				flops[k] = f.FLOPs
			}
		}
		return flops
	}
	// 10 rows: a linear of 2*10*12 operations a row, three of them in training; cross-entropy
	// of 4 operations a logit, 6 with its gradient. Generation: one row of the linear.
	want := [plan.NumFuncs]int64{plan.Loss: 10 * (3*240 + 6*12), plan.EvalLoss: 10 * (240 + 4*12), plan.Infer: 240}
	for _, o := range []Options{{Rows: 2}, {Rows: 2, LogitsBytes: 1, MinChunk: 3}} {
		if got := head(o); got != want {
			t.Errorf("%+v: %v FLOPs, want %v", o, got, want)
		}
	}
}
