package compiler

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/compiler/passes/front"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/moe"
	"github.com/megatrain/mtc/runtime/plan"
)

// identity writes down what a checkpoint depends on: the parameters with their shapes, the
// sequence length, and the mathematics of the graph. What only says how a model is trained or
// where it runs is left out, and so is how its text is written: train block, inits, batch,
// element types, placement, names of variables, blocks and the model.
func identity(m *ir.Model) string {
	var b strings.Builder
	fmt.Fprintf(&b, "seq %d\n", m.Seq)
	for _, p := range m.Params {
		fmt.Fprintf(&b, "param %s", p.Path)
		for _, d := range p.Shape {
			fmt.Fprintf(&b, " %d", d.N)
		}
		b.WriteByte('\n')
	}
	w := graphWriter{out: &b, names: map[*ir.Value]string{}}
	for _, u := range m.Units {
		w.unit(u)
	}
	if l := m.LoRA; l != nil {
		fmt.Fprintf(&b, "lora %d %g\n", l.Rank, l.Alpha)
		for _, t := range l.Targets {
			fmt.Fprintf(&b, "adapter %s\n", t.Weight.Path)
		}
	}
	return b.String()
}

// graphWriter numbers values in the order of their making.
type graphWriter struct {
	out   *strings.Builder
	names map[*ir.Value]string
	count int
	// params are what is written for a parameter; nil: its path.
	params map[string]string
	// forward leaves out what forward does not depend on: the losses of a router, and the balance that one
	// of them is.
	forward bool
}

// trained tells whether a constant is part of a router's losses alone.
func trained(c *op.Call, name string) bool {
	switch name {
	case "alpha", "zloss":
		return c.Def.Room == moe.Room
	case "balance":
		b := c.Attr["balance"].Int
		return c.Def.Room == moe.Room && (b == moe.NoBalance || b == moe.AuxMicro || b == moe.AuxStep)
	}
	return false
}

func (w *graphWriter) name(v *ir.Value) string {
	if n, ok := w.names[v]; ok {
		return n
	}
	if v.Node == nil && (v.Name == "tokens" || v.Name == "position") {
		return v.Name // words that no variable can have
	}
	n := fmt.Sprintf("%%%d", w.count)
	w.count++
	w.names[v] = n
	return n
}

// unit writes one op a line: its inputs, constants and weights.
func (w *graphWriter) unit(u *ir.Unit) {
	for i, v := range u.Graph.Inputs {
		w.names[v] = w.name(u.Inputs[i])
	}
	params := map[*ir.Weight]string{}
	for i, x := range u.Graph.Weights {
		params[x] = u.Params[i].Path
		if w.params != nil {
			if _, known := w.params[u.Params[i].Path]; !known { // the experts' weights together
				w.params[u.Params[i].Path] = fmt.Sprintf("group%d", len(w.params))
			}
			params[x] = w.params[u.Params[i].Path]
		}
	}
	for _, n := range u.Graph.Nodes {
		fmt.Fprintf(w.out, "%s = %s", w.name(n.Out), n.Call.Def.Name)
		for i, v := range n.Inputs {
			fmt.Fprintf(w.out, " %s=%s", n.Call.Inputs[i], w.name(v))
		}
		for i := range n.Call.Def.Params {
			p := &n.Call.Def.Params[i]
			v, ok := n.Call.Attr[p.Name]
			if ok && p.Name == "slots" && u.Router != nil { // room for rows is no part of what is computed
				v = *op.IntValue(front.DefaultSlots(u.Router.Mean, u.Router.Experts, u.Router.Attr["kind"].Int == moe.TopK))
			}
			if w.forward && trained(n.Call, p.Name) || p.Name == "dims" && v.IsNone() {
				continue // dims came later: without them a model is what it was
			}
			if ok && p.Kind != op.InitKind && p.Kind != op.TieKind { // a tie shows in the weight's path
				fmt.Fprintf(w.out, " %s=%s", p.Name, constantText(v))
			}
		}
		for _, x := range n.Weights {
			fmt.Fprintf(w.out, " %s", params[x])
		}
		w.out.WriteByte('\n')
	}
	for i, v := range u.Graph.Outputs {
		w.names[u.Outputs[i]] = w.name(v)
	}
	if u.Kind == ir.HeadUnit {
		fmt.Fprintf(w.out, "logits %s\n", w.name(u.Graph.Outputs[0]))
	}
}

// constantText writes equal numbers alike: 1e4, 10000 and 10000.0 are one theta.
func constantText(v op.Value) string {
	switch v.Kind {
	case op.VInt, op.VFloat:
		return fmt.Sprint(v.Num())
	case op.VCall, op.VBlock:
		given := v.Args
		for len(given) > 0 && given[len(given)-1].IsNone() {
			given = given[:len(given)-1] // as if it were not there: constructors get new arguments at their end
		}
		args := make([]string, len(given))
		for i, a := range given {
			args[i] = constantText(a)
		}
		return v.Str + "(" + strings.Join(args, ", ") + ")"
	}
	return v.String()
}

// identify keeps the identity for the plan. Later passes rewrite the graph for the target.
func identify(s *state) { s.identity = identity(s.res.Model) }

// values are the model's parameters, and those of its routers and adapters, which tell a person what the hash of an identity cannot.
func values(m *ir.Model) []plan.Value {
	out := make([]plan.Value, len(m.Consts))
	for i, c := range m.Consts {
		out[i] = plan.Value{Name: c.Name, Text: constantText(c.Value)}
	}
	out = append(out, routerValues(m)...)
	if l := m.LoRA; l != nil {
		out = append(out, plan.Value{Name: "lora.rank", Text: fmt.Sprint(l.Rank)}, plan.Value{Name: "lora.alpha", Text: fmt.Sprint(l.Alpha)})
	}
	return out
}

// modelHash is the identity in brief.
func modelHash(s *state) string {
	if s.modelHash != "" {
		return s.modelHash
	}
	sum := sha256.Sum256([]byte(s.identity))
	return hex.EncodeToString(sum[:])[:16]
}
