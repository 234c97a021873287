package program

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/hf"
	"github.com/megatrain/mtc/runtime/telemetry"
)

// foreignWeights is the Hugging Face folder that a run's weights come from.
type foreignWeights struct {
	folder   *hf.Folder
	matching *hf.Matching
	notes    []string
}

func (p *Program) openForeign(dir string) (*foreignWeights, error) {
	folder, err := hf.Open(dir)
	if err != nil {
		return nil, err
	}
	w := &foreignWeights{folder: folder}
	if err := w.compare(p); err != nil {
		folder.Close()
		return nil, err
	}
	return w, nil
}

func (w *foreignWeights) compare(p *Program) (err error) {
	if w.matching, err = w.folder.Match(hf.Entries(p.Plan), hf.ShapesOf(p.Plan)); err != nil {
		return err
	}
	d, err := w.folder.Describe()
	switch {
	case p.Plan.Family.Name == "":
		if n := len(p.Plan.Routers); n > 0 && w.folder.RouterStates() == "" {
			w.notes = append(w.notes, fmt.Sprintf("there is no %s, so cutoffs and biases of routers begin anew", checkpoint.RouterFile))
		} else if n > 0 {
			if err := w.folder.RouterKinds(p.Plan); err != nil {
				return err
			}
		}
		w.notes = append(w.notes, fmt.Sprintf("%s is no model of a known family, so its weights are taken by name, and what config.json says is not compared", p.Plan.Model))
		return nil
	case err != nil:
		return err
	}
	w.notes = d.Notes
	if diff := hf.Differences(d, p.Plan.Family); len(diff) > 0 {
		return fault.New("MT0663", w.folder.Path, "config.json is not of this program's %s: %s", p.Plan.Model, strings.Join(diff, ", ")).
			Help("`mtc import %s` writes the model that it describes; to train another one from these weights, change a copy of config.json", fault.Shell(w.folder.Path))
	}
	return nil
}

// close closes the files; nil has none.
func (w *foreignWeights) close() {
	if w != nil {
		w.folder.Close()
	}
}

// load fills the engine's weights, a slab at a time.
func (w *foreignWeights) load(state *slabs) error {
	if err := w.matching.Load(state.e.Plan(), state.view, state.flush); err != nil {
		return err
	}
	if path := w.folder.RouterStates(); path != "" {
		if err := checkpoint.LoadRouters(path, state.e.Plan(), state.view); err != nil {
			return err
		}
	}
	return state.end()
}

// keepWeights puts what an export needs into the run folder: from the folder of --from, or
// from the run that is gone on with in another folder. A run that begins by itself has nothing
// of one that began here before and came to no checkpoint.
func (s *session) keepWeights() error {
	if s.foreign != nil {
		return s.foreign.matching.Keep(s.out)
	}
	if s.from == nil {
		return hf.Forget(s.out)
	}
	before := filepath.Dir(filepath.Clean(s.from.Path))
	a, err := os.Stat(before)
	b, err2 := os.Stat(s.out)
	if err != nil || err2 == nil && os.SameFile(a, b) {
		return nil
	}
	return hf.KeepAgain(before, s.out)
}

// adopt is a run of no steps: the weights of --from become a run with its first checkpoint,
// to generate from or to export again.
func (s *session) adopt(out, errw io.Writer) error {
	if err := s.openFolder(); err != nil {
		return err
	}
	defer func() { s.folder.Unlock() }()
	s.say(errw)
	var err error
	if s.engine, err = s.prog.open(s.threads, false); err != nil {
		return err
	}
	defer s.engine.Device().Close()
	if err := s.start(); err != nil {
		return err
	}
	s.sayOdd(errw)
	if err := s.save(s.engine.State()); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s has the weights of %s\n\nnext:\n", filepath.Clean(s.saved), s.foreign.folder.Path)
	program := fault.Shell(programIn(s.out))
	fmt.Fprintf(out, "  %s generate --prompt \"TEXT\"\n", program)
	fmt.Fprintf(out, "  %s --resume --out %s --steps N --data PATH\n", program, fault.Shell(s.out))
	return nil
}

// sayOdd prints that weights are not finite, which no step makes good.
func (s *session) sayOdd(errw io.Writer) {
	if s.foreign == nil || s.foreign.matching.Odd.Values == 0 {
		return
	}
	o := s.foreign.matching.Odd
	fmt.Fprintf(errw, "note: %s of the weights are not finite numbers, the first of them in %s: a step that they have a part in is skipped\n",
		telemetry.Group(o.Values), o.Tensor)
}

// say prints what is to be known of the weights.
func (s *session) say(errw io.Writer) {
	if s.foreign == nil {
		return
	}
	for _, n := range s.foreign.notes {
		fmt.Fprintf(errw, "note: %s\n", n)
	}
}
