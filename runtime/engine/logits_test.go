package engine

import (
	"testing"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/device/cpu"
	"github.com/megatrain/mtc/runtime/plan"
)

// TestLogitsAreF32: what a plan in bf16 leaves is widened for the caller.
func TestLogitsAreF32(t *testing.T) {
	p := &plan.Plan{
		Precision: "bf16", Seq: 8, Prefill: 4, Vocab: 3, HostGenTokens: 1, HostGenLogits: 2,
		Arenas:  []plan.Arena{{Name: "host.io", Memory: device.HostMemory, Bytes: 64, GenBytes: 64}},
		Buffers: []plan.Buffer{{}, {Name: "tokens", Bytes: 16}, {Name: "logits", Off: 16, Bytes: 6}},
	}
	d := cpu.New()
	t.Cleanup(func() { d.Close() })
	e, err := New(Config{Plan: p, Device: d, Infer: true})
	if err != nil {
		t.Fatal(err)
	}
	copy(viewOf[uint16](e, p.HostGenLogits, 0, 3, new(bool)), []uint16{0x3f80, 0xc020, 0x0000}) // 1, -2.5, 0
	got, err := e.Infer([]int32{1, 2}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || got[0] != 1 || got[1] != -2.5 || got[2] != 0 {
		t.Errorf("logits %v", got)
	}
}
