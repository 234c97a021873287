package schedule

import (
	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/compiler/memplan"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/plan"
)

// scratch is the device memory that the launches of a program take while they run, the most that one does:
// they follow one another. It is 0 as long as it is within what a device's libraries are given anyway.
func scratch(prog *ir.Program) int64 {
	var most int64
	for _, t := range prog.Templates {
		for f, fn := range t.Funcs {
			if fn == nil {
				continue
			}
			s := op.Sizes{Batch: prog.Rows, Seq: prog.Model.Seq}
			if plan.Func(f) == plan.Infer {
				s = op.Sizes{Batch: 1, Seq: prog.Prefill}
			}
			most = max(most, scratchOf(fn.Body, s))
		}
	}
	return max(0, most-memplan.ScratchWithin)
}

func scratchOf(body []ir.Stmt, s op.Sizes) int64 {
	var most int64
	for _, st := range body {
		switch st := st.(type) {
		case *ir.Call:
			if st.Launch != nil && st.Launch.Scratch != nil { // a toy of a test has none
				most = max(most, st.Launch.Scratch(st.Op, s))
			}
		case *ir.Loop:
			most = max(most, scratchOf(st.Body, op.Sizes{Batch: 1, Seq: min(st.Chunk, st.Rows)}))
		}
	}
	return most
}
