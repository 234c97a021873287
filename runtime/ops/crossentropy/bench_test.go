package crossentropy

import (
	"runtime"
	"testing"

	"github.com/megatrain/mtc/runtime/ops/optest"
	"github.com/megatrain/mtc/runtime/plan"
)

func BenchmarkLoss(b *testing.B) {
	for _, c := range []struct {
		name    string
		rows, v int
		limit   float32
	}{{"long", 128, 8192, 0}, {"capped", 128, 8192, 15}, {"short", 2048, 256, 0}, {"short, capped", 2048, 256, 15}} {
		b.Run(c.name, func(b *testing.B) {
			logits, targets := sample(c.rows, c.v)
			m := optest.NewMachine(b, runtime.GOMAXPROCS(0))
			scalars := make([]float64, plan.NumScalars)
			n := int64(4 * c.rows * c.v)
			a := LossArgs{Logits: m.F32(logits...), Targets: m.I32(targets...), Scalars: m.F64(scalars...),
				DLogits: m.Bytes(n), Partials: m.F64(0, 0), Rows: c.rows, V: c.v, Cap: c.limit}
			b.SetBytes(2 * n)
			b.ReportAllocs()
			for b.Loop() {
				Loss(m.Queue, a)
				if err := m.Err(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
