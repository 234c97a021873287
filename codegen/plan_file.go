package codegen

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/megatrain/mtc/compiler/ir"
)

// planFile writes plan_gen.go. The tables are long, so that they are written as text that is
// gofmt-clean as it stands; a test holds it to that.
func (g *generator) planFile() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "// %s\n\npackage main\n\nimport (\n", g.header())
	var body bytes.Buffer
	g.sizes(&body)
	for i, t := range g.Program.Templates {
		layout(&body, t, g.templates[i])
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

// layout writes the offsets of a template's weights in their slabs.
func layout(b *bytes.Buffer, t *ir.Template, name string) {
	if len(t.Graph.Weights) == 0 {
		return
	}
	fmt.Fprintf(b, "\n// Weights of template %s: byte offsets in the slab they are bound with; gradients lie alike.\n", name)
	var lines [][3]string
	for s, l := range t.Slabs {
		for k, i := range l.Weights {
			w := t.Graph.Weights[i]
			lines = append(lines, [3]string{weightName(name, t, i), fmt.Sprint(4 * l.Offs[k]), fmt.Sprintf("slab %d: %s %s", s, w.Path, w.Shape)})
		}
	}
	consts(b, lines)
}

// weightName is the constant of a weight: template and path, unique within the template.
func weightName(template string, t *ir.Template, i int) string {
	name := camel(template) + camel(t.Graph.Weights[i].Path)
	for k, n := 0, 2; k < i; k++ {
		if camel(template)+camel(t.Graph.Weights[k].Path) == camel(template)+camel(t.Graph.Weights[i].Path) {
			name = fmt.Sprintf("%s%d", camel(template)+camel(t.Graph.Weights[i].Path), n)
			n++
		}
	}
	return name
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
