package compiler

import (
	"strings"
	"testing"
)

// TestPinnedPlacementIsRead: what an option of placement does not mean is refused by name.
func TestPinnedPlacementIsRead(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{SaveInputs: "some"}, "`--save-inputs some` is not a number, nor one of auto, none, all"},
		{Options{SaveInputs: "-2"}, "`--save-inputs -2` is not a number"},
		{Options{GradHome: "hos"}, "`--grad-home hos` is not a number, nor one of auto, host, device"},
		{Options{GradPrecision: "f16"}, "`--grad-precision f16` is not one of f32, bf16"},
		{Options{Order: "rows"}, "`--order rows` is not one of auto, layer, batch"},
		{Options{Resident: "-1"}, "`--resident -1` is negative"},
		{Options{Order: "batch", MicroBatch: 8, Groups: 2}, "2 groups of 4 micro-batches are not batch-major"},
	} {
		p, l := fit(c.o)
		if p != nil || l.Len() == 0 || !strings.Contains(l.Sorted()[0].Message, c.want) {
			t.Errorf("%+v: %v, want %q", c.o, l.Err(), c.want)
		}
	}
	for _, o := range []Options{
		{SaveInputs: "auto", GradHome: "auto", Resident: "auto", Order: "auto", GradPrecision: "f32"},
		{SaveInputs: "none", GradHome: "host", Placement: "stream", Resident: "2", Order: "layer"},
		{Order: "batch", MicroBatch: 8}, {Order: "batch", MicroBatch: 8, Groups: 4, Placement: "stream"},
	} {
		if _, l := fit(o); l.HasErrors() {
			t.Errorf("%+v: %v", o, l.Err())
		}
	}
}
