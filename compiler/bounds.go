package compiler

import (
	"slices"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/compiler/passes/front"
	"github.com/megatrain/mtc/lang/source"
)

// bounds are how many there are of what options count.
type bounds struct {
	slabs, trained int64 // all, and those that learn
	weights        int64 // slabs that are the weights of a single layer
	layers         int64
	inputs         int64 // values between units that wait for backward
}

func boundsOf(p *ir.Program) bounds {
	b := bounds{slabs: int64(len(p.Slabs))}
	uses, layer := make([]int, len(p.Slabs)), make([]bool, len(p.Slabs))
	last := map[int]int{} // by value: the unit that reads it last
	for u, x := range p.Units {
		for _, s := range x.Slabs {
			uses[s]++
			layer[s] = x.Unit.Kind == ir.LayerUnit
		}
		if x.Unit.Kind == ir.LayerUnit && x.Unit.Part == "" {
			b.layers++
		}
		for _, v := range x.In {
			last[v] = u
		}
	}
	for _, s := range p.Slabs {
		if !s.Frozen {
			b.trained++
		}
	}
	for i, s := range p.Slabs {
		if layer[i] && uses[i] == 1 && (s.Frozen || b.trained == b.slabs) {
			b.weights++
		}
	}
	for _, x := range p.Units {
		for _, v := range x.Out {
			if u, ok := last[v]; ok && u < len(p.Units)-1 {
				b.inputs++
			}
		}
	}
	return b
}

// checkBounds refuses options that name slabs that there are not, or count more of something than there
// is, whatever the placement. It needs the slabs, so it comes late.
func checkBounds(s *state) {
	b, o := boundsOf(s.res.Program), s.opts
	// Few layers have the slots of many: a default stays one that may be given.
	slots := max(b.slabs, 1+or(o.InputEvery, 1), 4)
	keep, names, _ := kept(s)
	for _, x := range []struct {
		flag    string
		n, most int64
		of      string
	}{
		{"resident", keep, b.slabs, "slabs there are"},
		{"device-weights", o.DeviceWeights, b.weights, "slabs of layers' weights"},
		{"grad-home", deviceGrads(s).n, b.trained, "slabs that learn"},
		{"save-inputs", savedInputs(s).n, b.inputs, "inputs that wait for backward"},
		{"save-values", savedValues(s).n, b.layers, "layers there are"},
		{"input-every", o.InputEvery, max(b.layers, 3), "layers of use"},
		{"slots", o.Slots, slots, "slots of use"},
		{"grad-slots", o.GradSlots, slots, "slots of use"},
		{"host-slots", o.HostSlots, slots, "slots of use"},
	} {
		if x.n > x.most {
			s.diags.Errorf("MT0403", source.Span{}, "`--%s %d` is more than the %d %s", x.flag, x.n, x.most, x.of).
				Hint("the largest is `--%s %d`", x.flag, x.most)
		}
	}
	known := make([]string, len(s.res.Program.Slabs))
	for i, x := range s.res.Program.Slabs {
		known[i] = x.Name
	}
	if len(names) == 0 {
		return
	}
	for _, word := range ir.SplitNames(o.Resident) {
		all := ir.ExpandName(word)
		if i := slices.IndexFunc(all, func(name string) bool { return !slices.Contains(known, name) }); i >= 0 {
			s.diags.Errorf("MT0405", source.Span{}, "`--resident`: no slab is called `%s`; there are %s", all[i], ir.JoinNames(known)).
				Hint("%s", front.DidYouMean(all[i], known))
		}
	}
}
