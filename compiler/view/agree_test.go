package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/plan"
)

// again is a report as a tool has it: through JSON.
func again[T any](t *testing.T, v *T) *T {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out := new(T)
	if err := json.Unmarshal(text, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// words are those of each line of a text, as one space apart.
func words(text string) []string {
	var out []string
	for _, l := range strings.Split(text, "\n") {
		out = append(out, strings.TrimRight(strings.Join(strings.Fields(l), " "), ",;"))
	}
	return out
}

// needs looks for a line that begins with fields, behind `after` lines; it returns its place.
func needs(t *testing.T, what string, lines []string, after int, fields ...string) int {
	t.Helper()
	want := strings.Join(strings.Fields(strings.Join(fields, " ")), " ")
	for i := after; i < len(lines); i++ {
		if strings.HasPrefix(lines[i]+" ", want+" ") {
			return i
		}
	}
	t.Errorf("%s: the text has no line %q", what, want)
	return after
}

// TestTextAgreesWithJSON makes every number of a step's text out of its JSON, for steps predicted and measured.
func TestTextAgreesWithJSON(t *testing.T) {
	for _, name := range modelNames {
		s := model(t, name)
		predicted := predict(t, s, plan.Steady)
		measured, err := s.Measure(asMeasured(predicted, 5, 1.7))
		if err != nil {
			t.Fatal(err)
		}
		measured.Divide = predicted.Machine
		for _, step := range []*Step{predicted, measured} {
			var out bytes.Buffer
			step.WriteText(&out)
			lines, r := words(out.String()), again(t, step.Report())
			what := name + ", " + r.Origin
			if head := strings.Join(lines[:3], " "); !strings.Contains(head, r.Origin) || !strings.Contains(head, Seconds(r.Seconds)+", "+fmt.Sprintf("%.0f tokens/s", r.Rate)) {
				t.Errorf("%s: %s", what, head)
			}
			at := 0
			for _, u := range r.Lanes {
				at = needs(t, what, lines, at, u.Lane, Seconds(u.Busy), Seconds(u.Hidden), Seconds(u.Exposed), Percent(u.Busy/r.Seconds), fmt.Sprint(u.Tasks))
				if math.Abs(u.Busy-u.Hidden-u.Exposed) > 1e-12 {
					t.Errorf("%s: %s is busy %v, hidden %v, exposed %v", what, u.Lane, u.Busy, u.Hidden, u.Exposed)
				}
			}
			if r.Overlap != nil {
				at = needs(t, what, lines, at, "overlap:", Percent(*r.Overlap))
			}
			tasks, sum := 0, 0.0
			for _, p := range r.Critical {
				tasks += p.Tasks
				sum += p.Seconds
			}
			at = needs(t, what, lines, at, fmt.Sprintf("critical path: %d tasks", tasks))
			if math.Abs(sum/r.Seconds-1) > 1e-9 {
				t.Errorf("%s: the critical path is %v of the step's %v", what, sum, r.Seconds)
			}
			for _, p := range r.Critical {
				count := ""
				if p.Lane != "" {
					count = fmt.Sprint(p.Tasks)
				}
				at = needs(t, what, lines, at, p.Kind, p.Lane, count, Seconds(p.Seconds), Percent(p.Seconds/r.Seconds))
			}
			for _, c := range r.Together[:min(10, len(r.Together))] {
				at = needs(t, what, lines, at, clip(c.What, 25), fmt.Sprint(c.Tasks), Seconds(c.Seconds), Percent(c.Share), slackText(c.Slack))
			}
			for _, l := range r.Lines[:min(10, len(r.Lines))] {
				at = needs(t, what, lines, at, clip(or(l.Span, "none"), 17), Seconds(l.Seconds), Percent(l.Share), string(l.Bound))
			}
			for _, m := range r.Memory {
				if m.Reserved == 0 {
					continue
				}
				at = needs(t, what, lines, at, m.Memory+" memory:", bytesText(m.Reserved), "reserved; at most", bytesText(m.Peak), "alive, at", Seconds(m.PeakAt))
				for _, g := range m.AtPeak {
					at = needs(t, what, lines, at, g.Purpose, fmt.Sprint(g.Buffers), plural(g.Buffers, "buffer"), bytesText(g.Bytes))
				}
			}
		}
	}
}

// TestComparisonAgrees: the text of a comparison says what its JSON says; kinds add up to their lane, and those of
// computation with its waiting to the step, on both sides; and no cause contradicts the figures beside it.
func TestComparisonAgrees(t *testing.T) {
	for _, name := range modelNames {
		s := model(t, name)
		predicted := predict(t, s, plan.Steady)
		for _, slower := range []float64{0.5, 1, 1.04, 3} {
			m := asMeasured(predicted, 5, slower)
			for k := range m.Steps { // steps differ, as measured ones do
				for i := range m.Steps[k].Tasks {
					x := &m.Steps[k].Tasks[i]
					x.End -= (x.End - x.Start) * int64((k*7+i*3)%5) / 10
				}
			}
			measured, err := s.Measure(m)
			if err != nil {
				t.Fatal(err)
			}
			c := again(t, Compare(predicted, measured))
			what := fmt.Sprintf("%s, %v times", name, slower)
			var out bytes.Buffer
			c.Write(&out)
			lines := words(out.String())
			off := func(p Pair) string { return off(p) }
			at := needs(t, what, lines, 0, "step", Seconds(c.Step.Predicted), Seconds(c.Step.Measured), off(c.Step))
			at = needs(t, what, lines, at, "waiting compute", Seconds(c.Waiting.Predicted), Seconds(c.Waiting.Measured), off(c.Waiting))
			sums := map[string]Pair{}
			for _, k := range c.Kinds {
				at = needs(t, what, lines, at, k.Kind, k.Lane, fmt.Sprint(k.Tasks), Seconds(k.Time.Predicted), Seconds(k.Time.Measured), off(k.Time))
				x := sums[k.Lane]
				sums[k.Lane] = Pair{x.Predicted + k.Time.Predicted, x.Measured + k.Time.Measured}
			}
			for _, l := range c.Lanes {
				at = needs(t, what, lines, at, l.Lane, Seconds(l.Busy.Predicted), Seconds(l.Busy.Measured), off(l.Busy),
					Seconds(l.Exposed.Predicted), Seconds(l.Exposed.Measured), off(l.Exposed))
				if x := sums[l.Lane]; math.Abs(x.Predicted-l.Busy.Predicted) > 1e-9 || math.Abs(x.Measured-l.Busy.Measured) > 1e-9 {
					t.Errorf("%s: kinds of %s take %v, the lane is busy %v", what, l.Lane, x, l.Busy)
				}
				if l.Lane == "compute" && math.Abs(l.Busy.Measured+c.Waiting.Measured-c.Step.Measured) > 1e-9 {
					t.Errorf("%s: busy %v, waiting %v, and the step takes %v", what, l.Busy, c.Waiting, c.Step)
				}
			}
			for i, k := range c.Worst {
				at = needs(t, what, lines, at, fmt.Sprintf("%d. %s on %s:", i+1, k.Kind, k.Lane), Seconds(k.Time.Measured), "instead of", Seconds(k.Time.Predicted)+",", off(k.Time))
				faster := k.Time.Measured < k.Time.Predicted
				for word, wrong := range map[string]bool{
					"slower": faster, "faster": !faster, "costs more": faster, "take cores": faster, "less of it": faster, "shares the cores": faster,
					"within a tenth": math.Abs(k.Time.Off()) >= 0.1,
				} {
					if wrong && strings.Contains(k.Cause, word) {
						t.Errorf("%s: %s: %s", what, off(k.Time), k.Cause)
					}
				}
			}
		}
	}
}
