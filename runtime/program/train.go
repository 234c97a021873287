package program

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/data"
	"github.com/megatrain/mtc/runtime/engine"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/optim"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/telemetry"
	"github.com/megatrain/mtc/runtime/telemetry/export"
)

// session is one training run in this process.
type session struct {
	prog *Program
	plan *plan.Plan
	*settings
	outw io.Writer

	foreign *foreignWeights  // nil: they start as the model says, or are resumed
	base    *checkpoint.Base // the frozen weights that adapters go with, nil: none

	feed   *data.Feed // the data
	loader data.Training
	eval   data.Held // nil: none
	stop   *interrupt
	aside  []string // damaged checkpoints that were renamed
	folder *checkpoint.Folder
	packed string // folder that the training data was packed into, "": it was not
	held   string // and the evaluation data

	checking bool // nothing runs after this, so notes are for the program to tell

	engine    *engine.Engine
	metrics   *telemetry.Metrics
	questions []question     // of --ask
	routing   *routing       // nil: the model has no routers
	profiler  *profiler      // nil: none
	feeds     []*export.Feed // of other programs
	eta       telemetry.ETA
	tokens    int64 // targets trained on so far
	began     time.Time
	startup   startup

	evaluated int64 // step of the last evaluation, -1: none
	evalOwed  bool  // the run that is gone on with was to evaluate its last step
	evalLoss  float64
	best      float64 // the lowest evaluation loss so far
	saved     string  // path of the last checkpoint
	savedStep int64
	wrote     bool // a checkpoint, in this process
}

// train is the train command.
func (p *Program) train(args []string, out, errw io.Writer) (err error) {
	set, err := p.settings(args, out)
	if err != nil {
		return err
	}
	s := &session{prog: p, plan: p.Plan, settings: set, outw: out, began: time.Now(), evaluated: -1, savedStep: -1}
	if err := s.openWeights(); err != nil {
		return err
	}
	defer s.foreign.close()
	if !set.noCheck {
		if err := preflight(p.Plan, false); err != nil {
			return err
		}
	}
	if s.train.Steps == 0 {
		return s.adopt(out, errw)
	}
	if err := s.openData(errw); err != nil {
		return err
	}
	defer s.feed.Close()
	if err := s.openFolder(); err != nil {
		return err
	}
	defer func() { s.folder.Unlock() }()
	if err := s.openQuestions(); err != nil {
		return err
	}
	if s.feed.Bytes && p.Plan.Vocab > 256 {
		fmt.Fprintf(errw, "note: the data is read as bytes, tokens below 256, and the vocabulary of %s is %d; `mtc data pack` tokenizes text\n",
			p.Plan.Model, p.Plan.Vocab)
	}
	for _, path := range s.aside {
		fmt.Fprintf(errw, "note: a damaged checkpoint is now %s\n", path)
	}
	s.say(errw)
	fmt.Fprint(errw, longWarmup(&s.train, &p.Plan.Train))
	if s.from != nil {
		fmt.Fprint(errw, noteOf(s.changes()))
	}
	if s.engine, err = p.openPinned(s.threads, false, s.pinned, s.train.Optimizer); err != nil {
		return err
	}
	defer s.engine.Device().Close()
	before := time.Now()
	if err := s.start(); err != nil {
		return err
	}
	s.sayOdd(errw)
	if err := s.settle(time.Since(before)); err != nil {
		return err
	}
	if err := first(s.startBest(errw), s.startProfile()); err != nil {
		return err
	}
	if s.metrics, err = telemetry.OpenMetrics(s.settings.metrics, s.engine.State().Step, s.evalOwed); err != nil {
		return err
	}
	defer func() { err = first(err, s.metrics.Close()) }()
	if err := s.recordStart(); err != nil {
		return err
	}
	s.feeds = s.exports.start(errw, p.Plan.Model, s.engine.State().Step)
	defer func() {
		for _, f := range s.feeds {
			f.Close()
		}
	}()
	if s.routing, err = s.openRouting(errw); err != nil {
		return err
	}
	defer func() { err = first(err, s.routing.close()) }()
	s.stop = watch(errw)
	p.atOnce()
	out = s.stop.outlet(out)
	s.outw = out
	fmt.Fprint(out, telemetry.Table(s.table()))
	if err := s.run(); err != nil {
		return failed(err, s.wayBack())
	}
	if err := s.writeProfile(errw); err != nil {
		return err
	}
	s.report()
	if code := s.stop.code.Load(); code != 0 {
		return exitStatus(code)
	}
	return nil
}

