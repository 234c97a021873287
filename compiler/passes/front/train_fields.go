package front

import (
	"strings"

	"github.com/megatrain/mtc/runtime/op"
)

// textKind is a parameter that takes a string; ops have none.
const textKind op.ParamKind = 100

// namesKind is a parameter that takes a name or a list of names, as words or strings: names of
// the model, which are looked up when it is there.
const namesKind op.ParamKind = 101

// trainField declares a field of the train block: its value with the same declaration that
// ops use for their parameters, and the unit words it takes.
type trainField struct {
	param op.Param
	units []string
	must  bool // the unit must be written
}

// trainFields are the fields, in the order in which `mtc new` and the reference show them.
var trainFields = []trainField{
	{param: op.Param{Name: "data", Kind: textKind, Default: op.None(),
		Doc: "files to train on: a path, folder or pattern; none: given by --data"}},
	{param: op.Param{Name: "width", Kind: op.Int, Default: op.IntValue(0),
		Doc: "bytes of a token in .bin shards without a header: 1, 2 or 4; 0: by the header"}, units: []string{"bytes"}},
	{param: op.Param{Name: "seq", Kind: op.Int, Doc: "T, tokens of a sequence"}, units: []string{"tokens"}},
	{param: op.Param{Name: "batch", Kind: op.Int, Doc: "tokens or rows of a step"}, units: []string{"tokens", "rows"}, must: true},
	{param: op.Param{Name: "steps", Kind: op.Int, Default: op.IntValue(1000), Doc: "optimizer steps of the run"}, units: []string{"steps"}},
	{param: op.Param{Name: "epochs", Kind: op.Int, Default: op.None(), Doc: "times over the data, instead of steps; the last step of an epoch has the rows that are left"}, units: []string{"epochs"}},
	{param: op.Param{Name: "optimizer", Kind: op.Word, Default: op.WordValue("adamw"), Words: []string{"adamw"}, Ctors: []op.Ctor{adamwCtor},
		Doc: "adamw(beta1, beta2, eps, decay)"}},
	{param: op.Param{Name: "lr", Kind: op.Word, Default: op.FloatValue(3e-4), Words: []string{"constant", "linear", "cosine", "wsd"}, Ctors: scheduleCtors,
		Doc: "learning rate: a number, or constant, linear, cosine or wsd(peak, warmup, ...)"}},
	{param: op.Param{Name: "clip", Kind: op.Float, Default: op.None(), Doc: "largest global gradient norm; none: not clipped"}},
	{param: op.Param{Name: "eval", Kind: op.Word, Default: op.None(), Words: []string{"every"}, Ctors: []op.Ctor{evalCtor}, Doc: "every(n, data, batches); none: no evaluation"}},
	{param: op.Param{Name: "save", Kind: op.Word, Default: op.None(), Words: []string{"every"}, Ctors: []op.Ctor{saveCtor}, Doc: "every(n, keep); none: at the end only"}},
	{param: op.Param{Name: "seed", Kind: op.Int, Default: op.IntValue(1337), Doc: "of init and data order"}},
	{param: op.Param{Name: "precision", Kind: op.Word, Default: op.WordValue("bf16"), Words: []string{"bf16", "f32"},
		Doc: "what the device computes in; the master weights, moments and sums are f32, and the CPU target computes in f32"}},
	{param: op.Param{Name: "documents", Kind: op.Word, Default: op.WordValue("rows"), Words: []string{"rows", "packed"},
		Doc: "of packed data that is kept apart: a row each, or several to a row, where attention and positions stay within each"}},
	{param: op.Param{Name: "lora", Kind: op.Word, Default: op.None(), Words: []string{"lora"}, Ctors: []op.Ctor{loraCtor},
		Doc: "lora(rank, alpha, targets): adapters of these linears learn, all else is frozen; stands alone on its line; none: everything learns"}},
}

var loraCtor = op.Ctor{Name: "lora", Params: []op.Param{
	{Name: "rank", Kind: op.Int, Doc: "of each adapter"},
	{Name: "alpha", Kind: op.Float, Doc: "what an adapter gives is multiplied by alpha / rank"},
	{Name: "targets", Kind: namesKind, Doc: "linears by name or pattern, or all: those of the blocks"},
}}

var adamwCtor = op.Ctor{Name: "adamw", Params: []op.Param{
	{Name: "beta1", Kind: op.Float, Default: op.FloatValue(0.9), Doc: "decay of the first moment"},
	{Name: "beta2", Kind: op.Float, Default: op.FloatValue(0.95), Doc: "decay of the second moment"},
	{Name: "eps", Kind: op.Float, Default: op.FloatValue(1e-8), Doc: "added to the root of the second moment"},
	{Name: "decay", Kind: op.Float, Default: op.FloatValue(0.1), Doc: "weight decay of matrices"},
}}

var (
	peakParam   = op.Param{Name: "peak", Kind: op.Float, Doc: "largest learning rate"}
	warmupParam = op.Param{Name: "warmup", Kind: op.Int, Default: op.IntValue(0), Doc: "steps of linear warm-up"}
	finalParam  = op.Param{Name: "final", Kind: op.Float, Default: op.FloatValue(0), Doc: "learning rate at the end"}
)

var scheduleCtors = []op.Ctor{
	{Name: "constant", Params: []op.Param{peakParam, warmupParam}},
	{Name: "linear", Params: []op.Param{peakParam, warmupParam, finalParam}},
	{Name: "cosine", Params: []op.Param{peakParam, warmupParam, finalParam}},
	{Name: "wsd", Params: []op.Param{peakParam, warmupParam, finalParam,
		{Name: "decay", Kind: op.Int, Doc: "steps of the final decay"}}},
}

var evalCtor = op.Ctor{Name: "every", Params: []op.Param{
	{Name: "n", Kind: op.Int, Doc: "steps between evaluations"},
	{Name: "data", Kind: textKind, Default: op.None(), Doc: "files to evaluate on; none: given by --eval-data"},
	{Name: "batches", Kind: op.Int, Default: op.None(), Doc: "batches of an evaluation; none: all of the data"},
}}

var saveCtor = op.Ctor{Name: "every", Params: []op.Param{
	{Name: "n", Kind: op.Int, Doc: "steps between checkpoints"},
	{Name: "keep", Kind: op.Int, Default: op.IntValue(3), Doc: "checkpoints to keep"},
}}

func findField(name string) *trainField {
	for i := range trainFields {
		if trainFields[i].param.Name == name {
			return &trainFields[i]
		}
	}
	return nil
}

func fieldNames() []string {
	var out []string
	for _, f := range trainFields {
		out = append(out, f.param.Name)
	}
	return out
}

// TrainField describes one field of the train block, for the reference and for `mtc new`.
type TrainField struct {
	Param op.Param
	Units []string
}

// TrainFields lists the fields in the order of the reference.
func TrainFields() []TrainField {
	var out []TrainField
	for _, f := range trainFields {
		out = append(out, TrainField{f.param, f.units})
	}
	return out
}

func unitList(units []string) string { return "`" + strings.Join(units, "` or `") + "`" }
