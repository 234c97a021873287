package program

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/optim"
	"github.com/megatrain/mtc/runtime/plan"
)

// settings are a training run's, from the plan, the record of the run that is resumed, and
// the command line, later ones over earlier ones.
type settings struct {
	train      plan.Train
	out        string
	exports    exports
	packing    packing
	weights    string // Hugging Face folder to begin from, "": none
	metrics    string
	threads    int64
	pinned     *int64 // most host memory to lock, nil: any
	maxSkipped int64
	resume     bool
	noSave     bool
	moved      bool // count the weights that did
	noBest     bool
	ask        []string               // to answer after evaluations
	noCheck    bool                   // of free memory
	profile    int64                  // steps to time, 0: none
	from       *checkpoint.Checkpoint // to resume from
	before     *plan.Train            // what was in force when that was written, nil when unknown
	dataGiven  bool                   // --data was given, not only the train block's
	evalGiven  bool                   // --eval-data was
	had        *packedAs              // what that run had packed itself, nil: nothing
}

// settings parses the command line of training.
func (p *Program) settings(args []string, out io.Writer) (*settings, error) {
	s := &settings{maxSkipped: 10}
	var t plan.Train
	var sets []string
	var which, root, profile, pinned string
	fs := newFlagSet("train", TrainFlags)
	for name, to := range map[string]any{
		"steps": &t.Steps, "epochs": &t.Epochs, "data": &t.Data, "eval-data": &t.EvalData, "holdout": &t.Holdout,
		"eval-every": &t.EvalEvery, "save-every": &t.SaveEvery, "out": &s.out, "metrics": &s.metrics,
		"seed": &t.Seed, "set": &sets, "resume": &which, "max-skipped": &s.maxSkipped,
		"threads": &s.threads, "root": &root, "no-save": &s.noSave, "moved": &s.moved, "no-memory-check": &s.noCheck, "profile": &profile, "pinned-memory": &pinned,
		"no-best": &s.noBest, "ask": &s.ask, "from": &s.weights, "tensorboard": &s.exports.tensorboard, "csv": &s.exports.csv, "prometheus": &s.exports.prometheus,
	} {
		fs.bind(name, to)
	}
	s.packing.bind(fs)
	rest, err := fs.parse(args, out)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		return nil, usagef("`%s` is not a flag", rest[0]).hint("every setting is a flag: `--data PATH`")
	}
	s.resume = fs.given("resume")
	if err := first(p.checkFrom(s, fs.given("from")), s.exports.check(), s.packing.check(fs)); err != nil {
		return nil, err
	}
	if s.profile, err = p.profiled(fs.given("profile"), profile); err != nil {
		return nil, err
	}
	if fs.given("pinned-memory") {
		n, err := sizeOf("pinned-memory", pinned)
		switch {
		case err != nil:
			return nil, err
		case pinned == "":
			return nil, usagef("`--pinned-memory` is empty").hint("write a size, such as 32GiB, or 0 to lock nothing")
		case p.Plan.Target != "cuda":
			return nil, usagef("`--pinned-memory` is for a GPU, and %s was compiled for the CPU", p.Plan.Model).hint("leave it out, or compile with `--target cuda`")
		}
		s.pinned = &n
	}
	if fs.given("steps") && fs.given("epochs") {
		return nil, usagef("`--steps` and `--epochs` exclude each other").hint("epochs end a run after so many times over its data, steps wherever it is then")
	}
	if fs.given("eval-data") && fs.given("holdout") {
		return nil, usagef("`--eval-data` and `--holdout` exclude each other").hint("both say on what to evaluate")
	}
	if fs.given("threads") && s.threads == 0 {
		s.threads = -1 // refused: leaving the flag out is how to have all
	}
	switch {
	case fs.given("out") && s.out == "":
		return nil, usagef("`--out` is empty").hint("write a folder, or leave it out for one below runs")
	case s.out == "":
		s.out = runDir(p.Plan.Model, s.resume)
	}
	s.train = p.Plan.Train
	s.train.Data, s.train.EvalData = under(root, s.train.Data), under(root, s.train.EvalData)
	if s.resume {
		if err := s.recall(which, &p.Plan.Train); err != nil {
			return nil, err
		}
	}
	for _, set := range sets {
		if err := p.set(&s.train, set); err != nil {
			return nil, err
		}
	}
	s.override(fs, &t)
	if s.metrics == "" {
		s.metrics = filepath.Join(s.out, metricsFile)
	}
	return s, p.check(s)
}

