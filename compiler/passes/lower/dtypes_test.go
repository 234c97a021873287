package lower

import (
	"testing"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/tensor"
)

// TestDtypesFollowRoles walks every operand of every launch in bf16 and in f32.
func TestDtypesFollowRoles(t *testing.T) {
	// By operand, where the role does not follow from the region.
	statistics := map[string]bool{"Inv": true, "Mean": true, "Lse": true}
	for _, d := range []tensor.DType{tensor.F32, tensor.BF16} {
		o := small
		o.DType = d
		p := mustLower(t, llama(t, 4, 6, 40, 16, 2, 4, 2, 24, true, 0), o)
		if p.DType != d {
			t.Errorf("the program computes in %s, want %s", p.DType, d)
		}
		seen := map[ir.Region]int{}
		var check func(tmpl string, f *ir.Function, body []ir.Stmt)
		check = func(tmpl string, f *ir.Function, body []ir.Stmt) {
			for _, s := range body {
				switch s := s.(type) {
				case *ir.Loop:
					check(tmpl, f, s.Body)
				case *ir.IfFirst:
					check(tmpl, f, s.Body)
				case *ir.Call:
					for _, a := range s.Args {
						seen[a.Place.Region]++
						want := d
						switch r := a.Place.Region; {
						case r == ir.RGrad || r == ir.RGradAdd || r == ir.RTable || r == ir.RScalars || r == ir.RPartials || statistics[a.Field]:
							want = tensor.F32
						case r == ir.RTargets || a.Field == "Ids":
							want = tensor.I32
						case r == ir.RNil:
							continue
						}
						if a.Place.DType != want {
							t.Errorf("%s.%s: %s.%s: %s is %s, want %s", tmpl, f.Func, s.Op.Def.Name, s.Launch.Func, a.Field, a.Place.DType, want)
						}
					}
				}
			}
		}
		for _, tm := range p.Templates {
			for _, f := range tm.Funcs {
				if f != nil {
					check(tm.Name, f, f.Body)
				}
			}
		}
		for _, r := range []ir.Region{ir.RIn, ir.ROut, ir.RDIn, ir.RDOut, ir.RSaved, ir.RWork, ir.RWeight, ir.RGrad, ir.RState, ir.RTable, ir.RTargets} {
			if seen[r] == 0 {
				t.Errorf("no operand in region %s", regionNames[r])
			}
		}
	}
}

// TestSizesFollowDtypes: in bf16 what holds activations takes half, but for the statistics.
func TestSizesFollowDtypes(t *testing.T) {
	build := func(d tensor.DType) *ir.Program {
		return mustLower(t, llama(t, 4, 64, 256, 64, 2, 4, 2, 192, false, 0), Options{Rows: 4, DType: d})
	}
	full, half := build(tensor.F32), build(tensor.BF16)
	for i, tm := range full.Templates {
		h := half.Templates[i]
		for k := range tm.Out {
			if tm.Out[k].Bytes() != 2*h.Out[k].Bytes() {
				t.Errorf("%s gives %s in bf16", tm.Name, h.Out[k])
			}
		}
		if tm.StateBytes != 2*h.StateBytes {
			t.Errorf("%s: caches of %d bytes, in bf16 %d", tm.Name, tm.StateBytes, h.StateBytes)
		}
		if s, hs := tm.SavedBytes, h.SavedBytes; s > 0 && (2*hs <= s || 10*hs > 6*s) {
			t.Errorf("%s: saves %d bytes, in bf16 %d: wanted a little more than half", tm.Name, s, hs)
		}
		for f, fn := range tm.Funcs {
			if fn == nil {
				continue
			}
			hf := h.Funcs[f]
			if fn.FLOPs != hf.FLOPs || 10*hf.Moved > 9*fn.Moved || 2*hf.Moved < fn.Moved {
				t.Errorf("%s.%s: %d FLOPs and %d bytes, in bf16 %d and %d", tm.Name, plan.Func(f), fn.FLOPs, fn.Moved, hf.FLOPs, hf.Moved)
			}
		}
	}
}
