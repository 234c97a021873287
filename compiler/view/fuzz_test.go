package view

import (
	"encoding/json"
	"io"
	"maps"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/megatrain/mtc/compiler/schedule"
	"github.com/megatrain/mtc/runtime/plan"
)

// showAll makes every view of a schedule.
func showAll(s *Schedule) {
	for l := range plan.NumLists {
		step, err := s.Predict(Nominal(), l)
		if err != nil {
			continue
		}
		step.WriteText(io.Discard)
		step.Report()
		_ = (&Page{Steps: []*Step{step}}).WriteHTML(io.Discard)
		_ = WriteTrace(io.Discard, []*Step{step})
		for i := range min(step.Len(), 5) {
			if w, err := step.Why(step.First()+i, nil); err == nil {
				w.Write(io.Discard)
			}
		}
		if l != plan.Steady {
			continue
		}
		if measured, err := s.Measure(asMeasured(step, 3, 2)); err == nil {
			measured.WriteText(io.Discard)
			Compare(step, measured).Write(io.Discard)
		}
	}
	d := s.Compare(s)
	d.Write(io.Discard, "a", "b", All)
}

// fileOf is the schedule.json of a small model.
func fileOf(t testing.TB) []byte {
	text, err := json.Marshal(model(t, "small_stream").File)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// FuzzViews: whatever a schedule.json says, if it can be read it can be shown.
func FuzzViews(f *testing.F) {
	f.Add(fileOf(f))
	f.Add([]byte(`{"model":"m","lanes":["compute"],"tasks":[{"list":"first","kind":"feed","lane":"compute"},{"id":1,"list":"steady","kind":"feed","lane":"compute","step":-1,"micro":-9,"waits":[{"task":1,"back":1}]}]}`))
	f.Add([]byte(`{"model":"m","lanes":["compute","h2d"],"templates":["t"],"results":[1],"work":{"funcs":[[null,[{"kernel":"x","times":3,"flops":9}]]]},
"memory":{"arenas":[{"name":"a","memory":"device","bytes":64}]},"buffers":[{"name":"b","arena":"a","bytes":64,"copies":2}],
"tasks":[{"list":"first","kind":"feed","lane":"h2d"},{"id":1,"list":"steady","kind":"compute","func":"forward","template":"t","lane":"compute","reads":["b"],"writes":["b"],"flops":5,"bytes":7},
{"id":2,"list":"steady","kind":"prefetch","lane":"h2d","src":"b","dst":"b","bytes":9,"waits":[{"task":1,"back":0}]}]}`))
	f.Fuzz(func(_ *testing.T, text []byte) {
		if len(text) > 1<<16 {
			return
		}
		file, err := schedule.Parse(text)
		if err != nil {
			return
		}
		if s, err := Of(file); err == nil {
			showAll(s)
		}
	})
}

// TestViewsOfDamagedSchedules: schedules with a few values replaced by extremes, or by values from
// elsewhere in them, are refused or shown.
func TestViewsOfDamagedSchedules(t *testing.T) {
	good := fileOf(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	shown := 0
	for range 300 {
		var tree any
		if err := json.Unmarshal(good, &tree); err != nil {
			t.Fatal(err)
		}
		var places []func(any) any // each replaces a value and returns the old one
		var collect func(v any, set func(any))
		collect = func(v any, set func(any)) {
			places = append(places, func(x any) any { set(x); return v })
			switch v := v.(type) {
			case map[string]any:
				for _, k := range slices.Sorted(maps.Keys(v)) {
					collect(v[k], func(x any) { v[k] = x })
				}
			case []any:
				for i := range v {
					collect(v[i], func(x any) { v[i] = x })
				}
			}
		}
		collect(tree, func(x any) { tree = x })
		for range 1 + rnd.IntN(3) {
			at := places[1+rnd.IntN(len(places)-1)]
			old := at(nil)
			switch rnd.IntN(6) {
			case 0:
				at(float64(rnd.Int64N(1 << 50)))
			case 1:
				at(float64(0))
			case 2:
				at(float64(1 << 50))
			case 3:
				other := places[rnd.IntN(len(places))]
				x := other(nil)
				other(x)
				at(x)
			case 4:
				at("layer[0]")
			case 5:
				if n, ok := old.(float64); ok {
					at(n + float64(rnd.IntN(3)) - 1)
				} else {
					at(old)
				}
			}
		}
		text, err := json.Marshal(tree)
		if err != nil {
			continue // a value within itself
		}
		file, err := schedule.Parse(text)
		if err != nil {
			continue
		}
		s, err := Of(file)
		if err != nil {
			continue
		}
		func() {
			defer func() {
				if r := recover(); r != nil {
					t.Fatalf("%v\n%s\n%s", r, text, debug.Stack())
				}
			}()
			showAll(s)
		}()
		shown++
	}
	if shown < 30 {
		t.Errorf("%d of 300 schedules could be shown", shown)
	}
}
