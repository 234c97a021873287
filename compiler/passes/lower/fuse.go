package lower

import (
	"fmt"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/all"
	"github.com/megatrain/mtc/runtime/tensor"
)

// fusion rewrites one node with its producers to one op. It returns the new node's op and
// inputs, and the producer that is no longer needed; a nil producer means no match.
type fusion struct {
	name  string
	match func(n *ir.Node, only func(*ir.Value) bool) (inputs []*ir.Value, gone *ir.Node)
	into  string   // name of the fused op
	names []string // operand names of inputs
}

// fusions are tried in order on every node.
var fusions = []fusion{
	{name: "silu(gate) * up", match: matchSwiGLU, into: "swiglu", names: []string{"gate", "up"}},
}

// Fuse rewrites patterns of ops to fused ones. The fused node keeps the span and the result
// of the last op of its pattern.
func Fuse(m *ir.Model) {
	for _, u := range m.Units {
		fuseGraph(u.Graph)
	}
}

func fuseGraph(g *ir.Graph) {
	uses := map[*ir.Value]int{}
	for _, v := range g.Outputs {
		uses[v]++
	}
	for _, n := range g.Nodes {
		for _, v := range n.Inputs {
			uses[v]++
		}
	}
	only := func(v *ir.Value) bool { return uses[v] == 1 }
	gone := map[*ir.Node]bool{}
	for _, n := range g.Nodes {
		for _, f := range fusions {
			inputs, dead := f.match(n, only)
			if dead == nil {
				continue
			}
			call := &op.Call{Def: all.Lookup(f.into), Inputs: f.names, Attr: map[string]op.Value{}}
			for _, v := range inputs {
				call.In = append(call.In, v.Type)
			}
			mustInfer(call)
			if n.Out.Name == n.Call.Def.Name {
				n.Out.Name = f.into // the text gave it no name
			}
			n.Call, n.Inputs = call, inputs
			gone[dead] = true
			break
		}
	}
	nodes := g.Nodes[:0]
	for _, n := range g.Nodes {
		if !gone[n] {
			nodes = append(nodes, n)
		}
	}
	g.Nodes = nodes
}

// matchSwiGLU finds silu(gate) * up and up * silu(gate), where nothing else reads the silu.
func matchSwiGLU(n *ir.Node, only func(*ir.Value) bool) ([]*ir.Value, *ir.Node) {
	if n.Call.Def.Name != "mul" {
		return nil, nil
	}
	for i, v := range n.Inputs {
		if s := v.Node; s != nil && s.Call.Def.Name == "silu" && only(v) {
			return []*ir.Value{s.Inputs[0], n.Inputs[1-i]}, s
		}
	}
	return nil, nil
}

// newCall makes an inferred call of an op that passes insert.
func newCall(name string, operands []string, in []tensor.Type, attr map[string]op.Value) *op.Call {
	c := &op.Call{Def: all.Lookup(name), Inputs: operands, In: in, Attr: attr}
	mustInfer(c)
	return c
}

// mustInfer infers a call whose operands are known to fit.
func mustInfer(c *op.Call) {
	if err := c.Def.Infer(c); err != nil {
		panic(fmt.Sprintf("%s does not take the operands it is given: %v", c.Def.Name, err))
	}
}
