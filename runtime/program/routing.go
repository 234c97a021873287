package program

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"

	"github.com/megatrain/mtc/runtime/engine"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/ops/moe"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/telemetry"
)

// RoutingFile, in a run folder, is where a run with a mixture of experts writes what its routers do.
const RoutingFile = "moe.jsonl"

// routingLines is about how many lines of it a whole run writes.
const routingLines = 200

// routing follows the routers of a run: it adds up their reports between two lines.
type routing struct {
	plan  *plan.Plan
	file  *telemetry.Metrics
	errw  io.Writer
	every int64

	since    []moe.Report // since the last line of the file
	shown    []moe.Report // since the last line for people
	starving []string     // what was last warned of, by router
	flooded  []bool
	frozen   []float64 // pairs that the last evaluation dropped
	last     int64     // step of the last line
}

// openRouting starts following; nil for a model without routers.
func (s *session) openRouting(errw io.Writer) (*routing, error) {
	n := len(s.plan.Routers)
	if n == 0 {
		return nil, nil
	}
	f, err := telemetry.OpenMetrics(filepath.Join(s.out, RoutingFile), s.engine.State().Step, false)
	if bad := (*fault.Error)(nil); errors.As(err, &bad) { // its place is not one that a flag gives
		return nil, bad.Help("move it out of the way: the run begins a new one")
	} else if err != nil {
		return nil, err
	}
	for i := range s.plan.Routers {
		if q := &s.plan.Routers[i]; q.Choice >= s.train.Steps && s.train.Steps > 0 {
			fmt.Fprintf(errw, "note: %s: experts choose in the first %d steps, which are all of this run, so none is trained by the cutoffs that evaluation and generation go by\n", q.Name, q.Choice)
			break
		}
	}
	return &routing{
		plan: s.plan, file: f, errw: errw, every: max(1, s.train.Steps/routingLines),
		since: make([]moe.Report, n), shown: make([]moe.Report, n), starving: make([]string, n), flooded: make([]bool, n), frozen: make([]float64, n), last: -1,
	}, nil
}

func layerOf(r *plan.Router, rep *moe.Report) (moe.Layer, moe.Digest) {
	d := rep.Digest(r.Mean)
	l := moe.Layer{
		Name: r.Name, Mean: short(d.Mean), Target: short(d.Target), Usage: shorts(d.Usage), MaxVio: short(d.MaxVio), CV: short(d.CV),
		None: short(d.None), Fan: shorts(d.Fan), Position: shorts(d.Position), Dead: len(d.Dead), Starved: len(d.Starved),
		Dropped: short(d.Dropped), Flooded: int64(rep.Flooded), NonCausal: int64(rep.NonCausal),
		Balance: short(rep.Balance), Z: short(rep.Z),
	}
	if r.Kind == "topk" {
		l.Bias = shorts(rep.Bias)
	} else {
		l.Threshold, l.Drift = shorts(rep.Threshold), short(d.Drift)
	}
	return l, d
}

// short rounds to six digits; what is no number, as of logits that are none, is 0.
func short(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) || x == 0 {
		return 0
	}
	p := math.Pow10(5 - int(math.Floor(math.Log10(math.Abs(x)))))
	return math.Round(x*p) / p
}

func shorts(x []float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = short(v)
	}
	return out
}

// step takes a step's reports.
func (r *routing) step(m *engine.Metrics) error {
	if r == nil || m.Skipped {
		return nil
	}
	for i := range r.plan.Routers {
		q := &r.plan.Routers[i]
		rep := moe.ReportOf(m.Routers[q.At/8:], q.Experts)
		r.since[i].Add(rep)
		r.shown[i].Add(rep)
	}
	if m.Step%r.every == 0 {
		return r.write(m.Step)
	}
	return nil
}

// evaluated reads how many pairs the evaluation that just ended has dropped.
func (r *routing) evaluated(e *engine.Engine) error {
	for i := range r.plan.Routers {
		q := &r.plan.Routers[i]
		var b [8]byte
		p := e.Ptr(q.State, 0).At(q.Report + 8*moe.ReportFrozen)
		if err := e.Device().Read(b[:], p); err != nil {
			return err
		}
		r.frozen[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[:]))
		clear(b[:])
		if err := e.Device().Write(p, b[:]); err != nil {
			return err
		}
		if r.frozen[i] > 0 {
			r.flood(i)
		}
	}
	return nil
}

