package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// pageOf is a page and the data in it.
func pageOf(t *testing.T, p *Page) (string, map[string]any) {
	t.Helper()
	var out bytes.Buffer
	if err := p.WriteHTML(&out); err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`).FindSubmatch(out.Bytes())
	if m == nil {
		t.Fatal("the page holds no data")
	}
	var data map[string]any
	if err := json.Unmarshal(m[1], &data); err != nil {
		t.Fatal(err)
	}
	return out.String(), data
}

// TestPage: it is whole, asks for nothing from elsewhere, and has every task and text.
func TestPage(t *testing.T) {
	s := model(t, "small_stream")
	step := predict(t, s, plan.Steady)
	measured, err := s.Measure(asMeasured(step, 3, 1.5))
	if err != nil {
		t.Fatal(err)
	}
	text, data := pageOf(t, &Page{
		Steps: []*Step{step, measured}, Sources: []Text{{"small.mt", small}},
		Go: []Text{
			{"main.go", "var templates = []engine.Template{\n\t{Name: \"layer\", Funcs: [plan.NumFuncs]engine.TemplateFunc{\n\t\tplan.Forward:  layerForward,\n\t\tplan.EvalLoss: layerEval,\n"},
			{"template_layer_gen.go", "package main\n\nfunc layerForward(queue device.Queue) {}\nfunc layerEval(queue device.Queue) {}\n"},
		},
	})
	for _, bad := range []string{"http://", "https://", "src=", "{{", "@import", "url("} {
		if strings.Contains(text, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	for _, want := range []string{"prefers-color-scheme", "@media print", "aria-label", "predicted for a nominal cpu", "measured on test"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	tasks := data["task"].(map[string]any)
	for _, column := range []string{"kind", "lane", "name", "span", "micro", "back", "flops", "bytes", "reads", "writes", "waitEnd", "template"} {
		if n := len(tasks[column].([]any)); n != step.Len() {
			t.Errorf("column %s has %d of %d tasks", column, n, step.Len())
		}
	}
	funcs := data["funcs"].(map[string]any)
	if at := funcs["layer/forward"].([]any); at[0] != 1.0 || at[1] != 3.0 {
		t.Errorf("layer/forward is at %v", at)
	}
	if at := funcs["layer/eval_loss"].([]any); at[1] != 4.0 {
		t.Errorf("layer/eval_loss is at %v", at)
	}
	if len(data["steps"].([]any)) != 2 {
		t.Error("the page has not both steps")
	}
}

// TestPageEscapes: names and texts that would like to be markup stay text.
func TestPageEscapes(t *testing.T) {
	const evil = `</script><script>alert(1)</script><!--"'&{{script}}{{data}}` + "\u2028"
	text := "// " + strings.ReplaceAll(evil, "\u2028", "") + "\n" + small
	s := compile(t, compiler.Options{Path: "a</script><b>{{data}}.mt", Text: []byte(text), Placement: "stream"})
	s.File.Model = evil
	s.Plan.Model = evil
	s.Plan.Buffers[1].Name = evil
	s.Plan.Units[0].Name = evil
	s.Plan.Slabs[0].Name = evil
	page, data := pageOf(t, &Page{Steps: []*Step{predict(t, s, plan.Steady)}, Sources: []Text{{evil, evil}}, Go: []Text{{evil, evil}}})
	if n := strings.Count(page, "<script"); n != 2 {
		t.Errorf("the page has %d scripts, wanted its two", n)
	}
	if strings.Contains(page, "alert(1)</script>") || strings.Contains(page, "<b>{{") {
		t.Error("a name is markup")
	}
	if got := data["sources"].([]any)[0].(map[string]any)["text"]; got != evil {
		t.Errorf("the text is %q", got)
	}
}

