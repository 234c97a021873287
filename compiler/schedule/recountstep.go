package schedule

import (
	"fmt"
	"strings"

	"github.com/megatrain/mtc/runtime/jsontext"
	"github.com/megatrain/mtc/runtime/plan"
)

// recountStep holds what the file says of a step against the tasks and buffers that make it: its micro-batches are those
// that have a loss, its tokens those of the buffers that hold them, and no more slots or slabs are spoken of than can be.
func (f *File) recountStep() error {
	losses := map[int]bool{}
	for i := range f.Tasks {
		t := &f.Tasks[i]
		switch {
		case t.Micro < -1 || int64(t.Micro) >= f.Micros:
			return at("tasks", i, "its task %d is of the micro-batch %d, and there are %d", i, t.Micro, f.Micros)
		case t.Layer < -1 || t.Layer > 0 && t.Layer >= len(f.Tasks):
			return at("tasks", i, "its task %d is of the layer %d, which does not exist", i, t.Layer)
		case t.List == plan.Steady.String() && t.Func == plan.Loss.String():
			losses[t.Micro] = true
		}
	}
	rotating, tokens := int64(0), f.Rows*f.Seq*tokenBytes
	for i := range f.Buffers {
		b := &f.Buffers[i]
		if strings.HasPrefix(b.Name, "weight.slot[") {
			rotating++
		}
		if strings.HasPrefix(b.Name, "tokens.micro[") && b.Bytes != tokens {
			return at("buffers", i, "buffer %q has %d bytes, and %d rows of %d tokens take %d", b.Name, b.Bytes, f.Rows, f.Seq, tokens)
		}
	}
	slabs, buffers := int64(len(f.Slabs)), int64(len(f.Buffers))
	for _, x := range []struct {
		field          string
		n, least, most int64
		of             string
	}{
		{"batch", f.Batch, f.Rows * f.Micros, f.Rows * f.Micros, "rows in its micro-batches"},
		{"micros", f.Micros, int64(len(losses)), int64(len(losses)), "that have a loss"},
		{"prefill", f.Prefill, 0, f.Seq, "positions of a row"},
		{"slots", f.Slots, rotating, max(rotating, buffers), "buffers for slots"},
		{"grad_slots", f.GradSlots, 0, buffers, "buffers for slots"},
		{"saved_inputs", f.SavedInputs, 0, buffers, "buffers for inputs"},
		{"saved_layers", f.SavedLayers, 0, slabs, "slabs"},
		{"device_grads", f.DeviceGrads, 0, slabs, "slabs"},
	} {
		switch {
		case x.least <= x.n && x.n <= x.most:
		case x.least == x.most:
			return jsontext.In(x.field, fmt.Errorf("%s is %d, and there are %d %s", x.field, x.n, x.least, x.of))
		default:
			return jsontext.In(x.field, fmt.Errorf("%s is %d, and there are %d to %d %s", x.field, x.n, x.least, x.most, x.of))
		}
	}
	for i := range f.Slabs {
		if s := &f.Slabs[i]; int64(s.Params) > s.Elems {
			return at("slabs", i, "slab %q has %d parameters of %d elements", s.Name, s.Params, s.Elems)
		}
	}
	return f.recountShapes()
}

// tokenBytes is what a token takes in a buffer.
const tokenBytes = 4

// recountShapes refuses launches of sizes that no kernel has, by which their time would be predicted.
func (f *File) recountShapes() error {
	for i, funcs := range f.Work.Funcs {
		for _, launches := range funcs {
			for _, l := range launches {
				s := l.Shape
				for _, n := range []int64{int64(s.Class), s.M, s.N, s.K, s.Count, int64(l.Grad)} {
					if !amount(n) {
						return at("work.funcs", i, "a launch of %q is of %d by %d by %d, %d times, of class %d, and makes gradient %d", l.Kernel, s.M, s.N, s.K, s.Count, s.Class, l.Grad)
					}
				}
			}
		}
	}
	return nil
}