// openData opens training and evaluation data and checks that there is enough. Text for a model
// with a tokenizer is packed first; errw hears of that.
func (s *session) openData(errw io.Writer) error {
	if err := s.packText(errw); err != nil {
		return err
	}
	feed, err := s.sources(errw)
	if err != nil {
		return err
	}
	s.feed, s.loader, s.eval = feed, feed.Train, feed.Eval
	if t := &s.train; t.Epochs > 0 {
		t.Steps = t.Epochs * feed.Steps
	}
	if err := s.checkTokenizer(); err != nil {
		feed.Close()
		return err
	}
	return nil
}

// ownHoldout is the share of the training files that is evaluated on when the model asks for
// evaluation and nobody says on what.
const ownHoldout = 0.05

// sources opens the data. A model that asks for evaluation without data for it is evaluated
// on held-out files, where there are enough files for that.
func (s *session) sources(errw io.Writer) (*data.Feed, error) {
	t := &s.train
	open := func(t plan.Train, shape data.Shape) (*data.Feed, error) {
		return data.OpenFeed(s.packedPaths(t), shape)
	}
	shape := data.Shape{Vocab: s.plan.Vocab, Batch: s.plan.Batch, Seq: s.plan.Seq, Evaluates: s.prog.canEvaluate(), Shared: s.plan.Documents}
	if t.EvalEvery > 0 && len(t.EvalData) == 0 && t.Holdout == 0 && s.prog.canEvaluate() {
		split := *t
		split.Holdout = ownHoldout
		feed, err := open(split, shape)
		if err == nil {
			t.Holdout = ownHoldout
			return feed, nil
		}
		var f *fault.Error
		if !errors.As(err, &f) || f.Code != "MT0608" {
			return nil, err
		}
		feed, again := open(*t, shape)
		if again == nil && !s.checking {
			fmt.Fprintf(errw, "note: nothing is evaluated, though the model asks for it every %d steps: %s; `--eval-data` and `--holdout` say on what\n", t.EvalEvery, f.Message)
		}
		return feed, again
	}
	return open(*t, shape)
}

// openFolder takes the run folder: an empty one, or that of the run to resume.
func (s *session) openFolder() (err error) {
	if err := s.mayUse(); err != nil {
		return err
	}
	if s.folder, err = checkpoint.Lock(s.out); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			s.folder.Unlock()
		}
	}()
	// Once more: a run that held the folder until now may have left checkpoints.
	if err := s.mayUse(); err != nil {
		return err
	}
	if s.resume {
		if s.aside, err = checkpoint.SetAside(s.out, s.from.State.Step); err != nil {
			return err
		}
	}
	return s.furnish()
}

// mayUse checks that the run folder is free for a new run, or for going on with the old one.
func (s *session) mayUse() (err error) {
	if s.resume {
		err = s.mayResume()
	} else {
		err = checkpoint.Fresh(s.out)
	}
	var f *fault.Error
	if errors.As(err, &f) && f.Hint == "" {
		f.Hint = "give another folder with --out"
	}
	return err
}

// start gives the weights their first values, or those of the checkpoint.
func (s *session) start() (err error) {
	state := slabs{e: s.engine, fresh: true}
	if s.plan.LoRA.On() {
		var want *checkpoint.Base
		if s.from != nil {
			want = s.from.State.Base
		}
		if s.base, err = s.foreign.freeze(&state, want); err != nil {
			return err
		}
	} else if s.foreign != nil {
		return s.foreign.load(&state)
	}
	if s.from == nil {
		return initialize(s.engine, s.train.Seed)
	}
	st := s.from.State
	if err := s.from.LoadSlabs(s.plan, state.view, true); err != nil {
		return err
	}
	if err := state.end(); err != nil {
		return err
	}
	s.engine.SetState(engine.State{Step: st.Step, Updates: st.Updates, Skipped: st.Skipped, InRow: st.InARow})
	s.tokens = st.Tokens
	s.saved, s.savedStep, s.evalOwed = s.from.Path, st.Step, st.EvalOwed
	return nil
}

