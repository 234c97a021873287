package lower

import (
	"slices"

	"github.com/megatrain/mtc/runtime/op"
)

// epilogues lets the product before a GELU do it, and in backward the product that makes the
// GELU's gradient multiply it by the slope (linear's fused launches). A matrix library then does
// so on its way out, and a pass over the widest activations falls away. Only the tanh form has a
// launch. Forward and backward share values; in generation backward is nil.
func (b *builder) epilogues(forward, backward []*inst) (f, g []*inst) {
	readers, maker := map[*value]int{}, map[*value]*inst{}
	for _, in := range slices.Concat(forward, backward) {
		for _, list := range [][]operand{in.reads, in.adds} {
			for _, o := range list {
				readers[o.v]++
			}
		}
		for _, o := range in.writes {
			maker[o.v] = in
		}
	}
	for _, out := range b.t.Graph.Outputs {
		readers[b.values[out]]++
	}
	gone := map[*inst]bool{}
	for i, in := range forward {
		x := in.readOf("x")
		if !tanhGelu(in, &in.call.Def.Forward) || !plainProduct(maker[x], "Forward") {
			continue
		}
		p := maker[x]
		fused := *p
		fused.launch = p.call.Def.ByName("ForwardGelu")
		pre := operand{name: "pre"}
		if readers[x] > 1 {
			pre.v = x
		}
		fused.writes = []operand{pre, in.writes[0]}
		forward[i] = &fused
		gone[p] = true
	}
	for i, in := range backward {
		dy := in.readOf("d.y")
		if len(in.call.Def.Backward) != 1 || !tanhGelu(in, &in.call.Def.Backward[0]) || readers[dy] != 1 || !plainProduct(maker[dy], "BackwardInput") {
			continue
		}
		p := maker[dy]
		fused := *p
		fused.launch = p.call.Def.ByName("BackwardInputGelu")
		fused.reads = append(slices.Clone(p.reads), operand{name: "pre", v: in.readOf("x")})
		fused.writes = in.writes
		backward[i] = &fused
		gone[p] = true
	}
	done := func(in *inst) bool { return gone[in] }
	return slices.DeleteFunc(forward, done), slices.DeleteFunc(backward, done)
}

// tanhGelu tells whether a launch is that of a GELU in its tanh form which adds to nothing.
func tanhGelu(in *inst, launch *op.Launch) bool {
	return in.call.Def.Name == "gelu" && in.launch == launch && in.call.Word("approx") == "tanh" && !in.inLoop && !in.addsAny()
}

// plainProduct tells whether a launch is a linear's of that name, outside of the head's loop,
// which adds to nothing and whose rows are dense.
func plainProduct(in *inst, name string) bool {
	return in != nil && in.call.Def.Name == "linear" && in.launch.Func == name && !in.inLoop && !in.addsAny() &&
		!slices.ContainsFunc(in.call.Consts, func(c op.Const) bool { return c.Field == "Pitch" })
}

// addsAny tells whether a launch has an addend.
func (in *inst) addsAny() bool {
	return slices.ContainsFunc(in.adds, func(o operand) bool { return o.v != nil })
}

// readOf is the value that a launch reads as an operand; nil when it has none.
func (in *inst) readOf(name string) *value {
	for _, o := range in.reads {
		if o.name == name {
			return o.v
		}
	}
	return nil
}
