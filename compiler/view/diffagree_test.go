package view

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/runtime/plan"
)

// TestDiffAgrees makes every number of a difference's text out of its JSON, and holds the JSON against the two schedules.
func TestDiffAgrees(t *testing.T) {
	of := func(o compiler.Options) *Schedule {
		o.Path, o.Text = "small.mt", []byte(small)
		return compile(t, o)
	}
	a := of(compiler.Options{Placement: "stream", MicroBatch: 4})
	for name, b := range map[string]*Schedule{
		"resident": of(compiler.Options{MicroBatch: 4}), "slots": of(compiler.Options{Placement: "stream", MicroBatch: 4, Slots: 3, GradSlots: 3}),
		"micro": of(compiler.Options{Placement: "stream", MicroBatch: 2, Groups: 2}), "recompute": of(compiler.Options{Placement: "stream", MicroBatch: 4, Recompute: "all", SaveInputs: "all"}),
		"bf16": of(compiler.Options{Placement: "stream", MicroBatch: 4, GradPrecision: "bf16"}), "unclipped": model(t, "small_unclipped"),
		"deep": of(compiler.Options{Placement: "stream", MicroBatch: 1, Set: []string{"L=90"}}), "other": model(t, "nano_stream"),
	} {
		d := a.Compare(b)
		x, y := predict(t, a, plan.Steady), predict(t, b, plan.Steady)
		d.Predicted(x, y)
		d = again(t, d)
		if d.Equal || math.Abs(d.Step.A-x.Line.Seconds)+math.Abs(d.Step.B-y.Line.Seconds) > 1e-15 {
			t.Errorf("%s: %+v, of steps of %v and %v s", name, d.Step, x.Line.Seconds, y.Line.Seconds)
		}
		for _, most := range []int{10, All} {
			var out bytes.Buffer
			d.Write(&out, "one", "two", most)
			widest(t, out.Bytes())
			agrees(t, fmt.Sprintf("%s, at most %d", name, most), d, words(out.String()), most)
		}
		counts(t, name, d, a, b)
	}
}

// agrees looks for all that a difference's JSON says in the lines of its text.
func agrees(t *testing.T, what string, d *Diff, lines []string, most int) {
	t.Helper()
	at := needs(t, what, lines, 0, "steady, on", clip(d.Machine, 16))
	at = needs(t, what, lines, at, "step", Seconds(d.Step.A), Seconds(d.Step.B), Change(d.Step.A, d.Step.B))
	for _, l := range d.Lanes {
		at = needs(t, what, lines, at, l.Lane, "busy", Seconds(l.Busy.A), Seconds(l.Busy.B), Change(l.Busy.A, l.Busy.B))
		if l.Lane != "compute" {
			at = needs(t, what, lines, at, l.Lane, "exposed", Seconds(l.Exposed.A), Seconds(l.Exposed.B), Change(l.Exposed.A, l.Exposed.B))
		}
		if l.Exposed.A > l.Busy.A || l.Exposed.B > l.Busy.B {
			t.Errorf("%s: %+v is exposed for longer than it is busy", what, l)
		}
	}
	for _, s := range d.Settings {
		at = needs(t, what, lines, at, s.Name, clip(s.A, 24), clip(s.B, 24))
	}
	for _, m := range d.Memory {
		at = needs(t, what, lines, at, m.Name, bytesText(m.A), bytesText(m.B), moreBytes(m.B-m.A))
	}
	for _, l := range d.Lists {
		at = needs(t, what, lines, at, l.List, fmt.Sprint(l.A), fmt.Sprint(l.B), fmt.Sprint(l.Moved), fmt.Sprint(l.Changed), fmt.Sprint(l.Added), fmt.Sprint(l.Gone))
	}
	for _, l := range d.Lists {
		if l.List != "steady" && most != All {
			continue
		}
		for _, what2 := range []string{"gone", "added", "moved", "changed"} {
			shown, all := 0, 0
			for _, task := range d.Tasks {
				if task.List != l.List || task.Change != what2 {
					continue
				}
				if all++; all == 1 {
					at = needs(t, what, lines, at, l.List+", "+what2+":")
				}
				if all > most {
					continue
				}
				shown++
				id := task.A
				if id < 0 {
					id = task.B
				}
				at = needs(t, what, lines, at, fmt.Sprint(id), clip(task.Task, Width-10))
				for i, part := range strings.Split(task.How, "; ") {
					if part != "" { // its first words: long ones go on below
						at = needs(t, fmt.Sprintf("%s, part %d of %s", what, i, task.Task), lines, at+1, strings.TrimRight(fold(part, Width-14)[0], ",;"))
					}
				}
			}
			if all > shown {
				at = needs(t, what, lines, at, fmt.Sprintf("and %d more; --all lists them", all-shown))
			}
		}
	}
}

// counts holds what a difference says of lists and memory against the schedules.
func counts(t *testing.T, what string, d *Diff, a, b *Schedule) {
	t.Helper()
	type key struct{ list, change string }
	listed := map[key]int{}
	for _, x := range d.Tasks {
		listed[key{x.List, x.Change}]++
		for side, id := range map[*Schedule]int{a: x.A, b: x.B} {
			if id >= 0 && side.Plan.Tasks[id].List.String() != x.List {
				t.Errorf("%s: task %d of %s is in %s", what, id, x.List, side.Plan.Tasks[id].List)
			}
		}
		if (x.A < 0) != (x.Change == "added") || (x.B < 0) != (x.Change == "gone") {
			t.Errorf("%s: %+v", what, x)
		}
	}
	for _, l := range d.Lists {
		if l.A-l.Gone+l.Added != l.B || l.Moved > l.A-l.Gone || l.Changed > l.A-l.Gone {
			t.Errorf("%s: %+v", what, l)
		}
		for change, n := range map[string]int{"gone": l.Gone, "added": l.Added, "moved": l.Moved, "changed": l.Changed} {
			if got := listed[key{l.List, change}]; got != n {
				t.Errorf("%s: %d tasks of %s are %s, and %d are listed", what, n, l.List, change, got)
			}
		}
	}
	for _, m := range d.Memory {
		want := BytesDiff{Name: m.Name}
		for side, n := range map[*Schedule]*int64{a: &want.A, b: &want.B} {
			switch f := side.File; m.Name {
			case "device peak":
				*n = f.Memory.DevicePeak
			case "host peak":
				*n = f.Memory.HostPeak
			default:
				for _, x := range f.Memory.Arenas {
					if x.Name == m.Name {
						*n += x.Bytes
					}
				}
			}
		}
		if m != want || m.A == m.B {
			t.Errorf("%s: %+v, and the schedules have %+v", what, m, want)
		}
	}
}
