package program

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/plan"
)

// TestRecordsThatWereEdited: what no run has written is refused with its field and place, and what
// one has is taken.
func TestRecordsThatWereEdited(t *testing.T) {
	record := runRecord{Model: "m", Hash: "h", Compiler: "dev", Compiled: &plan.Train{}, Packing: &packedAs{}, Train: plan.Train{
		Data: []string{"/x"}, EvalData: []string{}, Steps: 9, Optimizer: plan.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8},
		LR: plan.Schedule{Kind: "cosine", Peak: 1e-3, Warmup: 2}, Clip: 1, Holdout: 0.05, SaveEvery: 2, SaveKeep: 3, Seed: 7}}
	whole, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	train, compiled, _ := strings.Cut(string(whole), `"compiled"`)
	for _, c := range []struct {
		name, from, to string // of the part on the settings in force
		want           string // "": it is taken
	}{
		{"nothing", "", "", ""},
		{"other steps", `"Steps": 9`, `"Steps": 90`, ""},
		{"a run that only took weights", `"Steps": 9`, `"Steps": 0`, ""},
		{"negative steps", `"Steps": 9`, `"Steps": -1`, "train.Steps is -1, and can be 0 or more"},
		{"too many epochs", `"Epochs": 0`, `"Epochs": 9000000000`, "train.Epochs"},
		{"a width of no type", `"Width": 0`, `"Width": 3`, "train.Width is 3, and can be 0, 1, 2 or 4"},
		{"an average that never ends", `"Beta2": 0.95`, `"Beta2": 1`, "train.Optimizer.Beta2"},
		{"a division by zero", `"Eps": 1e-8`, `"Eps": 0`, "train.Optimizer.Eps"},
		{"growth for decay", `"Decay": 0`, `"Decay": -0.1`, "train.Optimizer.Decay"},
		{"another schedule", `"cosine"`, `"sine"`, `learning-rate schedule "sine"`},
		{"a negative peak", `"Peak": 0.001`, `"Peak": -0.001`, "peak learning rate"},
		{"negative clipping", `"Clip": 1`, `"Clip": -1`, "train.Clip"},
		{"all held out", `"Holdout": 0.05`, `"Holdout": 1`, "train.Holdout"},
		{"held out beside files", `"EvalData": []`, `"EvalData": ["/y"]`, "train.Holdout is 0.05, and can be 0 where EvalData names files"},
		{"no path", `"/x"`, `""`, "train.Data"},
		{"negative evaluations", `"EvalEvery": 0`, `"EvalEvery": -3`, "train.EvalEvery"},
		{"negative checkpoints", `"SaveKeep": 3`, `"SaveKeep": -3`, "train.SaveKeep"},
		{"a negative seed", `"Seed": 7`, `"Seed": -7`, "train.Seed"},
		{"a text for a number", `"Seed": 7`, `"Seed": "7"`, "line "},
		{"a fraction for a number", `"Steps": 9`, `"Steps": 9.5`, "line "},
		{"more than fits", `"Steps": 9`, `"Steps": 99999999999999999999`, "line "},
		{"null", `"Steps": 9`, `"Steps": null`, "train.Steps is null"},
		{"gone", `"Steps": 9,`, ``, "train has no `Steps`"},
		{"twice", `"Steps": 9,`, `"Steps": 9, "Steps": 8,`, "twice"},
		{"other capitals", `"Steps"`, `"steps"`, "it is written `Steps`"},
		{"unknown", `"Steps": 9,`, `"Steps": 9, "Experts": 0,`, "there is no field `train.Experts`"},
		{"cut short", `"Steps": 9,`, "\x00", "line "},
	} {
		dir := t.TempDir()
		text := strings.Replace(train, c.from, c.to, 1) + `"compiled"` + compiled
		if err := os.WriteFile(filepath.Join(dir, runFile), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := readRun(dir)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		var f *fault.Error
		if !errors.As(err, &f) || f.Code != "MT0621" || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%s: got %v, wanted %s with its line", c.name, err, c.want)
		}
	}
}
