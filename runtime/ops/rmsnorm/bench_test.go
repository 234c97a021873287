package rmsnorm

import (
	"testing"

	"github.com/megatrain/mtc/runtime/ops/optest"
	"github.com/megatrain/mtc/runtime/tensor"
)

func BenchmarkRmsnorm(b *testing.B) {
	optest.Bench(b, optest.Case{Def: Def, Funcs: map[string]any{"Forward": Forward, "Backward": Backward}},
		optest.Good{Name: "8x512x512", In: []tensor.Type{optest.F32(512)}, Batch: 8, Seq: 512})
}
