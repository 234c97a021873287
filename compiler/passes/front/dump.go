package front

import (
	"fmt"
	"sort"
	"strings"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/plan"
)

// The Dump functions print what a pass made, for --dump-after. The text is stable.

// DumpFiles prints the files and what they declare.
func DumpFiles(s *State) string {
	var b strings.Builder
	for _, f := range s.Files {
		fmt.Fprintf(&b, "%s\n", f.Source.Name)
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.Use:
				fmt.Fprintf(&b, "  use %q\n", d.Path)
			case *ast.Model:
				if d.Instance != nil {
					fmt.Fprintf(&b, "  model %s = %s(...)\n", d.Name.Name, d.Instance.Callee.Name)
				} else {
					fmt.Fprintf(&b, "  model %s\n", d.Name.Name)
				}
			case *ast.Train:
				fmt.Fprintf(&b, "  train\n")
			}
		}
	}
	return b.String()
}

// DumpTarget prints which model is compiled and where its values come from.
func DumpTarget(s *State) string {
	var b strings.Builder
	t := s.target
	fmt.Fprintf(&b, "model %s\n", t.name.Name)
	for i := len(t.chain) - 1; i >= 0; i-- {
		fmt.Fprintf(&b, "  instance %s of %s, %s\n", t.chain[i].Name.Name, t.chain[i].Instance.Callee.Name, t.chain[i].Span.Line())
	}
	fmt.Fprintf(&b, "  body %s, %s\n", t.model.Name.Name, t.model.Span.Line())
	if t.preset != nil {
		fmt.Fprintf(&b, "  preset %s, %s\n", t.preset.Name.Name, t.preset.Span.Line())
	}
	for _, set := range t.sets {
		fmt.Fprintf(&b, "  --set %s=%s\n", set.key.Name, set.value.Pos().Text())
	}
	for _, set := range t.trains {
		fmt.Fprintf(&b, "  --set train.%s=%s\n", set.key.Name, set.value.Pos().Text())
	}
	return b.String()
}

// DumpNames prints the labels of each model.
func DumpNames(s *State) string {
	var b strings.Builder
	for _, f := range s.Files {
		for _, m := range ownModels(f) {
			ls := s.labels[m]
			if ls == nil {
				continue
			}
			fmt.Fprintf(&b, "model %s\n", m.Name.Name)
			fmt.Fprintf(&b, "  forward: %s\n", strings.Join(keys(ls.forward), " "))
			for _, blk := range m.Blocks {
				fmt.Fprintf(&b, "  block %s: %s\n", blk.Name.Name, strings.Join(keys(ls.blocks[blk.Name.Name]), " "))
			}
		}
	}
	return b.String()
}

func keys(m map[string]bool) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

// DumpTrain prints the train block with its defaults.
func DumpTrain(s *State) string {
	t := s.Model.Train
	if t == nil {
		return "no train block: B and T are symbolic\n"
	}
	var b strings.Builder
	r := &t.Run
	fmt.Fprintf(&b, "seq %d\nbatch %d rows, %d tokens\nsteps %d\n", s.Model.Seq, s.Model.Batch, t.BatchTokens, r.Steps)
	fmt.Fprintf(&b, "optimizer adamw(beta1 = %g, beta2 = %g, eps = %g, decay = %g)\n", r.Optimizer.Beta1, r.Optimizer.Beta2, r.Optimizer.Eps, r.Optimizer.Decay)
	fmt.Fprintf(&b, "lr %s(peak = %g, warmup = %d, final = %g, decay = %d)\n", r.LR.Kind, r.LR.Peak, r.LR.Warmup, r.LR.Final, r.LR.Decay)
	fmt.Fprintf(&b, "clip %g\neval every %d on %q, %d batches\nsave every %d, keep %d\n", r.Clip, r.EvalEvery, r.EvalData, r.EvalSteps, r.SaveEvery, r.SaveKeep)
	fmt.Fprintf(&b, "data %q, width %d\nseed %d\nprecision %s\n", r.Data, r.Width, r.Seed, t.Precision)
	if t.Documents {
		b.WriteString("documents packed\n")
	}
	return b.String()
}

// DumpConstants prints the model's parameters.
func DumpConstants(s *State) string {
	var b strings.Builder
	for _, c := range s.Model.Consts {
		fmt.Fprintf(&b, "%-10s = %-24s %s\n", c.Name, c.Value.String(), c.From)
	}
	return b.String()
}

