package compiler

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/megatrain/mtc/compiler/memplan"
	"github.com/megatrain/mtc/compiler/schedule"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/tools/cputime"
)

const fitText = `model m(D = 64, L = 6, V = 256) {
  init normal(0.02)
  block layer(x) { x += down: linear(gelu(up: linear(norm: rmsnorm(x), 4 * D)), D) }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L { layer(x) }
    return head: linear(norm: rmsnorm(x), V)
  }
}
train {
  data = "*.txt"
  seq = 64
  batch = 32 rows
  steps = 1
  optimizer = adamw()
  lr = constant(peak = 1e-3)
  clip = 1.0
}
`

func fit(o Options) (*plan.Plan, *diag.List) {
	var l diag.List
	o.Path, o.Text = "m.mt", []byte(fitText)
	r, _ := Compile(context.Background(), o, &l)
	return r.Plan, &l
}

func deviceBytes(t *testing.T, o Options) int64 {
	t.Helper()
	p, l := fit(o)
	if l.HasErrors() {
		t.Fatal(l.Err())
	}
	n, _ := memplan.Peak(p)
	return n
}

// pinned are options that leave nothing open but what a hint names.
func pinned(o Options) Options {
	o.SaveInputs = "none"
	if o.Recompute == "" {
		o.Recompute = "none"
	}
	if o.MicroBatch == 0 {
		o.MicroBatch = 32
	}
	o.Order = "layer"
	return o
}

// TestTooLargeSaysWhatFits: a plan that does not fit is refused with what is short, and the
// change that the help names does fit.
func TestTooLargeSaysWhatFits(t *testing.T) {
	resident := deviceBytes(t, pinned(Options{}))
	stream := deviceBytes(t, pinned(Options{Placement: "stream"}))
	recompute := deviceBytes(t, pinned(Options{Placement: "stream", Recompute: "all"}))
	quarter := deviceBytes(t, pinned(Options{Placement: "stream", Recompute: "all", MicroBatch: 8}))
	if !(resident > stream && stream > recompute && recompute > quarter) {
		t.Fatalf("resident %d, stream %d, recompute %d, micro-batch %d", resident, stream, recompute, quarter)
	}
	for _, c := range []struct {
		limit int64
		want  string
		o     Options
	}{
		{resident - 1, "with `--placement stream` it fits", Options{Placement: "stream"}},
		{stream - 1, "with `--placement stream --recompute all` it fits", Options{Placement: "stream", Recompute: "all"}},
		{quarter, "with `--placement stream --recompute all --save-inputs auto --micro-batch 8` it fits", Options{Placement: "stream", Recompute: "all", MicroBatch: 8}},
		{1000, "nothing makes it fit", Options{}},
	} {
		p, l := fit(pinned(Options{DeviceMemory: c.limit}))
		var all strings.Builder
		for _, d := range l.Sorted() {
			fmt.Fprintf(&all, "%+v\n", *d)
		}
		if p != nil || l.Len() != 1 || l.Sorted()[0].Code != "MT0415" || !strings.Contains(all.String(), c.want) {
			t.Errorf("%d bytes: %s\nwant %s", c.limit, all.String(), c.want)
		}
		if c.want == "nothing makes it fit" {
			continue
		}
		c.o = pinned(c.o)
		c.o.DeviceMemory = c.limit
		q, l := fit(c.o)
		if l.HasErrors() {
			t.Errorf("%d bytes, as the help says: %v", c.limit, l.Err())
			continue
		}
		if n, _ := memplan.Peak(q); n > c.limit {
			t.Errorf("%d bytes: the plan takes %d", c.limit, n)
		}
	}
}

// TestHintsUnpin: what was pinned to the device and does not fit is named.
func TestHintsUnpin(t *testing.T) {
	bare := deviceBytes(t, Options{Placement: "stream", MicroBatch: 8})
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Resident: "3"}, "`--resident 0`"},
		{Options{Resident: "layer[1],layer[2],head", GradHome: "device"}, "`--resident 0 --grad-home host`"},
		{Options{GradHome: "device"}, "`--grad-home host`"},
		{Options{DeviceWeights: 5}, "`--device-weights 0`"},
		{Options{SaveInputs: "none", Recompute: "all", GradHome: "device"}, "`--grad-home host`"},
	} {
		c.o.Placement, c.o.MicroBatch, c.o.DeviceMemory = "stream", 8, bare
		if c.o.Recompute == "" {
			c.o.Recompute = "none"
		}
		c.o.Groups = 1
		if c.o.SaveInputs == "" {
			c.o.SaveInputs = "none"
		} else {
			c.o.DeviceMemory = deviceBytes(t, Options{Placement: "stream", MicroBatch: 8, Recompute: "all", SaveInputs: "none"})
		}
		p, l := fit(c.o)
		if p != nil || l.Len() != 1 || !strings.Contains(fmt.Sprintf("%+v", *l.Sorted()[0]), c.want) {
			t.Errorf("%+v: %v, want %s", c.o, l.Err(), c.want)
		}
	}
	least := deviceBytes(t, Options{Placement: "stream", MicroBatch: 8, Recompute: "all", SaveInputs: "all"})
	o := Options{Placement: "stream", MicroBatch: 8, Recompute: "all", Groups: 1, SaveInputs: "none", DeviceMemory: least}
	if _, l := fit(o); l.Len() != 1 || !strings.Contains(fmt.Sprintf("%+v", *l.Sorted()[0]), "`--save-inputs auto`") {
		t.Errorf("%+v: %v", o, l.Err())
	}
}