// TestTrace holds a trace against the format: a JSON object of events; complete events of a
// thread do not overlap; a flow begins and ends within a slice; counters are numbers.
func TestTrace(t *testing.T) {
	for _, name := range modelNames {
		s := model(t, name)
		step := predict(t, s, plan.Steady)
		measured, err := s.Measure(asMeasured(step, 3, 1.5))
		if err != nil {
			t.Fatal(err)
		}
		// Tasks of nanoseconds, and clocks of lanes that differ by a little.
		tiny, err := s.Measure(asMeasured(step, 3, 1e-4))
		if err != nil {
			t.Fatal(err)
		}
		m := asMeasured(step, 3, 1)
		for k := range m.Steps {
			for i := range m.Steps[k].Tasks {
				x := &m.Steps[k].Tasks[i]
				if s.Plan.Tasks[x.Task].Lane != device.Compute {
					x.Start, x.End = x.Start+1500, x.End+1500
				}
				if i%3 == 0 {
					x.End = x.Start // shorter than the clock resolves
				}
			}
		}
		apart, err := s.Measure(m)
		if err != nil {
			t.Fatal(err)
		}
		steps := []*Step{step, measured, tiny, apart}
		var out bytes.Buffer
		if err := WriteTrace(&out, steps); err != nil {
			t.Fatal(err)
		}
		var f struct {
			TraceEvents []struct {
				Name, Ph, Bp, Cat string
				Ts, Dur           *float64
				PID, TID, ID      int
				Args              map[string]any
			}
		}
		if err := json.Unmarshal(out.Bytes(), &f); err != nil {
			t.Fatal(err)
		}
		type track struct{ pid, tid int }
		slices := map[track][]span{}
		starts, ends := map[int]int{}, map[int]int{}
		begins, last := map[int]float64{}, map[string]float64{} // of flows by id, of counters by process and name
		counters, threads, tasks := map[string]int{}, map[string]bool{}, 0
		for _, e := range f.TraceEvents {
			if e.Ph != "M" && (e.Ts == nil || *e.Ts < 0) || e.Name == "" || e.PID < 1 {
				t.Fatalf("%s: event %+v", name, e)
			}
			switch e.Ph {
			case "X":
				tasks++
				list := slices[track{e.PID, e.TID}]
				if n := len(list); n > 0 && *e.Ts < list[n-1].to-1e-9 {
					t.Errorf("%s: %s begins at %v, the one before on its lane ends at %v", name, e.Name, *e.Ts, list[n-1].to)
				}
				slices[track{e.PID, e.TID}] = append(list, span{*e.Ts, *e.Ts + *e.Dur})
				if e.Args["task"] == nil {
					t.Errorf("%s: %s has no task number", name, e.Name)
				}
			case "M":
				if e.Name == "thread_name" {
					threads[e.Args["name"].(string)] = true
				}
			case "C":
				for _, v := range e.Args {
					if x := v.(float64); x < 0 {
						t.Errorf("%s: counter %s is %v", name, e.Name, x)
					}
				}
				counters[e.Name]++
				track := fmt.Sprint(e.PID, e.Name)
				if at, ok := last[track]; ok && *e.Ts < at {
					t.Errorf("%s: counter %s goes back from %v to %v", name, e.Name, at, *e.Ts)
				}
				last[track] = *e.Ts
			case "s":
				starts[e.ID]++
				begins[e.ID] = *e.Ts
			case "f":
				ends[e.ID]++
				if at, ok := begins[e.ID]; !ok || *e.Ts < at {
					t.Errorf("%s: flow %d ends at %v, and begins at %v", name, e.ID, *e.Ts, at)
				}
				if e.Bp != "e" {
					t.Errorf("%s: flow %d does not bind to the slice it ends in", name, e.ID)
				}
			default:
				t.Errorf("%s: phase %q", name, e.Ph)
			}
		}
		for _, e := range f.TraceEvents {
			if e.Ph != "s" && e.Ph != "f" {
				continue
			}
			within := false
			for _, x := range slices[track{e.PID, e.TID}] {
				// As catapult has it, in milliseconds, and without the end.
				within = within || x.from/1e3 <= *e.Ts/1e3 && *e.Ts/1e3 < x.from/1e3+(x.to-x.from)/1e3
			}
			if !within {
				t.Errorf("%s: flow %d (%s) at %v is in no slice", name, e.ID, e.Ph, *e.Ts)
			}
		}
		if len(starts) == 0 && name != "nano" || len(starts) != len(ends) {
			t.Errorf("%s: %d flows begin, %d end", name, len(starts), len(ends))
		}
		for id, n := range starts {
			if n != 1 || ends[id] != 1 {
				t.Errorf("%s: flow %d begins %d and ends %d times", name, id, n, ends[id])
			}
		}
		wanted := 0
		for _, step := range steps {
			wanted += handed(step)
		}
		if len(starts) < wanted*9/10 || len(starts) > wanted {
			t.Errorf("%s: %d flows of %d waits", name, len(starts), wanted)
		}
		for l := range device.NumLanes {
			if !threads[l.String()] {
				t.Errorf("%s: lane %s has no track", name, l)
			}
		}
		if tasks < 4*step.Len() || counters["device memory alive"] == 0 || name != "nano" && counters["link h2d"] == 0 {
			t.Errorf("%s: %d tasks, counters %v", name, tasks, counters)
		}
	}
}

// handed counts the waits between tasks that are both drawn.
func handed(t *Step) int {
	n := 0
	for i := range t.Line.Runs {
		r := &t.Line.Runs[i]
		for _, w := range t.Plan.Tasks[r.Task].Waits {
			for k := range t.Line.Runs {
				q := &t.Line.Runs[k]
				if q.Step == r.Step-w.Back && t.Plan.Tasks[q.Task].Event == w.Event && (w.Back > 0 || q.Task < r.Task) {
					n++
				}
			}
		}
	}
	return n
}

// TestReport: the keys that tools read.
func TestReport(t *testing.T) {
	text, err := json.Marshal(predict(t, model(t, "small_unclipped"), plan.Steady).Report())
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]json.RawMessage
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"list", "origin", "machine", "measured", "seconds", "tokens_per_second", "bound", "overlap", "lanes", "critical", "path", "costliest", "costliest_together", "memory"} {
		if _, ok := got[key]; !ok {
			t.Errorf("the report has no key %q", key)
		}
	}
	var rows []TaskRow
	if err := json.Unmarshal(got["costliest"], &rows); err != nil || len(rows) != 10 {
		t.Errorf("%d costliest tasks, %v", len(rows), err)
	}
}
