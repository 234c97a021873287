package golden

import (
	"context"
	"testing"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/compiler/schedule"
	"github.com/megatrain/mtc/lang/diag"
)

func BenchmarkBuild72B(b *testing.B) {
	var diags diag.List
	res, err := compiler.Compile(context.Background(), compiler.Options{Path: "../qwen2.5-72b.mt", Placement: schedule.Stream}, &diags)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("build", func(b *testing.B) {
		for b.Loop() {
			if _, err := schedule.Build(res.Program, schedule.Options{Placement: schedule.Stream}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("verify", func(b *testing.B) {
		for b.Loop() {
			if err := schedule.Verify(res.Plan); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("json", func(b *testing.B) {
		for b.Loop() {
			b.SetBytes(int64(len(schedule.JSON(res.Plan, cost.WorkOf(res.Program), nil))))
		}
	})
}
