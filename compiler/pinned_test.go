package compiler

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/megatrain/mtc/lang/diag"
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

// TestPinnedCountsHaveBounds: an option that counts more than there is, or names what there is not, is
// refused whatever the placement, by a compile and where a planner prepares, and the largest is named and taken.
func TestPinnedCountsHaveBounds(t *testing.T) {
	for _, placement := range []string{"resident", "stream"} {
		for _, c := range []struct {
			flag string
			set  func(o *Options, n int64)
		}{
			{"resident", func(o *Options, n int64) { o.Resident = strconv.FormatInt(n, 10) }},
			{"device-weights", func(o *Options, n int64) { o.DeviceWeights = n }},
			{"grad-home", func(o *Options, n int64) { o.GradHome = strconv.FormatInt(n, 10) }},
			{"save-inputs", func(o *Options, n int64) { o.SaveInputs = strconv.FormatInt(n, 10) }},
			{"save-values", func(o *Options, n int64) { o.SaveValues = strconv.FormatInt(n, 10) }},
			{"slots", func(o *Options, n int64) { o.Slots = n }},
			{"grad-slots", func(o *Options, n int64) { o.GradSlots = n }},
			{"host-slots", func(o *Options, n int64) { o.HostSlots = n }},
			{"input-every", func(o *Options, n int64) { o.InputEvery = n }},
		} {
			o := Options{Path: "m.mt", Text: []byte(fitText), Placement: placement, Recompute: "all"}
			if c.flag == "save-values" {
				o.Recompute = "none"
			}
			refusal := func(n int64) *diag.Diagnostic {
				c.set(&o, n)
				var l diag.List
				if _, err := Prepare(context.Background(), o, &l); err == nil {
					return nil
				}
				return l.Sorted()[0]
			}
			d := refusal(1000)
			if d == nil || !strings.Contains(d.Message, "`--"+c.flag+" 1000` is more than the ") {
				t.Errorf("--%s 1000, %s: %v", c.flag, placement, d)
				continue
			}
			_, rest, _ := strings.Cut(d.Message, "more than the ")
			most, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			if refusal(most+1) == nil {
				t.Errorf("--%s %d is taken, and %d is the largest", c.flag, most+1, most)
			}
			if d := refusal(most); d != nil {
				t.Errorf("--%s %d: %s", c.flag, most, d.Message)
			}
		}
		for _, c := range []struct{ list, wrong string }{
			{"foo", "foo"}, {"layer[77]", "layer[77]"}, {"layer[0],foo", "foo"}, {"layer[0..77]", "layer[6]"}, {"embed,layer[2..1]", "layer[2..1]"},
		} {
			p, l := fit(Options{Placement: placement, Resident: c.list})
			if p != nil || l.Len() != 1 || !strings.Contains(l.Sorted()[0].Message, "no slab is called `"+c.wrong+"`; there are ") {
				t.Errorf("--resident %s, %s: %v", c.list, placement, l.Err())
			}
		}
	}
}

// TestRangesOfNames: layers that are written together are those that are written one by one.
func TestRangesOfNames(t *testing.T) {
	tasks := func(o Options) string {
		p, l := fit(o)
		if l.HasErrors() {
			t.Fatalf("%+v: %v", o, l.Err())
		}
		return fmt.Sprintf("%+v %+v", p.Tasks, p.Arenas)
	}
	for _, set := range []func(o *Options, list string){
		func(o *Options, list string) { o.Resident = list },
		func(o *Options, list string) { o.Recompute = list },
	} {
		stream := Options{Placement: "stream", MicroBatch: 8}
		none, one, ranges := stream, stream, stream
		set(&none, "none")
		set(&one, "layer[0],layer[1],layer[2],layer[4]")
		set(&ranges, "layer[0..2, 4]")
		none.Resident = strings.ReplaceAll(none.Resident, "none", "0")
		if tasks(one) != tasks(ranges) {
			t.Errorf("%+v makes another plan than %+v", ranges, one)
		}
		if tasks(one) == tasks(none) {
			t.Errorf("%+v changes nothing", one)
		}
	}
	if p, l := fit(Options{Recompute: "layer[4..9]"}); p != nil || !strings.Contains(l.Sorted()[0].Message, "no block is called as `layer[6]`") {
		t.Errorf("layers that there are not: %v", l.Err())
	}
}
