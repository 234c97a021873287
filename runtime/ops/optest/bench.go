package optest

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/megatrain/mtc/runtime/op"
)

// benchBytes holds the operands of one op at the sizes of a training step.
const benchBytes = 512 << 20

// Bench times every launcher of one good call, on all cores, with AddX nil. It reports the
// bytes that the declaration says are moved, and FLOPs.
func Bench(b *testing.B, c Case, g Good) {
	call, err := Bind(c.Def, g.In, g.Attr)
	if err != nil {
		b.Fatal(err)
	}
	s := &setup{c: c, good: g, call: call, sizes: op.Sizes{Batch: g.Batch, Seq: g.Seq}}
	s.data = s.random()
	base := s.runOn(newMachine(b, runtime.GOMAXPROCS(0), benchBytes))
	for _, l := range append([]op.Launch{c.Def.Forward}, s.backward()...) {
		b.Run(fmt.Sprintf("%s/%s", g.Name, l.Func), func(b *testing.B) {
			m := newMachine(b, runtime.GOMAXPROCS(0), benchBytes)
			ptrs := s.filled(m, l, base)
			cost := l.Cost(call, s.sizes)
			b.SetBytes(cost.Bytes)
			for b.Loop() {
				s.launch(m, l, ptrs)
				if err := m.Err(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(cost.FLOPs)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}
