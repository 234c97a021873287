package codegen

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/runtime/tensor"
)

// planFile writes plan_gen.go. The tables are long, so that they are written as text that is
// gofmt-clean as it stands; a test holds it to that.
func (g *generator) planFile() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "// %s\n\npackage main\n\nimport (\n", g.header(true))
	var body bytes.Buffer
	g.sizes(&body)
	for i := range g.Program.Templates {
		g.layout(&body, i)
		for _, w := range g.writers[i] {
			w.offsets(&body)
		}
	}
	l := &literals{out: &body}
	l.plan(g.Plan)
	if l.device {
		fmt.Fprintf(&b, "\t%q\n", pkgDevice)
	}
	fmt.Fprintf(&b, "\t%q\n)\n", pkgPlan)
	body.WriteTo(&b)
	return b.Bytes()
}

// sizes writes the symbolic sizes and the head's chunks.
func (g *generator) sizes(b *bytes.Buffer) {
	p := g.Program
	lines := [][3]string{
		{"B", fmt.Sprint(p.Rows), "sequences of a micro-batch"},
		{"T", fmt.Sprint(p.Model.Seq), "positions of a sequence"},
		{"Rows", "B * T", "rows of every activation"},
	}
	for i, t := range p.Templates {
		for _, fn := range t.Funcs {
			if fn == nil {
				continue
			}
			for _, s := range fn.Body {
				if l, ok := s.(*ir.Loop); ok && !l.Last {
					line := [3]string{camel(g.templates[i]) + "Chunk", fmt.Sprint(l.Chunk), "rows for which logits exist at once"}
					if lines[len(lines)-1] != line {
						lines = append(lines, line)
					}
				}
			}
		}
	}
	b.WriteString("\n// Sizes of the functions in template_*_gen.go.\n")
	consts(b, lines)
}

// layout writes the offsets of a template's weights in their slabs, and of their gradients,
// which are f32 whatever the weights are.
func (g *generator) layout(b *bytes.Buffer, i int) {
	t, names := g.Program.Templates[i], g.weights[i]
	if len(t.Graph.Weights) == 0 {
		return
	}
	weight := g.Program.DType
	for _, part := range []struct {
		title string
		names []string
		typ   tensor.DType
	}{
		{"Weights of template %s: byte offsets in the slab they are bound with.", names.value, weight},
		{"Gradients of the weights of template %s: byte offsets in the slab's gradient.", names.grad, tensor.F32},
	} {
		var lines [][3]string
		for s, l := range t.Slabs {
			for k, i := range l.Weights {
				w := tensor.Type{DType: part.typ, Shape: t.Graph.Weights[i].Shape}
				lines = append(lines, [3]string{part.names[i], fmt.Sprint(part.typ.Size() * l.Offs[k]), fmt.Sprintf("slab %d: %s %s", s, t.Graph.Weights[i].Path, w)})
			}
		}
		fmt.Fprintf(b, "\n// "+part.title+"\n", g.templates[i])
		consts(b, lines)
	}
}

// consts writes a block of constants with comments, aligned as gofmt does.
func consts(b *bytes.Buffer, lines [][3]string) {
	var w0, w1 int
	for _, l := range lines {
		w0, w1 = max(w0, len(l[0])), max(w1, len(l[1]))
	}
	b.WriteString("const (\n")
	for _, l := range lines {
		fmt.Fprintf(b, "\t%-*s = %-*s // %s\n", w0, l[0], w1, l[1], strings.TrimSpace(l[2]))
	}
	b.WriteString(")\n")
}