// TestOpenOptionsFit: what is left open changes until the plan fits, what is pinned stays, and
// the result says what was chosen, in flags that give the same plan.
func TestOpenOptionsFit(t *testing.T) {
	bare := deviceBytes(t, Options{Placement: "stream"})
	least := deviceBytes(t, Options{Placement: "stream", Recompute: "all", MicroBatch: 4, SaveInputs: "all"})
	seen := map[string]bool{}
	for limit := bare; limit >= least; limit -= (bare - least) / 12 {
		for _, o := range []Options{
			{Placement: "stream"}, {Placement: "stream", MicroBatch: 16}, {Placement: "stream", Recompute: "none"}, {Placement: "stream", SaveInputs: "none"}, {},
		} {
			o.DeviceMemory = limit
			o.Path, o.Text = "m.mt", []byte(fitText)
			var l diag.List
			r, err := Compile(context.Background(), o, &l)
			if err != nil {
				if short := l.Sorted()[0]; l.Len() != 1 || short.Code != "MT0415" {
					t.Fatal(l.Err())
				}
				seen["refused"] = true
				continue
			}
			p := r.Plan
			if n, _ := memplan.Peak(p); n > limit {
				t.Errorf("%+v: the plan takes %d", o, n)
			}
			if err := schedule.Verify(p); err != nil {
				t.Error(err)
			}
			recomputes := false
			for i := range p.Tasks {
				recomputes = recomputes || p.Tasks[i].Func == plan.Recompute
			}
			if o.MicroBatch != 0 && p.Rows != o.MicroBatch || o.Recompute == "none" && recomputes ||
				o.SaveInputs == "none" && p.SavedInputs > 0 || o.Placement == "" && p.Placement != "resident" {
				t.Errorf("%+v: what was pinned changed: %s", o, r.Chosen)
			}
			seen[r.Chosen] = true
			if p.SavedInputs > 0 {
				seen["saved"] = true
			}
			if recomputes != strings.Contains(r.Chosen, "--recompute all") || (p.Rows != 32 && o.MicroBatch == 0) != strings.Contains(r.Chosen, fmt.Sprintf("--micro-batch %d", p.Rows)) {
				t.Errorf("%+v: chosen %q", o, r.Chosen)
			}
		}
	}
	for _, want := range []string{"", "saved", "refused", "--recompute all", "--recompute all --micro-batch 16"} {
		if !seen[want] {
			t.Errorf("%q was not seen among %v", want, seen)
		}
	}
}

// TestAutoPlacement takes resident where it fits.
func TestAutoPlacement(t *testing.T) {
	resident := deviceBytes(t, pinned(Options{}))
	for limit, want := range map[int64]string{0: "resident", resident: "resident", resident - 1: "stream"} {
		p, l := fit(pinned(Options{Placement: "auto", DeviceMemory: limit}))
		if l.HasErrors() || p.Placement != want {
			t.Errorf("%d bytes: %v, %v", limit, p, l.Err())
		}
	}
	// The state of all layers but the last ones stays.
	p, _ := fit(pinned(Options{Placement: "auto", DeviceMemory: resident - 1}))
	if !p.Slabs[0].Resident || p.Slabs[len(p.Slabs)-1].Resident {
		t.Errorf("slabs %+v", p.Slabs)
	}
}

// TestLargeSearchIsShort: for the largest of models, too, the search for what fits takes about
// as long as a compile.
func TestLargeSearchIsShort(t *testing.T) {
	o := Options{Path: "../models/qwen2.5-72b.mt", Placement: "auto", DeviceMemory: 24 << 30}
	var l diag.List
	took := cputime.Of(func() { _, _ = Compile(context.Background(), o, &l) })
	if l.Len() != 1 || l.Sorted()[0].Code != "MT0415" {
		t.Fatal(l.Err())
	}
	if took > 20*time.Second {
		t.Errorf("took %s", took)
	}
}
