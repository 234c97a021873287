package program

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/data"
	"github.com/megatrain/mtc/runtime/engine"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/hf"
	"github.com/megatrain/mtc/runtime/ops/moe"
	"github.com/megatrain/mtc/runtime/plan"
)

// calibration is what to calibrate.
type calibration struct {
	data    []string
	batches int64
	passes  int64
	out     string
	json    bool
	threads int64
}

// calibratedLayer is a router before and after.
type calibratedLayer struct {
	Name   string    `json:"name"`
	Before moe.Layer `json:"before"`
	After  moe.Layer `json:"after"`
}

// calibrationReport is what --json prints.
type calibrationReport struct {
	Out        string            `json:"out"`
	Tokens     int64             `json:"tokens"`
	LossBefore float64           `json:"loss_before"`
	LossAfter  float64           `json:"loss_after"`
	Layers     []calibratedLayer `json:"layers"`

	best string // the checkpoint that was written, where it is weights alone
}

// calibrate is the calibrate command: it recomputes the cutoffs of a run's routers on given data
// with the weights of a checkpoint, and writes a run folder that has them.
func (p *Program) calibrate(args []string, out, errw io.Writer) error {
	r := calibration{batches: 16, passes: 3}
	fs := newFlagSet("calibrate", CalibrateFlags)
	fs.usage = "calibrate [RUN] --data PATH [flags]"
	for name, to := range map[string]any{"data": &r.data, "batches": &r.batches, "passes": &r.passes, "out": &r.out, "json": &r.json, "threads": &r.threads} {
		fs.bind(name, to)
	}
	rest, err := fs.parse(args, out)
	l := p.Plan.Lists[plan.Eval]
	cutoffs := false
	for i := range p.Plan.Routers {
		cutoffs = cutoffs || p.Plan.Routers[i].Kind != "topk"
	}
	switch {
	case err != nil:
		return err
	case len(rest) > 1:
		return usagef("`calibrate` takes one run folder, not %d", len(rest))
	case !cutoffs:
		return usagef("%s has no router that goes by cutoffs, so there is nothing to calibrate", p.Plan.Model)
	case l.End == l.Start:
		return usagef("%s was compiled without evaluation", p.Plan.Model)
	case len(r.data) == 0:
		return usagef("`calibrate` needs data").hint("`calibrate --data PATH`")
	case r.batches < 1 || r.passes < 1:
		return usagef("`--batches` and `--passes` are at least 1")
	case r.batches > math.MaxInt32/(p.Plan.Batch*p.Plan.Seq*maxFan(p.Plan)):
		return usagef("`--batches` is out of range").hint("counts hold 2^31 pairs of a token and an expert: write at most %d", math.MaxInt32/(p.Plan.Batch*p.Plan.Seq*maxFan(p.Plan)))
	case fs.given("threads") && (r.threads < 1 || r.threads > maxThreads):
		return usagef("`--threads` is out of range").hint("write %s", threadsRange)
	}
	c, err := p.checkpointOf(rest)
	if err != nil {
		return err
	}
	run := filepath.Dir(filepath.Clean(c.Path))
	if r.out == "" {
		r.out = run + "-calibrated"
	}
	if err := checkpoint.Fresh(r.out); err != nil {
		return err
	}
	best := filepath.Join(r.out, checkpoint.BestFolder)
	if _, err := os.Stat(best); err == nil {
		return fault.New("MT0626", best, "the folder holds the best weights of a run").Help("give another folder with --out")
	}
	feed, err := data.OpenFeed(plan.Train{Data: r.data, Seed: 1}, data.Shape{Vocab: p.Plan.Vocab, Batch: p.Plan.Batch, Seq: p.Plan.Seq, Shared: p.Plan.Documents})
	if err != nil {
		return err
	}
	defer feed.Close()
	if err := p.inTokens(feed, run, r.data[0]); err != nil {
		return err
	}
	if err := preflight(p.Plan, false); err != nil {
		return err
	}
	e, err := p.open(r.threads, false)
	if err != nil {
		return err
	}
	defer e.Device().Close()
	_, err = os.Stat(filepath.Join(c.Path, checkpoint.OptimizerFile))
	whole := err == nil // the best weights come without moments
	if err := p.loadModel(e, c, whole, ""); err != nil {
		return err
	}
	report, err := p.recalibrate(e, feed, &r)
	if err != nil {
		return failed(err, "")
	}
	if err := p.writeCalibrated(e, c, run, &r, whole); err != nil {
		return err
	}
	if !whole {
		report.best = best
	}
	if r.json {
		text, err := json.MarshalIndent(report, "", "  ")
		if err == nil {
			_, err = fmt.Fprintf(out, "%s\n", text)
		}
		return err
	}
	report.print(out)
	return nil
}