// override lays the flags that were given over the settings.
func (s *settings) override(fs *flagSet, t *plan.Train) {
	to := &s.train
	if fs.given("steps") {
		to.Steps, to.Epochs = t.Steps, 0
	}
	if fs.given("epochs") {
		if to.Epochs = t.Epochs; t.Epochs == 0 {
			to.Epochs = -1 // refused: no epochs is no --epochs
		}
	}
	if fs.given("data") {
		to.Data, s.dataGiven = t.Data, true
	}
	if fs.given("eval-data") {
		to.EvalData, to.Holdout, s.evalGiven = t.EvalData, 0, true
	}
	if fs.given("holdout") {
		to.Holdout, to.EvalData = t.Holdout, nil
	}
	if fs.given("eval-every") {
		to.EvalEvery = t.EvalEvery
	}
	if fs.given("save-every") {
		to.SaveEvery = t.SaveEvery
	}
	if s.noSave {
		to.SaveEvery = 0
	}
	if fs.given("seed") {
		to.Seed = t.Seed
	}
}

// check refuses settings that cannot be.
func (p *Program) check(s *settings) error {
	t := &s.train
	for _, c := range []struct {
		bad  bool
		flag string
		want string
	}{
		{t.Steps < 1 && (t.Steps != 0 || s.weights == ""), "steps", "at least 1"},
		{t.Epochs < 0 || t.Epochs > maxEpochs, "epochs", fmt.Sprintf("1 to %d", maxEpochs)},
		{t.EvalEvery < 0, "eval-every", "0 or more"},
		{t.SaveEvery < 0, "save-every", "0 or more"},
		{s.maxSkipped < 0, "max-skipped", "0 or more"},
		{s.threads < 0 || s.threads > maxThreads, "threads", threadsRange},
		{!(t.Holdout >= 0 && t.Holdout < 1), "holdout", "a share from 0 to below 1"},
		{t.Seed < 0, "seed", "0 or more"},
	} {
		if c.bad {
			return usagef("`--%s` is out of range", c.flag).hint("write %s", c.want)
		}
	}
	if err := optim.CheckSchedule(t.LR); err != nil {
		return usagef("%v", err)
	}
	if p.Plan.Clip != (t.Clip > 0) {
		return usagef("`clip` is %s, and %s was compiled for the other case", clipText(t.Clip), p.Plan.Model).
			hint("write it in the train block or as `--set train.clip=...` of `mtc run`, which compiles it in")
	}
	if len(t.Data) == 0 && t.Steps > 0 {
		return usagef("there is no data to train on").hint("give files with `--data PATH`, or write `data = \"...\"` in the train block of %s", p.Plan.Source)
	}
	if (len(t.EvalData) > 0 || t.Holdout > 0) && !p.canEvaluate() {
		return usagef("%s was compiled without evaluation", p.Plan.Model).
			hint("`mtc run %s --set 'train.eval=every(100)'` compiles again and runs", fault.Shell(p.Plan.Source))
	}
	return nil
}

func (p *Program) canEvaluate() bool {
	l := p.Plan.Lists[plan.Eval]
	return l.End > l.Start
}

// maxEpochs keeps the number of steps far from overflow.
const maxEpochs = 1_000_000

// maxThreads bounds --threads: a processor for every row of kernels, and far more than help.
const maxThreads = 1024

var threadsRange = fmt.Sprintf("1 to %d, or leave it out for all processors", maxThreads)

// under puts relative paths of a .mt below its folder.
func under(root string, paths []string) []string {
	if root == "" {
		return paths
	}
	out := make([]string, len(paths))
	for i, p := range paths {
		if out[i] = p; !filepath.IsAbs(p) {
			out[i] = filepath.Join(root, p)
		}
	}
	return out
}

// absolute makes paths independent of the working folder.
func absolute(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = p
		if a, err := filepath.Abs(p); err == nil {
			out[i] = a
		}
	}
	return out
}

// scheduleText writes a learning-rate schedule as in a train block.
func scheduleText(s plan.Schedule) string {
	args := []string{fmt.Sprintf("peak = %g", s.Peak)}
	if s.Warmup > 0 {
		args = append(args, fmt.Sprintf("warmup = %d", s.Warmup))
	}
	if s.Kind != "constant" {
		args = append(args, fmt.Sprintf("final = %g", s.Final))
	}
	if s.Kind == "wsd" {
		args = append(args, fmt.Sprintf("decay = %d", s.Decay))
	}
	return s.Kind + "(" + strings.Join(args, ", ") + ")"
}

// longWarmup is a note on a learning rate that has no time to do what it is set to. What the text says
// was held together when it was compiled; what the command line and the data say is not.
func longWarmup(t, compiled *plan.Train) string {
	n := t.LR.Warmup + t.LR.Decay
	if n <= t.Steps || t.Steps == compiled.Steps && t.LR == compiled.LR {
		return ""
	}
	return fmt.Sprintf("note: warm-up and decay of lr take %d steps, and the run has %d\n", n, t.Steps)
}
