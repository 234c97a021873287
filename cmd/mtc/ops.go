package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/diag/suggest"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/all"
)

func newOpsCmd(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "ops [NAME]",
		Short:   "list the ops, or show one: signature, shapes, defaults, an example",
		Example: "  mtc ops\n  mtc ops rope",
		Args:    argRange(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				listOps(e.out)
				return nil
			}
			d := all.Lookup(args[0])
			if d == nil || d.Hidden {
				u := usageErrorf("there is no op `%s`", args[0])
				if args[0] == "+" || args[0] == "-" || args[0] == "*" {
					u = usageErrorf("`%s` is an operator: it takes two tensors of one shape", args[0])
				} else if h := suggest.Hint(args[0], visibleOps()); h != "" {
					u.hint("%s", h)
				}
				return u.hint("`mtc ops` lists them")
			}
			showOp(e.out, d)
			return nil
		},
	}
}

// visibleOps names the ops that a .mt may call.
func visibleOps() []string {
	var out []string
	for _, d := range all.All() {
		if !d.Hidden {
			out = append(out, d.Name)
		}
	}
	return out
}

func listOps(w io.Writer) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, d := range all.All() {
		if !d.Hidden {
			fmt.Fprintf(tw, "%s\t%s\n", d.Name, d.Doc)
		}
	}
	fmt.Fprintf(tw, "+ - *\ttwo tensors of one shape, elementwise; `*` also by a constant\n")
	tw.Flush()
	fmt.Fprintln(w, "\n`mtc ops NAME` shows one. Constants also have sqrt(x) and ceil(n, m).")
}

// signature is an op as it is called, with defaults.
func signature(d *op.Def) string {
	params := make([]string, len(d.Params))
	for i, p := range d.Params {
		params[i] = p.Name
		if p.Default != nil {
			params[i] += " = " + p.Default.String()
		}
	}
	return d.Name + "(" + strings.Join(params, ", ") + ")"
}

func showOp(w io.Writer, d *op.Def) {
	fmt.Fprintf(w, "%s\n  %s\n\n", signature(d), d.Doc)
	name, kind := 0, 0
	for _, p := range d.Params {
		name, kind = max(name, len(p.Name)), max(kind, len(kindText(&p)))
	}
	for _, p := range d.Params {
		doc := wrapText(p.Doc, 80-name-kind-6)
		fmt.Fprintf(w, "  %-*s  %-*s  %s\n", name, p.Name, kind, kindText(&p), strings.Join(doc, "\n"+strings.Repeat(" ", name+kind+6)))
	}
	if d.Expands {
		for i := range d.Params {
			showCtors(w, d.Params[i].Name, d.Params[i].Ctors)
		}
	}
	fmt.Fprintf(w, "\ncomputes\n  %s\n\nexample\n  %s\n", d.Formula, d.Example)
	if n := exampleNode(d); n != nil {
		fmt.Fprintf(w, "  gives %s", n.Out.Type)
		for i, wt := range n.Call.Weights {
			sep := ", owns "
			if i > 0 {
				sep = " and "
			}
			fmt.Fprintf(w, "%s%s %s", sep, wt.Name, wt.Shape)
		}
		fmt.Fprintln(w)
	}
}

// wrapText breaks a text into lines of at most width columns, at least 24.
func wrapText(text string, width int) []string {
	width = max(width, 24)
	var lines []string
	line := ""
	for _, w := range strings.Fields(text) {
		if line != "" && len(line)+1+len(w) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += w
	}
	return append(lines, line)
}

// kindText is the kind of a parameter and, of a flag or word, what it may be.
func kindText(p *op.Param) string {
	switch {
	case p.Kind == op.Bool:
		return "flag"
	case p.Kind == op.Word && len(p.Words) > 0:
		return strings.Join(p.Words, " | ")
	}
	return p.Kind.String()
}

// exampleText puts an op's example into a small model: in its block, or in forward where it
// reads `position`.
func exampleText(d *op.Def) string {
	target, _, _ := strings.Cut(d.Example, " ")
	use := ""
	if target != "x" {
		use = "\nx += use: linear(" + target + ", D)"
	}
	ex := diag.Example{In: "block", Text: d.Example + use + "\n"}
	if strings.Contains(d.Example, "position") || strings.Contains(d.Example, "tokens") {
		ex = diag.Example{In: "forward", Text: "x = wte: embed(tokens, V, D)\n" + d.Example + "\nlayer(x)\nreturn head: linear(x, V)\n"}
	}
	text := ex.File()["m.mt"]
	if d.Expands {
		const layer = "  block layer(x) {"
		text = strings.Replace(text, layer, "  block mlp(x, width) { return down: linear(relu2(up: linear(x, width)), D) }\n"+layer, 1)
	}
	return text
}

// showCtors shows what constructors of a parameter take, and those of their parameters.
func showCtors(w io.Writer, param string, ctors []op.Ctor) {
	for _, c := range ctors {
		fmt.Fprintf(w, "\n%s = %s\n", param, signature(&op.Def{Name: c.Name, Params: c.Params}))
		width := 0
		for _, p := range c.Params {
			width = max(width, len(p.Name))
		}
		for _, p := range c.Params {
			doc := p.Doc
			if p.Kind == op.Word {
				doc += ": " + kindText(&p)
			}
			fmt.Fprintf(w, "  %-*s  %s\n", width, p.Name, strings.Join(wrapText(doc, 80-width-4), "\n"+strings.Repeat(" ", width+4)))
		}
	}
	for _, c := range ctors {
		for i := range c.Params {
			showCtors(w, c.Params[i].Name, c.Params[i].Ctors)
		}
	}
}

// exampleNode compiles the example of an op and returns its node, nil when the example does not
// compile.
func exampleNode(d *op.Def) *ir.Node {
	var l diag.List
	res, err := compiler.Check(context.Background(), compiler.Options{Path: "example.mt", Text: []byte(exampleText(d))}, &l)
	if err != nil || res.Model == nil {
		return nil
	}
	var last *ir.Node
	for _, u := range res.Model.Units {
		for _, n := range u.Graph.Nodes {
			if !strings.Contains(d.Example, n.Span.Text()) {
				continue
			}
			if n.Call.Def == d {
				return n
			}
			if d.Expands && n.Call.Def.Room == d.Package() {
				last = n // what the op became, its result last
			}
		}
	}
	return last
}
