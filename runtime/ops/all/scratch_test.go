package all

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/tensor"
)

// few is more scratch memory than kernels take that do not say it.
const few = 64 << 20

// callOf is a call with the sizes of e, as far as scratch memory depends on them.
func callOf(e environment) *op.Call {
	dim := func(n int64) tensor.Dim { return tensor.Dim{N: n} }
	b, t := tensor.Dim{Name: "B", N: 1}, tensor.Dim{Name: "T", N: 1}
	n := func(name string) op.Value { return *op.IntValue(e[name]) }
	return &op.Call{
		In:  []tensor.Type{{Shape: tensor.Shape{b, t, dim(e["D"])}}},
		Out: tensor.Type{Shape: tensor.Shape{b, t, dim(e["D"])}},
		Attr: map[string]op.Value{"heads": n("Heads"), "experts": n("Experts"), "slots": n("Slots"), "balance": n("Balance"),
			"out": n("Out"), "kind": n("Kind")},
	}
}

// What kernels take besides their operands is said by the launch, so that a plan has room for it: all of it, and
// not much more. What does not say it takes little whatever the sizes.
func TestScratchIsDeclared(t *testing.T) {
	declared := 0
	for _, f := range launchers {
		name := fmt.Sprint(reflect.TypeOf(f).In(1)) // embed.BackwardWeightArgs
		room, fn, _ := strings.Cut(strings.TrimSuffix(name, "Args"), ".")
		var l *op.Launch
		for _, d := range defs {
			if d.Package() == room && l == nil {
				l = d.ByName(fn)
			}
		}
		if l != nil && l.Scratch != nil {
			declared++
		}
		failed := 0
		for _, e := range environments() {
			var most int64 // over the kernels that there are for it
			launch(t, f, e, pointers[0].at, true, func(k *device.Kernel, a *device.Args) {
				for _, target := range targets {
					for s := k.CUDA.For(target, a); s != nil; s = s.Next {
						if s.Work != nil {
							most = max(most, s.Work(a))
						}
					}
				}
			})
			least, said := most, int64(few)
			if l != nil && l.Scratch != nil {
				c := callOf(e)
				switch room {
				case "embed": // of ids, which have no width
					c.In[0].Shape = c.In[0].Shape[:2]
				case "attention":
					c.In[0].Shape[2].N = e["Heads"] * e["HD"]
				case "grouped": // of all experts' rows
					c.In[0].Shape[2].N *= e["Slots"]
				}
				said = l.Scratch(c, op.Sizes{Batch: e["Batch"], Seq: e["Seq"]})
				least += 1 << 20
			}
			if most > said || said > max(few, least) {
				if failed++; failed < 4 {
					t.Errorf("%s says %d bytes of scratch and takes %d, with %v", name, said, most, e)
				}
			}
		}
	}
	if declared < 6 {
		t.Errorf("%d launches say what they take", declared)
	}
}
