package golden

import (
	"context"
	"testing"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/compiler/memplan"
	"github.com/megatrain/mtc/compiler/schedule"
	"github.com/megatrain/mtc/lang/diag"
)

// The plan that is read from a schedule's file needs the memory that the plan it was written of needs: what looks
// at a build, as compare does, says what the build said.
func TestMemoryOfAFileIsThatOfItsPlan(t *testing.T) {
	for _, model := range []string{"nano", "et_moe_nano", "gpt2", "qwen2.5-7b-lora"} {
		for _, target := range []string{"cpu", "cuda"} {
			for _, placement := range []string{schedule.Resident, schedule.Stream} {
				t.Run(model+"/"+target+"/"+placement, func(t *testing.T) {
					var diags diag.List
					o := compiler.Options{Path: "../" + model + ".mt", Target: target, Placement: placement}
					res, err := compiler.Compile(context.Background(), o, &diags)
					if err != nil {
						t.Fatal(err)
					}
					f := schedule.FileOf(res.Plan)
					p, err := f.Plan()
					if err != nil {
						t.Fatal(err)
					}
					device, host := memplan.Need(p)
					wantDevice, wantHost := memplan.Need(res.Plan)
					if device != wantDevice || host != wantHost || memplan.RuntimeBytes(p) != f.Memory.Runtime || memplan.Unsaved(p) != memplan.Unsaved(res.Plan) {
						t.Errorf("read again it needs %d bytes of the device and %d of the host, of which %d by the process and %d less unsaved; it was written of a plan with %d, %d, %d and %d",
							device, host, memplan.RuntimeBytes(p), memplan.Unsaved(p), wantDevice, wantHost, f.Memory.Runtime, memplan.Unsaved(res.Plan))
					}
					if model == "gpt2" && target == "cuda" && placement == schedule.Resident && memplan.Unsaved(p) <= 0 {
						t.Error("nothing passes through the host's memory for a checkpoint")
					}
				})
			}
		}
	}
}