// run trains, and at the end evaluates and saves what has not been.
func (s *session) run() error {
	t := &s.train
	tr := &engine.Training{
		Steps: t.Steps, Batch: s.loader.Batch, Starts: s.feed.Starts, Clip: t.Clip, MaxSkipped: s.maxSkipped,
		LR:        func(step int64) float64 { return optim.LR(t.LR, step, t.Steps) },
		SaveEvery: t.SaveEvery,
		Stop:      s.stop.stopped,
		Hooks:     []engine.Hook{s.progress(), s.checkpoints()},
	}
	if s.eval != nil {
		tr.Eval, tr.EvalEvery = s.evaluation(), t.EvalEvery
		tr.EvalOwed = s.evalOwed && t.EvalEvery > 0
	}
	if s.profiler != nil {
		tr.Profile = s.profiler.times
		tr.Hooks = append(tr.Hooks, s.profiler.hook())
	}
	before := s.engine.State()
	err := s.engine.Train(tr)
	if after := s.engine.State(); err == nil && !s.stop.stopped() && after.Step > before.Step && after.Updates == before.Updates {
		return allSkipped(after.Step - before.Step)
	}
	if err == nil && s.eval != nil && !s.stop.stopped() && s.evaluated != s.engine.State().Step {
		err = s.lastEvaluation()
	}
	if err != nil && !errors.Is(err, errInterrupted) {
		return s.rescue(err)
	}
	if err := s.routed(s.engine.State().Step); err != nil {
		return err
	}
	if s.moved && (s.foreign == nil || s.base != nil) {
		m, err := movedWeights(s.engine, s.train.Seed)
		if err != nil {
			return err
		}
		fmt.Fprintf(s.outw, "moved: %s\n", m)
	}
	switch st := s.engine.State(); {
	case s.noSave:
		return nil
	case s.savedStep != st.Step:
		return s.save(st)
	default:
		return s.hold(st)
	}
}

// allSkipped is the end of a run that has trained nothing: no checkpoint is written, since it
// would hold the weights that the run began with.
func allSkipped(steps int64) error {
	what := fmt.Sprintf("all %d steps were skipped", steps)
	if steps == 1 {
		what = "the only step was skipped"
	}
	return fault.New("MT0630", "", "%s, since no gradient was finite: nothing was trained, and no last checkpoint is written", what).
		Help("lower the learning rate (--set train.lr=...), and check init and constants for values that are not finite in 32 bits")
}

// evaluation is the evaluation data; an interrupt breaks it off.
func (s *session) evaluation() *engine.Evaluation {
	return &engine.Evaluation{Batches: s.eval.Batches(), Starts: s.feed.EvalStarts, Batch: func(i int64, tokens, targets []int32) error {
		if s.stop.stopped() {
			return errInterrupted
		}
		return s.eval.Batch(i, tokens, targets)
	}}
}

func (s *session) lastEvaluation() error {
	r, err := s.engine.Evaluate(s.evaluation())
	if err != nil {
		return err
	}
	return s.onEval(s.engine.State(), r)
}

// save writes a checkpoint of a drained engine into the run folder.
func (s *session) save(st engine.State) (err error) {
	for range 2 { // once more where what is needed was just being removed
		if err = s.hold(st); err == nil {
			err = s.write(st)
		}
		if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			break
		}
	}
	return err
}

// write writes a checkpoint to where the run folder is.
func (s *session) write(st engine.State) error {
	keep := s.train.SaveKeep
	if keep == 0 {
		keep = 3
	}
	start := time.Now()
	state := slabs{e: s.engine, readOnly: true}
	files := checkpoint.FromSlabs(s.plan, state.view)
	state.guard(files)
	record := s.state(st)
	record.EvalOwed = s.eval != nil && s.train.EvalEvery > 0 && st.Step%s.train.EvalEvery == 0 && s.evaluated != st.Step
	path, err := checkpoint.Save(s.out, record, files, keep)
	if err = first(err, state.end()); err != nil {
		return err
	}
	s.saved, s.savedStep, s.wrote = path, st.Step, true
	s.eta.Extra(time.Since(start).Seconds())
	fmt.Fprintf(s.outw, "save %d/%d  %s\n", st.Step, s.train.Steps, filepath.Clean(path))
	return nil
}

// state is what a checkpoint has beside tensors.
func (s *session) state(st engine.State) checkpoint.State {
	return checkpoint.State{
		Step: st.Step, Updates: st.Updates, Skipped: st.Skipped, InARow: st.InRow, Tokens: s.tokens,
		Seed: s.train.Seed, Batch: s.plan.Batch, Seq: s.plan.Seq, Data: s.dataID(),
		Base: s.base, Model: s.plan.Model, Hash: s.plan.ModelHash, Values: s.plan.Values, Sums: s.plan.Sums(), Vectors: vectors(), Compiler: s.plan.Compiler,
	}
}

// dataID identifies the training data; a run of no steps has none.
func (s *session) dataID() string {
	if s.feed == nil {
		return ""
	}
	return s.feed.ID
}

// wayBack says how to go on after a failure.
func (s *session) wayBack() string {
	switch {
	case s.saved == "" && s.train.SaveEvery > 0:
		return fmt.Sprintf("no checkpoint had been written yet: the first comes after step %d", s.train.SaveEvery)
	case s.saved == "":
		return "no checkpoint had been written yet; --save-every N writes some"
	}
	return fmt.Sprintf("`--resume --out %s` goes on from %s", fault.Shell(s.out), filepath.Base(s.saved))
}
