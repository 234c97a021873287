package cost

import (
	"fmt"
	"path/filepath"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/plan"
)

// Work is what the template functions of a program launch. It is plain data: a build keeps it
// beside its schedule.
type Work struct {
	// Funcs are the launches of each function, by template and plan.Func.
	Funcs [][][]Launch `json:"funcs"`
}

// Launch is one kernel.
type Launch struct {
	Kernel string   `json:"kernel"` // "linear.BackwardInput"
	Shape  op.Shape `json:"shape"`
	FLOPs  int64    `json:"flops"`          // of one
	Bytes  int64    `json:"bytes"`          // of one
	Times  int64    `json:"times"`          // how often it runs: the head's chunks
	Span   string   `json:"span"`           // "nano.mt:12"
	Norm   bool     `json:"norm,omitempty"` // it norms what it reads too (op.WithNorm)
	// Grad is 1 and the index of its task's slab whose gradient it makes; 0 where it makes none. Of its times
	// in a step but the first it adds, and that one too where the task says so (plan.Bind.Add).
	Grad int `json:"grad,omitempty"`
}

// WorkOf lists the launches of a program's functions.
func WorkOf(p *ir.Program) *Work {
	w := &Work{Funcs: make([][][]Launch, len(p.Templates))}
	for i, t := range p.Templates {
		w.Funcs[i] = make([][]Launch, plan.NumFuncs)
		for f, fn := range t.Funcs {
			if fn == nil {
				continue
			}
			s := op.Sizes{Batch: p.Rows, Seq: p.Model.Seq}
			if plan.Func(f) == plan.Infer {
				s = op.Sizes{Batch: 1, Seq: p.Prefill}
			}
			w.Funcs[i][f] = launches(nil, fn.Body, s, 1)
		}
	}
	return w
}

func launches(out []Launch, body []ir.Stmt, s op.Sizes, times int64) []Launch {
	for _, st := range body {
		switch st := st.(type) {
		case *ir.Call:
			out = append(out, launch(st, s, times))
		case *ir.Loop:
			if n := st.Rows / st.Chunk; n > 0 {
				out = launches(out, st.Body, op.Sizes{Batch: 1, Seq: st.Chunk}, times*n)
			}
			if rest := st.Rows % st.Chunk; rest > 0 {
				out = launches(out, st.Body, op.Sizes{Batch: 1, Seq: rest}, times)
			}
		}
		// What *ir.IfFirst clears is alignment gaps: nothing.
	}
	return out
}

func launch(c *ir.Call, s op.Sizes, times int64) Launch {
	l := Launch{Kernel: c.Op.Def.Name + "." + c.Launch.Func, Times: times}
	if c.Launch.Cost != nil {
		x := c.Launch.Cost(c.Op, s)
		l.FLOPs, l.Bytes = x.FLOPs, x.Bytes
	}
	if c.Launch.Shape != nil {
		l.Shape = c.Launch.Shape(c.Op, s)
		widen(&l.Shape, c)
	}
	for _, k := range c.Op.Consts {
		l.Norm = l.Norm || k.Field == "Norm" && k.Int > 0
	}
	for _, a := range c.Args {
		if a.Place.Region == ir.RGradAdd {
			l.Grad = a.Place.Index + 1
		}
	}
	if c.Span.Valid() {
		line, _ := c.Span.File.Position(c.Span.Start)
		l.Span = fmt.Sprintf("%s:%d", filepath.Base(c.Span.File.Name), line)
	}
	return l
}

// widen gives a product the sizes that it runs with where its weight has spare rows.
func widen(s *op.Shape, c *ir.Call) {
	for _, k := range c.Op.Consts {
		if k.Field != "Wide" || k.Int <= 0 {
			continue
		}
		switch s.Form {
		case "nt":
			s.N = max(s.N, k.Int)
		case "nn":
			s.K = max(s.K, k.Int)
		}
	}
}

// of are the launches of a task's function, nil for one that has none.
func (w *Work) of(t *plan.Task) []Launch {
	if w == nil || t.Template < 0 || t.Template >= len(w.Funcs) {
		return nil
	}
	return w.Funcs[t.Template][t.Func]
}