// DumpUnits prints the graph of every unit; equal neighbours are printed once.
func DumpUnits(s *State) string {
	var b strings.Builder
	units := s.Model.Units
	for i := 0; i < len(units); {
		text := unitText(units[i])
		j := i + 1
		for j < len(units) && units[j].Name == units[i].Name && unitText(units[j]) == text {
			j++
		}
		if j-i > 1 {
			fmt.Fprintf(&b, "%s to %s\n", units[i].Path(), units[j-1].Path())
		} else {
			fmt.Fprintf(&b, "%s\n", units[i].Path())
		}
		b.WriteString(text)
		i = j
	}
	return b.String()
}

// unitText prints a graph with values numbered, so that instances print alike.
func unitText(u *ir.Unit) string {
	var b strings.Builder
	num := map[*ir.Value]string{}
	name := func(v *ir.Value) string {
		if n, ok := num[v]; ok {
			return n
		}
		n := fmt.Sprintf("%%%d", len(num))
		num[v] = n
		return n
	}
	shape := func(v *ir.Value) string {
		if v.Type.Shape == nil {
			return ""
		}
		return " " + v.Type.String()
	}
	for _, v := range u.Graph.Inputs {
		fmt.Fprintf(&b, "  in  %s %s%s\n", name(v), v.Name, shape(v))
	}
	for _, n := range u.Graph.Nodes {
		var args []string
		for i, in := range n.Inputs {
			args = append(args, n.Call.Inputs[i]+" = "+name(in))
		}
		args = append(args, attrs(n.Call)...)
		for _, w := range n.Weights {
			args = append(args, w.Path+" "+w.Shape.String())
		}
		label := ""
		if n.Label != "" {
			label = n.Label + ": "
		}
		fmt.Fprintf(&b, "  %s = %s%s(%s)%s  // %s\n", name(n.Out), label, n.Call.Def.Name, strings.Join(args, ", "), shape(n.Out), n.Span.Line())
	}
	for _, v := range u.Graph.Outputs {
		fmt.Fprintf(&b, "  out %s %s%s\n", name(v), v.Name, shape(v))
	}
	return b.String()
}

// attrs prints the constants of a call that differ from their defaults.
func attrs(c *op.Call) []string {
	var out []string
	for _, p := range c.Def.Params {
		v, ok := c.Attr[p.Name]
		if !ok || p.Default != nil && v.String() == p.Default.String() {
			continue
		}
		out = append(out, p.Name+" = "+v.String())
	}
	return out
}

// DumpParams prints every parameter with its shape and init; equal ones of instances that
// follow one another are printed once.
func DumpParams(s *State) string {
	var b strings.Builder
	for _, p := range s.Model.Params {
		tied := ""
		if p.Uses > 1 {
			tied = fmt.Sprintf("  used by %d units", p.Uses)
		}
		fmt.Fprintf(&b, "%-40s %-24s %s%s\n", p.Path, p.Shape, initText(p.Init), tied)
	}
	fmt.Fprintf(&b, "%d parameters\n", s.Model.NumParams())
	return b.String()
}

func initText(i plan.Init) string {
	switch i.Kind {
	case plan.InitZero:
		return "zero"
	case plan.InitOne:
		return "one"
	case plan.InitUniform:
		return fmt.Sprintf("uniform(%g)", i.Scale)
	}
	return fmt.Sprintf("normal(%g)", i.Scale)
}

// DumpMaps prints the weights maps, entry by entry.
func DumpMaps(s *State) string {
	if len(s.Model.Maps) == 0 {
		return "no weights maps\n"
	}
	var b strings.Builder
	for _, m := range s.Model.Maps {
		fmt.Fprintf(&b, "weights %s\n", m.Name)
		for _, e := range m.Entries {
			var paths []string
			for _, p := range e.Targets {
				paths = append(paths, p.Path)
			}
			right := strings.Join(e.Names, ", ")
			if e.Op != "" {
				right = e.Op + "(" + right + ")" + strings.Repeat(")", strings.Count(e.Op, "("))
			}
			fmt.Fprintf(&b, "  %s = %s\n", strings.Join(paths, ", "), right)
		}
	}
	return b.String()
}
