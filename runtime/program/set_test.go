package program

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/plan"
)

func TestSet(t *testing.T) {
	p := &Program{Plan: &plan.Plan{Source: "nano.mt", Clip: true}}
	base := plan.Train{Steps: 10, LR: plan.Schedule{Kind: "cosine", Peak: 1, Warmup: 3}, EvalEvery: 5, EvalData: []string{"a"}, EvalSteps: 7, SaveEvery: 9, SaveKeep: 1}
	for _, c := range []struct {
		set  string
		want func(t *plan.Train)
	}{
		{"train.steps=500", func(t *plan.Train) { t.Steps = 500 }},
		{"train.steps = 1000 steps", func(t *plan.Train) { t.Steps = 1000 }},
		{"train.seed=9007199254740993", func(t *plan.Train) { t.Seed = 9007199254740993 }},
		{"train.seed=0", func(t *plan.Train) { t.Seed = 0 }},
		{"train.lr=1e-3", func(t *plan.Train) { t.LR = plan.Schedule{Kind: "constant", Peak: 1e-3} }},
		{"train.lr=cosine(2e-3)", func(t *plan.Train) { t.LR = plan.Schedule{Kind: "cosine", Peak: 2e-3} }},
		{"train.lr=cosine(peak = 2e-3, warmup=10,final = 1e-4)", func(t *plan.Train) { t.LR = plan.Schedule{Kind: "cosine", Peak: 2e-3, Warmup: 10, Final: 1e-4} }},
		{"train.lr=wsd(1, 2, decay = 4)", func(t *plan.Train) { t.LR = plan.Schedule{Kind: "wsd", Peak: 1, Warmup: 2, Decay: 4} }},
		{"train.clip=0.5", func(t *plan.Train) { t.Clip = 0.5 }},
		{"train.optimizer=adamw", func(t *plan.Train) { t.Optimizer = plan.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 0.1} }},
		{"train.optimizer=adamw(decay = 0, beta2 = 0.99)", func(t *plan.Train) { t.Optimizer = plan.AdamW{Beta1: 0.9, Beta2: 0.99, Eps: 1e-8} }},
		{`train.data="x (y), \"z\".bin"`, func(t *plan.Train) { t.Data = []string{`x (y), "z".bin`} }},
		{"train.width=2 bytes", func(t *plan.Train) { t.Width = 2 }},
		{"train.eval=none", func(t *plan.Train) { t.EvalEvery, t.EvalData, t.EvalSteps = 0, nil, 0 }},
		{"train.eval=every(3)", func(t *plan.Train) { t.EvalEvery, t.EvalSteps = 3, 0 }},
		{`train.eval=every(3, "b", batches = 2)`, func(t *plan.Train) { t.EvalEvery, t.EvalSteps, t.EvalData = 3, 2, []string{"b"} }},
		{`train.eval=every(3, data = none)`, func(t *plan.Train) { t.EvalEvery, t.EvalSteps, t.EvalData = 3, 0, nil }},
		{`train.eval=every(3, none, none)`, func(t *plan.Train) { t.EvalEvery, t.EvalSteps, t.EvalData = 3, 0, nil }},
		{`train.eval=every(3, "none")`, func(t *plan.Train) { t.EvalEvery, t.EvalSteps, t.EvalData = 3, 0, []string{"none"} }},
		{"train.data=none", func(t *plan.Train) { t.Data = nil }},
		{`train.data="none"`, func(t *plan.Train) { t.Data = []string{"none"} }},
		{"train.epochs=4", func(t *plan.Train) { t.Epochs = 4 }},
		{"train.epochs=none", func(t *plan.Train) { t.Epochs = 0 }},
		{"train.save=every(7)", func(t *plan.Train) { t.SaveEvery, t.SaveKeep = 7, 3 }},
		{"train.save=none", func(t *plan.Train) { t.SaveEvery = 0 }},
	} {
		got, want := base, base
		c.want(&want)
		if err := p.set(&got, c.set); err != nil {
			t.Errorf("%s: %v", c.set, err)
		} else if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v\nwant %+v", c.set, got, want)
		}
	}
}

func TestSetRefuses(t *testing.T) {
	p := &Program{Plan: &plan.Plan{Source: "nano.mt", Clip: true, Batch: 4, Seq: 8}}
	for _, c := range []struct{ set, want string }{
		{"D=128", "`mtc run nano.mt --set D=128` compiles again"},
		{"train.seq=64", "changes the schedule"},
		{"train.batch=8 rows", "changes the schedule"},
		{"train.clip=none", "changes the schedule"},
		{"train.stepz=3", "did you mean `steps`?"},
		{"train.steps", "has no value"},
		{"train.steps=", "has no value"},
		{"train.steps=0", "wanted a whole number of at least 1, not `0`"},
		{"train.steps=1.5", "wanted a whole number"},
		{"train.steps=-1", "at least 1"},
		{"train.steps=4 rows", "`rows` is not a unit"},
		{"train.lr=0", "wanted a number above 0"},
		{"train.lr=cosin(1)", "did you mean `cosine`?"},
		{"train.lr=cosine(peek = 1)", "did you mean `peak`?"},
		{"train.lr=cosine()", "`cosine` needs `peak`"},
		{"train.lr=cosine(1, peak = 2)", "`peak` is given twice"},
		{"train.lr=cosine(peak = 2, 1)", "follows a named one"},
		{"train.lr=cosine(1", "not closed"},
		{"train.lr=constant(1, 2, 3)", "takes 2 arguments"},
		{"train.lr=wsd(1)", "`wsd` needs `decay`"},
		{"train.lr=1e-3 * 2", "`mtc run` evaluates expressions"},
		{"train.lr=", "has no value"},
		{`train.data="x`, "not closed"},
		{"train.data=x", "wanted a path in quotes"},
		{"train.clip=-1", "above 0"},
		{"train.optimizer=adamw(beta1 = 1)", "below 1, in f32 too, not `1`"},
		{"train.lr=)", "is not a value"},
		{"train.lr=1e40", "in f32"},
		{"train.lr=1e-50", "in f32"},
		{"train.lr=1e-3 steps", "`steps` is not a unit"},
		{"train.steps=4 bytes", "`bytes` is not a unit"},
		{"train.steps=1_000", "is not a unit"},
		{"train.steps=9223372036854775807", "more than can be counted"},
		{"train.steps=9223372036854775808", "is not a value"},
		{"train.steps=4steps", "is not a value"},
		{"train.width=3", "1, 2 or 4"},
		{"train.optimizer=adamw(beta2 = 0.9999999999)", "in f32"},
		{"train.optimizer=adamw(eps = 1e-50)", "in f32"},
	} {
		got := plan.Train{}
		err := p.set(&got, c.set)
		var u *usageError
		if !errors.As(err, &u) {
			t.Errorf("%s: got %v", c.set, err)
			continue
		}
		if text := u.msg + " | " + strings.Join(u.help, " | "); !strings.Contains(text, c.want) {
			t.Errorf("%s: got %s\nwant %s", c.set, text, c.want)
		}
	}
}

// FuzzSet: no text makes the parser panic or hang.
func FuzzSet(f *testing.F) {
	for _, s := range []string{"train.lr=cosine(peak = 2e-3, warmup=10)", `train.data="a\n"`, "train.eval=every(3, none)", "train.lr=a(b(c(1,d=2)))"} {
		f.Add(s)
	}
	p := &Program{Plan: &plan.Plan{}}
	f.Fuzz(func(t *testing.T, s string) {
		var tr plan.Train
		_ = p.set(&tr, s)
	})
}
