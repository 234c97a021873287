package program

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/jsontext"
	"github.com/megatrain/mtc/runtime/optim"
	"github.com/megatrain/mtc/runtime/plan"
)

// runRecord is run.json.
type runRecord struct {
	Model    string      `json:"model"`
	Hash     string      `json:"hash"`
	Compiler string      `json:"compiler"`
	Train    plan.Train  `json:"train"`              // settings in force; data paths are absolute
	Compiled *plan.Train `json:"compiled,omitempty"` // settings of the program, as the .mt has them
	Packing  *packedAs   `json:"packing,omitempty"`  // of text that the run packed itself
}

// readRun reads run.json; nil when there is none.
func readRun(dir string) (*runRecord, error) {
	path := filepath.Join(dir, runFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var r runRecord
	if err == nil {
		err = jsontext.Read(text, &r, jsontext.Whole|jsontext.Known)
	}
	if err == nil {
		err = jsontext.Explain(text, r.check())
	}
	if err != nil {
		return nil, fault.New("MT0621", path, "the record of the run cannot be used").Wrap(err).
			Help("put right what is wrong there; without the file, `--resume` goes on with the settings of the .mt")
	}
	return &r, nil
}

// check refuses settings that no run has.
func (r *runRecord) check() error {
	t := &r.Train
	for _, c := range []struct {
		ok    bool
		field string
		value any
		want  string
	}{
		{t.Steps >= 0, "Steps", t.Steps, "0 or more"},
		{t.Epochs >= 0 && t.Epochs <= maxEpochs, "Epochs", t.Epochs, fmt.Sprintf("0 to %d", maxEpochs)},
		{slices.Contains([]int{0, 1, 2, 4}, t.Width), "Width", t.Width, "0, 1, 2 or 4"},
		{t.Optimizer.Beta1 >= 0 && t.Optimizer.Beta1 < 1, "Optimizer.Beta1", t.Optimizer.Beta1, "0 to below 1"},
		{t.Optimizer.Beta2 >= 0 && t.Optimizer.Beta2 < 1, "Optimizer.Beta2", t.Optimizer.Beta2, "0 to below 1"},
		{t.Optimizer.Eps > 0, "Optimizer.Eps", t.Optimizer.Eps, "above 0"},
		{t.Optimizer.Decay >= 0, "Optimizer.Decay", t.Optimizer.Decay, "0 or more"},
		{t.Clip >= 0, "Clip", t.Clip, "0 or more"},
		{t.EvalEvery >= 0, "EvalEvery", t.EvalEvery, "0 or more"},
		{t.EvalSteps >= 0, "EvalSteps", t.EvalSteps, "0 or more"},
		{t.Holdout >= 0 && t.Holdout < 1, "Holdout", t.Holdout, "0 to below 1"},
		{t.Holdout == 0 || len(t.EvalData) == 0, "Holdout", t.Holdout, "0 where EvalData names files"},
		{t.SaveEvery >= 0, "SaveEvery", t.SaveEvery, "0 or more"},
		{t.SaveKeep >= 0, "SaveKeep", t.SaveKeep, "0 or more"},
		{t.Seed >= 0, "Seed", t.Seed, "0 or more"},
		{!slices.Contains(t.Data, ""), "Data", `""`, "a path"},
		{!slices.Contains(t.EvalData, ""), "EvalData", `""`, "a path"},
	} {
		if !c.ok {
			return jsontext.In("train."+c.field, fmt.Errorf("train.%s is %v, and can be %s", c.field, c.value, c.want))
		}
	}
	if err := optim.CheckSchedule(t.LR); err != nil {
		return jsontext.In("train.LR", fmt.Errorf("train.LR: %w", err))
	}
	if r.Packing != nil {
		if err := r.Packing.Check(); err != nil {
			return jsontext.In("packing", fmt.Errorf("packing: %w", err))
		}
	}
	return nil
}
