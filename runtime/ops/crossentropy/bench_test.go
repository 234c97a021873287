package crossentropy

import (
	"runtime"
	"testing"

	"github.com/megatrain/mtc/runtime/ops/optest"
	"github.com/megatrain/mtc/runtime/plan"
)

func BenchmarkLoss(b *testing.B) {
	const rows, v = 128, 8192
	logits, targets := sample(rows, v)
	m := optest.NewMachine(b, runtime.GOMAXPROCS(0))
	scalars := make([]float64, plan.NumScalars)
	a := LossArgs{Logits: m.F32(logits...), Targets: m.I32(targets...), Scalars: m.F64(scalars...),
		DLogits: m.Bytes(4 * rows * v), Partials: m.F64(0, 0), Rows: rows, V: v}
	b.SetBytes(2 * 4 * rows * v)
	for b.Loop() {
		Loss(m.Queue, a)
		if err := m.Err(); err != nil {
			b.Fatal(err)
		}
	}
}