// maxFan is the most rows a token that a router has memory for.
func maxFan(p *plan.Plan) int64 {
	n := int64(1)
	for i := range p.Routers {
		n = max(n, p.Routers[i].Slots)
	}
	return n
}

// recalibrate counts logits over the data and sets cutoffs to their quantiles, pass by pass.
func (p *Program) recalibrate(e *engine.Engine, feed *data.Feed, r *calibration) (*calibrationReport, error) {
	rep := &calibrationReport{Out: r.out}
	pass := func() ([]moe.Report, engine.EvalResult, error) {
		state := slabs{e: e}
		for i := range p.Plan.Routers {
			q := &p.Plan.Routers[i]
			moe.ClearCounts(state.view(q.State), q.Experts, q.Hist)
		}
		if err := state.flush(); err != nil {
			return nil, engine.EvalResult{}, err
		}
		res, err := e.Evaluate(&engine.Evaluation{Batches: r.batches, Batch: feed.Train.Batch, Starts: feed.Starts, Route: moe.RouteCollect})
		if err != nil {
			return nil, res, err
		}
		var out []moe.Report
		for i := range p.Plan.Routers {
			q := &p.Plan.Routers[i]
			out = append(out, moe.Counted(state.view(q.State), q.Experts, q.Hist, q.Mean/float64(q.Experts)))
		}
		return out, res, state.err
	}
	before, res, err := pass()
	if err != nil {
		return nil, err
	}
	rep.Tokens, rep.LossBefore = res.Tokens, res.Loss
	after := before
	for range r.passes {
		state := slabs{e: e}
		for i := range p.Plan.Routers {
			if q := &p.Plan.Routers[i]; q.Kind != "topk" {
				moe.SetCutoffs(state.view(q.State), q.Experts, q.Hist, after[i].Quantile)
			}
		}
		if err := state.flush(); err != nil {
			return nil, err
		}
		if after, res, err = pass(); err != nil {
			return nil, err
		}
	}
	rep.LossAfter = res.Loss
	for i := range p.Plan.Routers {
		q := &p.Plan.Routers[i]
		a, _ := layerOf(q, &before[i])
		b, _ := layerOf(q, &after[i])
		rep.Layers = append(rep.Layers, calibratedLayer{q.Name, a, b})
	}
	return rep, nil
}

// writeCalibrated writes a run folder with the checkpoint's weights and the new cutoffs.
func (p *Program) writeCalibrated(e *engine.Engine, c *checkpoint.Checkpoint, run string, r *calibration, whole bool) error {
	folder, err := checkpoint.Lock(r.out)
	if err != nil {
		return err
	}
	defer folder.Unlock()
	t, packing := p.Plan.Train, (*packedAs)(nil)
	switch had, err := readRun(run); {
	case err != nil:
		return err
	case had != nil:
		t, packing = had.Train, had.Packing
	}
	if err := first(p.writeRunFolder(r.out, t, packing), hf.KeepAgain(run, r.out)); err != nil {
		return err
	}
	state := slabs{e: e, readOnly: true}
	files := checkpoint.FromSlabs(p.Plan, state.view)
	state.guard(files)
	if !whole {
		return checkpoint.SaveBest(r.out, c.State, files)
	}
	_, err = checkpoint.Save(r.out, c.State, files, 0)
	return err
}

// print writes the report for people.
func (r *calibrationReport) print(w io.Writer) {
	fmt.Fprintf(w, "%s: %d tokens, loss %.4f before and %.4f after\n\n", r.Out, r.Tokens, r.LossBefore, r.LossAfter)
	width := len("router")
	for _, l := range r.Layers {
		width = max(width, len(l.Name))
	}
	fmt.Fprintf(w, "%-*s %8s %15s %15s %15s\n", width, "", "", "experts/token", "none", "maxvio")
	fmt.Fprintf(w, "%-*s %8s %7s %7s %7s %7s %7s %7s\n", width, "router", "aims at", "before", "after", "before", "after", "before", "after")
	for _, l := range r.Layers {
		a, b := &l.Before, &l.After
		fmt.Fprintf(w, "%-*s %8.3f %7.3f %7.3f %6.1f%% %6.1f%% %7.2f %7.2f\n", width, l.Name, a.Target, a.Mean, b.Mean, 100*a.None, 100*b.None, a.MaxVio, b.MaxVio)
	}
	of := ""
	if r.best != "" { // it is not the newest of its folder: there is none
		of = fault.Shell(r.best) + " "
	}
	fmt.Fprintf(w, "\nnext:\n  %s generate %s--prompt \"TEXT\"\n", fault.Shell(programIn(r.Out)), of)
}
