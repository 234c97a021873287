package lower

import "slices"

// residuals lets launches do the additions that follow them: where a launch's result is read
// by nothing but one addition, and the launch takes an addend for it (Launch.Adds), the other
// term of the addition becomes the addend and the sum the result. x + linear(h) is then one
// product, which reads x once, instead of a product and a pass over three tensors.
//
// others are launches of other functions over the same values. Results of the graph are read
// outside of it.
func (b *builder) residuals(insts, others []*inst) []*inst {
	readers := map[*value]int{}
	for _, in := range slices.Concat(insts, others) {
		for _, list := range [][]operand{in.reads, in.adds} {
			for _, o := range list {
				readers[o.v]++
			}
		}
	}
	for _, out := range b.t.Graph.Outputs {
		readers[b.values[out]]++
	}
	maker := map[*value]int{}
	for i, in := range insts {
		for _, o := range in.writes {
			maker[o.v] = i
		}
	}
	gone := map[*inst]bool{}
	for i, in := range insts {
		if in.call.Def.Name != "add" || in.inLoop || in.reads[0].v == in.reads[1].v {
			continue
		}
		// The later term first: it is the one just made, while the other may be long in memory.
		for _, k := range []int{1, 0} {
			v, other := in.reads[k].v, in.reads[1-k].v
			m, made := maker[v]
			if !made || readers[v] != 1 || gone[insts[m]] {
				continue
			}
			fused := absorb(insts[m], v, other, in.writes[0].v)
			if fused == nil {
				continue
			}
			gone[insts[m]] = true
			insts[i] = fused
			break
		}
	}
	return slices.DeleteFunc(insts, func(in *inst) bool { return gone[in] })
}

// absorb returns a launch that makes sum = addend + v in the place of the one that makes v,
// or nil where that cannot. It stands where the addition stood, so that the addend is there.
func absorb(in *inst, v, addend, sum *value) *inst {
	if in.inLoop || in.launch != &in.call.Def.Forward || len(in.writes) != 1 || len(in.adds) > 0 ||
		!slices.Contains(in.launch.Adds, in.writes[0].name) || v.bytes != sum.bytes || v.typ.DType != addend.typ.DType {
		return nil
	}
	c := *in
	c.writes = []operand{{name: in.writes[0].name, v: sum}}
	c.adds = []operand{{name: in.writes[0].name, v: addend}}
	return &c
}
