package codegen

import (
	"fmt"
	"path"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/runtime/plan"
)

// funcSuffix names the function of each direction.
var funcSuffix = [plan.NumFuncs]string{
	plan.Forward: "Forward", plan.Recompute: "Recompute", plan.Backward: "Backward",
	plan.Loss: "Loss", plan.EvalLoss: "EvalLoss", plan.Infer: "Infer", plan.Again: "Again", plan.Advance: "Advance",
}

// funcOrder is the order of functions in a file.
var funcOrder = []plan.Func{plan.Forward, plan.Recompute, plan.Again, plan.Backward, plan.Loss, plan.EvalLoss, plan.Infer, plan.Advance}

// templateFile writes the functions of template i.
func (g *generator) templateFile(i int) ([]byte, error) {
	t, name := g.Program.Templates[i], g.templates[i]
	f := g.newFile(false)
	f.HeaderComment("// Template " + name + ": what " + g.usersOf(t) + ", launch by launch.")
	for _, w := range g.writers[i] {
		body, err := w.body()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.fn.Func, err)
		}
		for _, line := range w.doc() {
			f.Comment(line)
		}
		f.Func().Id(w.goName()).Params(
			jen.Id("queue").Qual(pkgDevice, "Queue"),
			jen.Id("b").Op("*").Qual(pkgEngine, "Binding"),
		).Block(body...)
		f.Line()
	}
	return render(f)
}

// usersOf says which units a template serves: "head runs", "layer[0] and layer[2] run".
func (g *generator) usersOf(t *ir.Template) string {
	var names []string
	for _, u := range g.Program.Units {
		if g.Program.Templates[u.Template] == t {
			names = append(names, u.Unit.Path())
		}
	}
	if n := len(names); n > 4 {
		names = []string{names[0], names[1], "...", names[n-1]}
		return strings.Join(names, ", ") + " run"
	}
	if len(names) == 1 {
		return names[0] + " runs"
	}
	return list(names) + " run"
}

// doc says what a function does, what it reads and what it leaves, in lines of a comment.
func (w *funcWriter) doc() []string {
	name := w.goName()
	in := w.interfaceText(ir.RIn)
	var text string
	switch w.fn.Func {
	case plan.Forward:
		text = fmt.Sprintf("%s computes %s from %s for one micro-batch.", name, w.interfaceText(ir.ROut), in)
		if saved := w.namesIn(ir.RSaved); len(saved) > 0 {
			text += " It keeps " + list(saved) + " for " + w.name + "Backward."
		}
	case plan.Recompute:
		text = fmt.Sprintf("%s computes again from %s what %sBackward reads: %s.", name, in, w.name, list(w.namesIn(ir.RSaved)))
	case plan.Again:
		text = fmt.Sprintf("%s computes again from %s both %s, which the next layer was given, and what %sBackward reads: %s.",
			name, in, w.interfaceText(ir.ROut), w.name, list(w.namesIn(ir.RSaved)))
	case plan.Backward:
		text = fmt.Sprintf("%s takes %s", name, w.interfaceText(ir.RDOut))
		if d := w.interfaceText(ir.RDIn); d != "" {
			text += " and computes " + d
		}
		text += w.gradText()
	case plan.Loss:
		text = fmt.Sprintf("%s computes the loss of %s against the targets, into Partials, and its gradients in one pass", name, in)
		if d := w.interfaceText(ir.RDIn); d != "" {
			text += ": " + d
		}
		text += w.gradText()
		text += w.chunkText()
	case plan.EvalLoss:
		text = fmt.Sprintf("%s computes the loss of %s against the targets, into Partials.%s", name, in, w.chunkText())
	case plan.Infer:
		text = fmt.Sprintf("%s computes %s from %s for the next b.Rows positions of one sequence, the first of which is b.Pos.", name, w.interfaceText(ir.ROut), in)
		if state := w.namesIn(ir.RState); len(state) > 0 {
			text += " Earlier positions stand in " + list(state) + "."
		}
		if w.hasLast {
			text += " Only the last row is computed to the end."
		}
	}
	if w.fn.Func == plan.Advance {
		text = name + " moves the router by what the step's micro-batches have counted, once they are all done."
	}
	return wrap(text, 97)
}

func (w *funcWriter) gradText() string {
	if len(w.t.Slabs) == 0 {
		return "."
	}
	return ". Gradients of the weights are set, or added to where b.Add says so."
}

func (w *funcWriter) chunkText() string {
	if !w.chunked {
		return ""
	}
	return fmt.Sprintf(" Logits exist for %s rows at a time.", w.chunkName())
}

// interfaceText lists the values of a region with their types, in order of index, each once.
func (w *funcWriter) interfaceText(r ir.Region) string {
	var out []string
	for _, l := range w.inRegion(r) {
		if !l.early {
			out = append(out, l.name+" "+l.place.Value)
		}
	}
	return list(out)
}

// namesIn lists the names of the values in a region.
func (w *funcWriter) namesIn(r ir.Region) []string {
	var out []string
	for _, l := range w.inRegion(r) {
		out = append(out, l.name)
	}
	return out
}

// list joins words with commas and an "and".
func list(words []string) string {
	switch len(words) {
	case 0:
		return ""
	case 1:
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// wrap breaks text into lines of at most width runes.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = word
			continue
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// lineOf is "nano.mt:12", without the folder.
func lineOf(s interface{ Line() string }) string { return oneLine(path.Base(s.Line())) }
