package compiler

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/megatrain/mtc/compiler/memplan"
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

// TestTooLargeSaysWhatFits: a plan that does not fit is refused with what is short, and the
// change that the help names does fit.
func TestTooLargeSaysWhatFits(t *testing.T) {
	resident := deviceBytes(t, Options{})
	stream := deviceBytes(t, Options{Placement: "stream"})
	recompute := deviceBytes(t, Options{Placement: "stream", Recompute: "all"})
	quarter := deviceBytes(t, Options{Placement: "stream", Recompute: "all", MicroBatch: 8})
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
		{quarter, "with `--placement stream --recompute all --micro-batch 8` it fits", Options{Placement: "stream", Recompute: "all", MicroBatch: 8}},
		{1000, "nothing makes it fit", Options{}},
	} {
		p, l := fit(Options{DeviceMemory: c.limit})
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

// TestAutoPlacement takes resident where it fits.
func TestAutoPlacement(t *testing.T) {
	resident := deviceBytes(t, Options{})
	for limit, want := range map[int64]string{0: "resident", resident: "resident", resident - 1: "stream"} {
		p, l := fit(Options{Placement: "auto", DeviceMemory: limit})
		if l.HasErrors() || p.Placement != want {
			t.Errorf("%d bytes: %v, %v", limit, p, l.Err())
		}
	}
	// The state of all layers but the last ones stays.
	p, _ := fit(Options{Placement: "auto", DeviceMemory: resident - 1})
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
	if took > 8*time.Second {
		t.Errorf("took %s", took)
	}
}
