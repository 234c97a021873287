package schedule

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// purposes says, by buffer, what it is for, as the plan's tables and tasks use it.
func purposes(p *plan.Plan) []string {
	out := make([]string, len(p.Buffers))
	set := func(what string, ids ...plan.BufID) {
		for _, id := range ids {
			if id != plan.NoBuf && out[id] == "" {
				out[id] = what
			}
		}
	}
	for _, s := range p.Slabs {
		set("weights", s.Weight)
		set("masters", s.Lo)
		set("moments", s.M, s.V)
	}
	for _, s := range p.Slabs {
		if s.Resident || p.Clip || p.Groups > 1 {
			set("gradients", s.Grad)
		}
	}
	for _, t := range p.Tables {
		set("tables", t.Buf)
	}
	saved := make([]bool, len(p.Buffers)) // what a layer's forward saves for its backward
	for i := range p.Tasks {
		saved[p.Tasks[i].Bind.Saved] = true
	}
	for i := range p.Tasks {
		t := &p.Tasks[i]
		b := &t.Bind
		switch t.Kind {
		case plan.Prefetch:
			set("weight slots", t.Dst)
		case plan.Offload:
			set("gradient slots", t.Src, t.Dst)
		case plan.Round:
			set("gradient slots", t.Src, t.Dst)
		case plan.Save:
			if saved[t.Src] {
				set("saved values", t.Dst)
			}
			set("saved inputs", t.Dst)
		case plan.Restore:
			if saved[t.Dst] {
				break
			}
			set("inputs come back", t.Dst)
		case plan.Accumulate:
			set("gradient slots", t.Src)
		case plan.Compute:
			set("work", b.Work)
			set("caches", b.State)
		}
	}
	for _, s := range p.Slabs {
		set("gradient slots", s.Grad)
	}
	for i := range p.Tasks {
		t := &p.Tasks[i]
		b := &t.Bind
		if t.Kind != plan.Compute || t.Lane != device.Compute {
			continue
		}
		if t.List >= plan.Prefill {
			set("generation", b.Out...)
			continue
		}
		set("saved activations", b.Saved)
		set("activations", b.Out...)
		set("activation gradients", b.DIn...)
		set("activation gradients", b.DOut...)
	}
	for i := range out {
		set("inputs, scalars, results", plan.BufID(i))
	}
	return out
}
