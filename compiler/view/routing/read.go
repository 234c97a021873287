package routing

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/megatrain/mtc/runtime/jsontext"
	"github.com/megatrain/mtc/runtime/ops/moe"
)

// Read reads the lines of moe.jsonl. A last line that is cut short, of a run that goes on, is
// left out. Errors name the line: steps ascend, and all lines are of the same routers.
func Read(r io.Reader) ([]moe.Line, error) {
	var out []moe.Line
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		text, err := in.ReadBytes('\n')
		if err == io.EOF {
			if len(text) > 0 && text[0] != '{' { // not a line that is being written
				return nil, fmt.Errorf("line %d does not say what routers did", n)
			}
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		var l moe.Line
		text = bytes.TrimSpace(text)
		if err = jsontext.Read(text, &l, jsontext.Whole|jsontext.Known); err == nil {
			err = jsontext.Explain(text, check(&l, out))
		}
		if err != nil {
			return nil, fmt.Errorf("line %d%s", n, strings.TrimPrefix(err.Error(), "line 1"))
		}
		out = append(out, l)
	}
}

// check holds a line against those before it.
func check(l *moe.Line, before []moe.Line) error {
	if len(l.Layers) == 0 {
		return jsontext.In("layers", fmt.Errorf("there are no routers"))
	}
	if l.Step < 0 || len(before) > 0 && l.Step <= before[len(before)-1].Step {
		return jsontext.In("step", fmt.Errorf("step %d stands behind step %d", l.Step, last(before)))
	}
	if len(before) > 0 && len(before[0].Layers) != len(l.Layers) {
		return jsontext.In("layers", fmt.Errorf("%d routers; the first line has %d", len(l.Layers), len(before[0].Layers)))
	}
	for i := range l.Layers {
		x := &l.Layers[i]
		wrong := func(field, format string, args ...any) error {
			return jsontext.In(fmt.Sprintf("layers[%d].%s", i, field), fmt.Errorf(format, args...))
		}
		n := len(x.Usage)
		switch {
		case x.Name == "":
			return wrong("name", "the router has no name")
		case len(before) > 0 && (before[0].Layers[i].Name != x.Name || len(before[0].Layers[i].Usage) != n):
			return wrong("name", "%s with %d experts; the first line has %s with %d", x.Name, n, before[0].Layers[i].Name, len(before[0].Layers[i].Usage))
		case n == 0:
			return wrong("usage", "%s has no experts", x.Name)
		case len(x.Threshold) > 0 && len(x.Threshold) != n, len(x.Bias) > 0 && len(x.Bias) != n:
			return wrong("name", "%s has %d experts, %d cutoffs and %d biases", x.Name, n, len(x.Threshold), len(x.Bias))
		case min(x.Dead, x.Starved) < 0 || max(x.Dead, x.Starved) > n || min(x.Flooded, x.NonCausal) < 0:
			return wrong("dead", "%s counts %d dead and %d starved of %d experts, %d and %d micro-batches and tokens", x.Name, x.Dead, x.Starved, n, x.Flooded, x.NonCausal)
		}
		for _, f := range []struct {
			field  string
			values []float64
			least  float64
		}{{"mean", []float64{x.Mean}, 0}, {"target", []float64{x.Target}, 0}, {"usage", x.Usage, 0}, {"none", []float64{x.None}, 0}, {"fan", x.Fan, 0},
			{"position", x.Position, 0}, {"threshold", x.Threshold, -most}, {"bias", x.Bias, -most}, {"max_vio", []float64{x.MaxVio}, -1}, {"cv", []float64{x.CV}, 0},
			{"drift", []float64{x.Drift}, 0}, {"dropped", []float64{x.Dropped}, 0}, {"eval_dropped", []float64{x.Evaluated}, 0},
			{"balance_loss", []float64{x.Balance}, -most}, {"z_loss", []float64{x.Z}, 0}} {
			for _, v := range f.values {
				if !(v >= f.least && v <= most) || math.IsNaN(v) {
					return wrong(f.field, "%s of %s is %v", f.field, x.Name, v)
				}
			}
		}
	}
	return nil
}

// most is above any figure of a router, and can be drawn.
const most = 1e30

func last(lines []moe.Line) int64 {
	if len(lines) == 0 {
		return 0
	}
	return lines[len(lines)-1].Step
}

// Fits says whether lines are of a model's routers, by name and number of experts.
func Fits(lines []moe.Line, names []string, experts []int64) error {
	l := &lines[0]
	if len(l.Layers) != len(names) {
		return fmt.Errorf("it is of %d routers, the run's model has %d", len(l.Layers), len(names))
	}
	for i, x := range l.Layers {
		if x.Name != names[i] || int64(len(x.Usage)) != experts[i] {
			return fmt.Errorf("it is of %s with %d experts where the run's model has %s with %d", x.Name, len(x.Usage), names[i], experts[i])
		}
	}
	return nil
}
