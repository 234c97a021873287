package program

import (
	"errors"
	"os"

	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/engine"
	"github.com/megatrain/mtc/runtime/fault"
)

// A program that trains adapters has its other weights from a Hugging Face folder, each time it
// starts: a checkpoint holds the adapters, their moments, and where the folder is with its
// fingerprint. Going on, generating and exporting read the folder again, and refuse another.

// openFrozen opens the frozen weights that a checkpoint goes with, in the folder that it names or
// in the one given. They are compared when they are read.
func (p *Program) openFrozen(c *checkpoint.Checkpoint, given string) (*foreignWeights, error) {
	base := c.State.Base
	if base == nil {
		return nil, fault.New("MT0621", c.Path, "the checkpoint has adapters and does not say what they were trained on")
	}
	dir := base.Path
	if given != "" {
		dir = given
	}
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil, fault.New("MT0665", dir, "the frozen weights that the adapters of %s go with are not here", c.Path).
			Help("give the place where the folder is now with `--from DIR`")
	}
	return p.openForeign(dir)
}

// freeze fills the frozen weights from a folder and says which they are; with want, no others will
// do. The fingerprint is of what was read, so that the folder is read once.
func (w *foreignWeights) freeze(state *slabs, want *checkpoint.Base) (*checkpoint.Base, error) {
	is := &checkpoint.Base{Path: absolute([]string{w.folder.Path})[0]}
	err := w.load(state)
	if err == nil && want != nil {
		err = w.same(want)
	}
	if err == nil {
		is.Fingerprint, err = w.matching.Fingerprint()
	}
	return is, err
}

// same compares the folder with the one that adapters were trained on.
func (w *foreignWeights) same(want *checkpoint.Base) error {
	print, err := w.matching.Fingerprint()
	if err != nil || print == want.Fingerprint {
		return err
	}
	return fault.New("MT0665", w.folder.Path, "the adapters were trained on other weights than these: fingerprint %s there, %s here", want.Fingerprint, print).
		Help("the folder has changed, or is another one; `--from DIR` names a copy of what was in %s", want.Path)
}

// loadModel fills the weights of an engine that generates: those of a checkpoint, and what is frozen.
func (p *Program) loadModel(e *engine.Engine, c *checkpoint.Checkpoint, moments bool, given string) error {
	state := slabs{e: e, fresh: true}
	if err := first(c.LoadSlabs(p.Plan, state.view, moments), state.end()); err != nil || !p.Plan.LoRA.On() {
		return err
	}
	w, err := p.openFrozen(c, given)
	if err != nil {
		return err
	}
	defer w.close()
	_, err = w.freeze(&state, c.State.Base)
	return err
}

// checkGiven refuses `--from` where nothing is frozen.
func (p *Program) checkGiven(given string) error {
	if given != "" && !p.Plan.LoRA.On() {
		return usagef("`--from` is for runs that train adapters, and %s trains all of its weights", p.Plan.Model).
			hint("leave it out: the checkpoint has everything")
	}
	return nil
}

// openWeights opens the folder of --from and holds it against the model: the names and shapes
// of the weights, and what config.json says of the mathematics. Nothing is loaded yet.
func (s *session) openWeights() (err error) {
	switch {
	case s.plan.LoRA.On() && s.from != nil:
		if err := s.from.Match(s.plan); err != nil {
			return err
		}
		s.foreign, err = s.prog.openFrozen(s.from, s.settings.weights)
	case s.settings.weights != "":
		s.foreign, err = s.prog.openForeign(s.settings.weights)
	}
	return err
}

// checkFrom refuses --from where it cannot be, and wants it where the weights beneath adapters
// would otherwise be random for good.
func (p *Program) checkFrom(s *settings, given bool) error {
	switch {
	case given && s.weights == "":
		return usagef("`--from` is empty").hint("write the folder of a Hugging Face model")
	case p.Plan.LoRA.On() && !given && !s.resume:
		return usagef("%s trains adapters beside frozen weights, and nothing says where these come from", p.Plan.Model).
			hint("`--from DIR` takes them from a Hugging Face folder; without `lora(...)` in the train block everything learns")
	case s.weights != "" && s.resume && !p.Plan.LoRA.On():
		return usagef("`--from` and `--resume` exclude each other").hint("a resumed run has the weights of its checkpoint")
	}
	return nil
}
