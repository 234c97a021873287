package lower

import (
	"fmt"
	"strings"

	"github.com/megatrain/mtc/compiler/ir"
)

// Dump prints templates with their functions, launch by launch, for `--dump-after` and for
// goldens. Before the memory pass places are unknown and only names are printed.
func Dump(p *ir.Program) string {
	var s strings.Builder
	fmt.Fprintf(&s, "rows %d, prefill %d\n", p.Rows, p.Prefill)
	for _, b := range p.Slabs {
		fmt.Fprintf(&s, "slab %s: %d elements, %d decayed\n", b.Name, b.Elems, b.Decay)
		for i, q := range b.Params {
			fmt.Fprintf(&s, "  %8d %s %s\n", b.Offs[i], q.Path, q.Shape)
		}
	}
	for i, t := range p.Tables {
		fmt.Fprintf(&s, "table %d: %s = %s.%s %s\n", i, t.Name, t.Room, t.Table.Func, t.Table.Type)
	}
	for _, u := range p.Units {
		fmt.Fprintf(&s, "unit %s: template %s, slabs %v, in %v, out %v\n",
			u.Unit.Path(), p.Templates[u.Template].Name, u.Slabs, u.In, u.Out)
	}
	for _, t := range p.Templates {
		fmt.Fprintf(&s, "\ntemplate %s: in %v %v, out %v, saved %d, state %d, recompute %t\n",
			t.Name, t.In, t.DIn, t.Out, t.SavedBytes, t.StateBytes, t.Recompute)
		for _, f := range t.Funcs {
			if f == nil {
				continue
			}
			fmt.Fprintf(&s, "  %s: work %d, %d FLOPs, %d bytes\n", f.Func, f.WorkBytes, f.FLOPs, f.Moved)
			dumpBody(&s, f.Body, "    ")
		}
	}
	return s.String()
}

func dumpBody(s *strings.Builder, body []ir.Stmt, indent string) {
	for _, st := range body {
		switch st := st.(type) {
		case *ir.Call:
			fmt.Fprintf(s, "%s%s.%s", indent, st.Op.Def.Name, st.Launch.Func)
			for _, a := range st.Args {
				if a.Place.Region != ir.RNil {
					fmt.Fprintf(s, " %s=%s", a.Field, placeText(a.Place))
				}
			}
			if l := st.Span.Line(); l != "" {
				fmt.Fprintf(s, " // %s", l)
			}
			s.WriteString("\n")
		case *ir.Loop:
			if st.Last {
				fmt.Fprintf(s, "%slast row\n", indent)
			} else {
				fmt.Fprintf(s, "%sfor %d rows by %d\n", indent, st.Rows, st.Chunk)
			}
			dumpBody(s, st.Body, indent+"  ")
		case *ir.IfFirst:
			fmt.Fprintf(s, "%sif first contribution to slab %d\n", indent, st.Slab)
			dumpBody(s, st.Body, indent+"  ")
		case *ir.IfWhole:
			fmt.Fprintf(s, "%sif the gradient of slab %d is complete\n", indent, st.Slab)
			dumpBody(s, st.Body, indent+"  ")
		}
	}
}

var regionNames = [...]string{"nil", "in", "out", "din", "dout", "saved", "work", "weight", "grad", "gradadd", "state", "table", "targets", "scalars", "partials", "router", "slabgrad", "squares"}

func placeText(p ir.Place) string {
	t := fmt.Sprintf("%s@%s", p.Name, regionNames[p.Region])
	switch p.Region {
	case ir.RSaved, ir.RWork, ir.RState:
	default:
		t += fmt.Sprint(p.Index)
	}
	if p.Off > 0 {
		t += fmt.Sprintf("+%d", p.Off)
	}
	if p.RowBytes > 0 {
		t += fmt.Sprintf("+row*%d", p.RowBytes)
	}
	return t
}