// flood says that a plan's rows did not do, once.
func (r *routing) flood(i int) {
	if q := &r.plan.Routers[i]; !r.flooded[i] {
		r.flooded[i] = true
		fmt.Fprintf(r.errw, "note: %s: more tokens passed the cutoffs than the plan has rows for, %d a token; those of the lowest logits were dropped (`rows = N` in `moe` makes room)\n",
			q.Name, q.Slots)
	}
}

// routerLoss is what all routers of a plan added to the loss of a step.
func routerLoss(p *plan.Plan, m *engine.Metrics) (sum float64) {
	for i := range p.Routers {
		rep := moe.ReportOf(m.Routers[p.Routers[i].At/8:], p.Routers[i].Experts)
		sum += rep.Balance + rep.Z
	}
	return sum
}

// write appends a line to the file.
func (r *routing) write(step int64) error {
	if step == r.last || r.since[0].Count == nil {
		return nil
	}
	line := moe.Line{Step: step}
	for i := range r.plan.Routers {
		l, _ := layerOf(&r.plan.Routers[i], &r.since[i])
		l.Evaluated = r.frozen[i]
		line.Layers = append(line.Layers, l)
		r.since[i] = moe.Report{}
	}
	r.last = step
	return r.file.Append(line)
}

// line is a line for people, of the steps since the one before, and warns of experts that starve.
func (r *routing) line(step, steps int64) string {
	if r == nil || r.shown[0].Count == nil {
		return ""
	}
	var mean, target, none, worst, drift, dropped, balance, z float64
	var noncausal int64
	at := ""
	n := float64(len(r.plan.Routers))
	thresholds := false
	for i := range r.plan.Routers {
		q := &r.plan.Routers[i]
		l, d := layerOf(q, &r.shown[i])
		mean += d.Mean / n
		target += d.Target / n
		none += d.None / n
		dropped += d.Dropped / n
		balance += l.Balance
		z += l.Z
		drift = max(drift, d.Drift)
		thresholds = thresholds || q.Kind != "topk"
		noncausal = max(noncausal, l.NonCausal)
		if d.MaxVio >= worst {
			worst, at = d.MaxVio, q.Name
		}
		r.warn(i, d)
		r.shown[i] = moe.Report{}
	}
	total := fmt.Sprint(steps)
	s := fmt.Sprintf("moe  %*d/%s  %.2f/%.2f a token  %.0f%% none  maxvio %.2f %s", len(total), step, total, mean, target, 100*none, worst, strings.TrimSuffix(at, ".moe"))
	if thresholds {
		s += fmt.Sprintf("  drift %.2g", drift)
	}
	var more []string
	if noncausal > 0 {
		more = append(more, telemetry.Group(noncausal)+" tokens trained non-causally")
	}
	if dropped > 0 {
		more = append(more, fmt.Sprintf("%.2g%% of pairs dropped", 100*dropped))
	}
	frozen := 0.0
	for _, n := range r.frozen {
		frozen += n
	}
	if frozen > 0 {
		more = append(more, telemetry.Group(int64(frozen))+" pairs dropped in evaluation")
	}
	if balance > 0 || z > 0 {
		more = append(more, fmt.Sprintf("beside the loss: balance %.3g, z %.3g", balance, z))
	}
	if len(more) > 0 {
		s += "\n     " + strings.Join(more, "; ")
	}
	return s + "\n"
}

// warn says which experts starve, and that the plan's rows did not do, when that is new.
func (r *routing) warn(i int, d moe.Digest) {
	q := &r.plan.Routers[i]
	list := make([]string, 0, 8)
	for _, e := range d.Starved {
		if len(list) == 8 {
			list = append(list, fmt.Sprintf("and %d more", len(d.Starved)-8))
			break
		}
		list = append(list, fmt.Sprint(e))
	}
	text := strings.Join(list, ", ")
	if text != r.starving[i] && text != "" {
		what := "expert " + text + " gets"
		if len(d.Starved) > 1 {
			what = "experts " + text + " get"
		}
		fmt.Fprintf(r.errw, "note: %s: %s less than a tenth of the share of tokens\n", q.Name, what)
	}
	r.starving[i] = text
	if d.Dropped > 0 {
		r.flood(i)
	}
}

func (r *routing) close() error {
	if r == nil {
		return nil
	}
	return r.file.Close()
}
