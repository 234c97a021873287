package lower

import (
	"slices"

	"github.com/megatrain/mtc/runtime/op"
)

// InUse tells launches over rows of experts how many rows are in use: ops on single elements
// (op.Def.RowWise, of one width) get the routing as an operand and leave out what lies behind the last
// row of it, which nothing reads. It runs when all launches are there, so that those which passes
// insert (sums of gradients, copies) are among them.
func InUse(l *Lowering) {
	for _, t := range l.tmpls {
		for _, f := range t.funcs {
			f.insts = inUse(f.insts)
		}
	}
}

func inUse(insts []*inst) []*inst {
	var routing *value
	var like *op.Call // one that knows E, C and how many rows there are on average
	for _, in := range insts {
		for _, o := range in.reads {
			if o.name == "routing" && o.v != nil && (like == nil || like.Attr["mean"].IsNone()) {
				routing, like = o.v, in.call
			}
		}
	}
	if routing == nil {
		return insts
	}
	out := slices.Clone(insts)
	ragged := map[*value]bool{}
	for i, in := range insts {
		rows := in.ragged(ragged)
		for _, o := range in.writes {
			if o.v != nil {
				ragged[o.v] = rows
			}
		}
		if rows && in.call.Def.Ragged && !in.inLoop {
			out[i] = in.inUse(routing, like)
		}
	}
	return out
}

// inUse is the launch over the rows in use of a routing; like is an op over the same rows.
func (in *inst) inUse(routing *value, like *op.Call) *inst {
	c := *in
	call := *in.call
	slots := like.Int("slots")
	call.Consts = append(slices.Clip(call.Consts), op.IntConst("Experts", like.Int("experts")), op.IntConst("Slots", slots))
	launch := *in.launch
	launch.Reads = append(slices.Clip(launch.Reads), "routing")
	if whole, mean := launch.Cost, like.Float("mean"); whole != nil && mean > 0 {
		launch.Cost = func(c *op.Call, s op.Sizes) op.Cost {
			x := whole(c, s)
			part := min(1, mean/float64(slots))
			return op.Cost{FLOPs: int64(float64(x.FLOPs) * part), Bytes: int64(float64(x.Bytes) * part)}
		}
	}
	c.call, c.launch = &call, &launch
	c.reads = append(slices.Clip(c.reads), operand{name: "routing", v: routing})
	return &c
}
