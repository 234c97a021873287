package embed

import (
	"testing"

	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/optest"
	"github.com/megatrain/mtc/runtime/tensor"
)

func BenchmarkEmbed(b *testing.B) {
	optest.Bench(b, optest.Case{Def: Def, Funcs: map[string]any{"Forward": Forward, "BackwardWeight": BackwardWeight}},
		optest.Good{Name: "8x512, 4096x512", In: []tensor.Type{optest.Ids()}, Batch: 8, Seq: 512,
			Attr: map[string]op.Value{"rows": *op.IntValue(4096), "dim": *op.IntValue(512)}})
}
