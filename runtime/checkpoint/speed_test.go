package checkpoint

import (
	"fmt"
	"os"
	"testing"

	"github.com/megatrain/mtc/runtime/plan"
)

// Benchmarks of 8 layers of 4 M parameters, whole masters and split ones: 384 MiB of weights and
// moments, read from the page cache and written to where the temporary folder is.
func benchmarkSlabs(b *testing.B, run func(b *testing.B, p *plan.Plan, view View, dir string)) {
	const layers, rows, cols = 8, 2048, 2048
	for _, split := range []bool{false, true} {
		p := &plan.Plan{}
		bufs := map[plan.BufID][]byte{}
		for i := range layers {
			id := plan.BufID(4*i + 1)
			s := plan.Slab{Weight: id, M: id + 1, V: id + 2, Elems: rows * cols}
			bufs[id], bufs[s.M], bufs[s.V] = make([]byte, 4*s.Elems), make([]byte, 4*s.Elems), make([]byte, 4*s.Elems)
			if split {
				s.Lo = id + 3
				bufs[id], bufs[s.Lo] = make([]byte, 2*s.Elems), make([]byte, 2*s.Elems)
			}
			s.Params = []plan.Param{{Name: fmt.Sprintf("layer[%d]", i), Shape: []int64{rows, cols}}}
			for _, b := range bufs {
				for j := 0; j < len(b); j += 512 {
					b[j] = byte(j >> 9)
				}
			}
			p.Slabs = append(p.Slabs, s)
		}
		b.Run(fmt.Sprintf("split=%t", split), func(b *testing.B) {
			b.SetBytes(12 * layers * rows * cols)
			run(b, p, func(id plan.BufID) []byte { return bufs[id] }, b.TempDir())
		})
	}
}

func BenchmarkSave(b *testing.B) {
	benchmarkSlabs(b, func(b *testing.B, p *plan.Plan, view View, dir string) {
		for b.Loop() {
			if _, err := Save(dir, State{Step: 1}, FromSlabs(p, view), 0); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkLoad(b *testing.B) {
	benchmarkSlabs(b, func(b *testing.B, p *plan.Plan, view View, dir string) {
		path, err := Save(dir, State{Step: 1}, FromSlabs(p, view), 0)
		if err != nil {
			b.Fatal(err)
		}
		c, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if err := c.LoadSlabs(p, view, true); err != nil {
				b.Fatal(err)
			}
		}
		os.RemoveAll(path)
	})
}
