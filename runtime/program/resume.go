package program

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/gemm"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/vec"
)

// recall finds the checkpoint to resume and the settings that its run had, and merges them with
// those of this program, whose compiled settings are given.
func (s *settings) recall(which string, compiled *plan.Train) (err error) {
	if s.from, err = checkpoint.Resolve(s.out, which); err != nil {
		return err
	}
	r, err := readRun(filepath.Dir(s.from.Path))
	if err != nil || r == nil {
		return err
	}
	if r.Model != s.from.State.Model {
		return fault.New("MT0621", filepath.Join(filepath.Dir(s.from.Path), runFile), "the record is of a run of %s, and the checkpoint beside it of %s", r.Model, s.from.State.Model).
			Help("without the file, `--resume` goes on with the settings of the .mt")
	}
	s.before, s.had = &r.Train, r.Packing
	if s.had != nil {
		s.packing.Choice = s.packing.Over(&s.had.Choice)
	}
	if r.Compiled == nil {
		s.train = r.Train
	} else {
		s.train = merge(r.Train, *r.Compiled, *compiled, s.train)
	}
	return nil
}

// merge gives a resumed run its settings: those that the run had, but where the .mt has been
// edited since (or the program is another) those of the .mt. had are the run's settings, then
// and now those that were compiled into its program and into this one, and fresh those of now
// with its paths in place.
func merge(had, then, now, fresh plan.Train) plan.Train {
	out := had
	o, f := reflect.ValueOf(&out).Elem(), reflect.ValueOf(&fresh).Elem()
	a, b := reflect.ValueOf(&then).Elem(), reflect.ValueOf(&now).Elem()
	for i := range o.NumField() {
		if !equal(a.Field(i), b.Field(i)) {
			o.Field(i).Set(f.Field(i))
		}
	}
	if then.Steps != now.Steps {
		out.Epochs = fresh.Epochs // as these do
	}
	if !slices.Equal(then.EvalData, now.EvalData) {
		out.Holdout = fresh.Holdout // the two exclude each other
	}
	return out
}

// equal compares two fields; an empty list is no list.
func equal(a, b reflect.Value) bool {
	if a.Kind() == reflect.Slice && a.Len() == 0 && b.Len() == 0 {
		return true
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// mayResume refuses to go on from a checkpoint of another model, in a folder with later
// checkpoints, or with nothing left to do.
func (s *session) mayResume() error {
	c := s.from
	if err := c.Match(s.plan); err != nil {
		return err
	}
	if !c.Whole() {
		return fault.New("MT0620", c.Path, "the checkpoint has weights alone, and going on takes the optimizer's state too").
			Help("`--resume` goes on from the newest whole one of the run")
	}
	if err := checkpoint.Newest(s.out, c.State.Step); err != nil {
		return err
	}
	if s.train.Epochs > 0 && s.feed == nil {
		return nil // the data says how many steps there are
	}
	if c.State.Step >= s.train.Steps {
		return fault.New("MT0620", c.Path, "the run has done %d steps of %d", c.State.Step, s.train.Steps).
			Help("give more with `--%s N`", lengthFlag(&s.train))
	}
	return nil
}

// changes says what makes a resumed run another one than the run it goes on with: the same
// steps would not have given the same weights.
func (s *session) changes() []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	st, t := &s.from.State, &s.train
	if st.Seed != t.Seed {
		add("seed %d instead of %d", t.Seed, st.Seed)
	}
	if st.Batch != s.plan.Batch {
		add("batch of %d rows instead of %d", s.plan.Batch, st.Batch)
	}
	if sums := s.plan.Sums(); st.Sums != "" && st.Sums != sums {
		add("%s instead of %s: sums in another order have other last bits", sums, st.Sums)
	}
	if v := vectors(); st.Vectors != "" && st.Vectors != v {
		add("instructions %s instead of %s: the processor's sums have other last bits", v, st.Vectors)
	}
	if st.Data != s.dataID() && st.Data != "" {
		what := "files were added, removed or changed"
		if s.before != nil && !slices.Equal(absolute(t.Data), s.before.Data) {
			what = fmt.Sprintf("%s instead of %s", strings.Join(t.Data, ", "), strings.Join(s.before.Data, ", "))
		} else if s.before != nil && t.Holdout != s.before.Holdout {
			what = fmt.Sprintf("a share of %g is held out instead of %g", t.Holdout, s.before.Holdout)
		}
		add("data: %s", what)
	}
	b := s.before
	if b == nil {
		return out
	}
	if t.Optimizer != b.Optimizer {
		add("optimizer %s instead of %s", optimizerText(t.Optimizer), optimizerText(b.Optimizer))
	}
	if (t.Epochs > 0) != (b.Epochs > 0) {
		add("length by %s instead of %s: the rows come in another order", lengthFlag(t), lengthFlag(b))
	}
	if t.LR != b.LR {
		add("lr %s instead of %s", scheduleText(t.LR), scheduleText(b.LR))
	} else if t.Steps != b.Steps && t.LR.Kind != "constant" {
		add("steps %d instead of %d, on which lr depends", t.Steps, b.Steps)
	}
	if t.Clip != b.Clip {
		add("clip %s instead of %s", clipText(t.Clip), clipText(b.Clip))
	}
	return out
}

// vectors names the instruction sets of this processor that vectors and products are computed with:
// each is deterministic, and they differ in last bits.
func vectors() string { return vec.Active().String() + ", " + gemm.Name() + " for products" }

// lengthFlag is the flag that says how long a run is.
func lengthFlag(t *plan.Train) string {
	if t.Epochs > 0 {
		return "epochs"
	}
	return "steps"
}

// noteOf is a note about changes, "" without any.
func noteOf(changes []string) string {
	if len(changes) == 0 {
		return ""
	}
	return "note: the run goes on with other settings than it had:\n  " + strings.Join(changes, "\n  ") + "\n"
}

func optimizerText(o plan.AdamW) string {
	return fmt.Sprintf("adamw(beta1 = %g, beta2 = %g, eps = %g, decay = %g)", o.Beta1, o.Beta2, o.Eps, o.Decay)
}

func clipText(clip float64) string {
	if clip == 0 {
		return "none"
	}
	return fmt.Sprintf("%g", clip)
}
