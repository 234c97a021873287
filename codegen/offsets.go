package codegen

import (
	"bytes"
	"fmt"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/runtime/tensor"
)

// Constants of plan_gen.go: where values lie. They are what a template's functions do not say
// themselves, because it depends on the element types of the device.

// weightNames are the constants of a template's weights, by index of Graph.Weights: the place
// of the weight in its slab, and of its gradient in the slab's gradient.
type weightNames struct{ value, grad []string }

// name chooses the names of all constants; no two are equal. They start with a capital, and
// functions and locals do not.
func (g *generator) name() {
	taken := localNames{"B": true, "T": true, "Rows": true}
	for _, t := range g.templates {
		taken[camel(t)+"Chunk"] = true
	}
	for i, t := range g.Program.Templates {
		var n weightNames
		for _, w := range t.Graph.Weights {
			name := taken.take(camel(g.templates[i]) + camel(w.Path))
			n.value, n.grad = append(n.value, name), append(n.grad, taken.take(name+"Grad"))
		}
		g.weights = append(g.weights, n)
	}
	for i, t := range g.Program.Templates {
		var list []*funcWriter
		for _, kind := range funcOrder {
			if fn := t.Funcs[kind]; fn != nil {
				w := newFuncWriter(t, fn, g.templates[i], g.weights[i])
				w.nameOffsets(taken)
				list = append(list, w)
			}
		}
		g.writers = append(g.writers, list)
	}
}

// goName is the Go name of the function.
func (w *funcWriter) goName() string { return w.name + funcSuffix[w.fn.Func] }

// inside are the regions in which a value lies at an offset.
var inside = []struct {
	region ir.Region
	title  string
}{
	{ir.RSaved, "in Saved"}, {ir.RState, "in State"}, {ir.RWork, "in Work"}, {ir.RTargets, "behind the targets"},
}

// nameOffsets names the constants of a function's locals.
func (w *funcWriter) nameOffsets(taken localNames) {
	for _, l := range w.locals {
		for _, in := range inside {
			if l.place.Region == in.region && (in.region != ir.RTargets || l.place.Off != 0) {
				l.off = taken.take(camel(w.goName()) + camel(l.name))
			}
		}
		if l.rowBytes > 0 {
			l.row = taken.take(camel(w.goName()) + camel(l.name) + "Row")
		}
	}
}

// offsets writes the constants of a function.
func (w *funcWriter) offsets(b *bytes.Buffer) {
	for _, in := range inside {
		var lines [][3]string
		for _, l := range w.inRegion(in.region) {
			if l.off == "" {
				continue // the targets themselves
			}
			lines = append(lines, [3]string{l.off, fmt.Sprint(l.place.Off), comment(l)})
		}
		if len(lines) > 0 {
			fmt.Fprintf(b, "\n// Values of %s %s: byte offsets.\n", w.goName(), in.title)
			consts(b, lines)
		}
	}
	var lines [][3]string
	for _, l := range w.locals {
		if l.rowBytes > 0 {
			lines = append(lines, [3]string{l.row, fmt.Sprint(l.rowBytes), comment(l)})
		}
	}
	if len(lines) > 0 {
		fmt.Fprintf(b, "\n// Values that %s goes along row by row: bytes of a row.\n", w.goName())
		consts(b, lines)
	}
}

// comment is a value's type, with the element type where it is not f32.
func comment(l *local) string {
	if l.place.DType == tensor.BF16 {
		return l.place.DType.String() + l.place.Value
	}
	return l.place.Value
}
