package program

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/data"
	"github.com/megatrain/mtc/runtime/data/pack"
	"github.com/megatrain/mtc/runtime/data/packed"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/tokenizer"
)

// Where a run keeps what it has packed itself.
const (
	dataFolder = "data"
	evalFolder = "eval-data"
)

// packing is how text and conversations become tokens.
type packing struct {
	pack.Choice
	given string // a flag of it that was given, "": none
}

// packedAs is in a run's record what it packed itself.
type packedAs struct {
	pack.Choice
	Data bool `json:"data"`
	Eval bool `json:"eval"`
}

func (s *session) packedAs() *packedAs {
	if s.packed == "" && s.held == "" {
		return nil
	}
	return &packedAs{s.packing.Choice, s.packed != "", s.held != ""}
}

func (k *packing) bind(fs *flagSet) {
	for name, to := range k.flags() {
		fs.bind(name, to)
	}
}

func (k *packing) flags() map[string]any {
	return map[string]any{"loss": &k.Loss, "overlong": &k.Overlong, "format": &k.Format, "key": &k.Key, "template": &k.Template, "strict": &k.Strict}
}

// check refuses words that are none of a flag's.
func (k *packing) check(fs *flagSet) error {
	for _, f := range fs.list {
		if _, ours := k.flags()[f.Name]; ours && fs.given(f.Name) {
			k.given = f.Name
		}
	}
	if err := k.Check(); err != nil {
		return usagef("%v", err)
	}
	return nil
}

// unused refuses flags that would have no effect.
func (k *packing) unused(why string) error {
	if k.given == "" {
		return nil
	}
	return usagef("`--%s` says how text becomes tokens, and %s", k.given, why).hint("leave it out; `mtc data pack` takes it too")
}

// packText packs text and conversations for a model that has a tokenizer into the run folder,
// unless that has them already. A resumed run goes on with the data it had, unless it is given
// other.
func (s *session) packText(errw io.Writer) error {
	s.withoutAbsent(errw)
	text, err := s.isText(dataFolder, s.train.Data)
	if err != nil {
		return err
	}
	evalText := false
	if s.train.Holdout == 0 && s.prog.canEvaluate() {
		if evalText, err = s.isText(evalFolder, s.train.EvalData); err != nil {
			return data.OfEvaluation(err, s.train)
		}
	}
	if !text && !evalText {
		return s.packing.unused("the data is not text for a model with a tokenizer")
	}
	tok, err := s.ownTokenizer()
	if err != nil {
		return err
	}
	if tok == nil {
		return s.packing.unused("the model has no tokenizer, which `--from` would bring")
	}
	if err := s.mayUse(); err != nil {
		return err
	}
	folder, err := checkpoint.Lock(s.out)
	if err != nil {
		return err
	}
	defer folder.Unlock()
	if text {
		if s.packed, err = s.packInto(dataFolder, s.train.Data, tok, errw); err != nil {
			return err
		}
	}
	if evalText {
		s.held, err = s.packInto(evalFolder, s.train.EvalData, tok, errw)
	}
	return err
}

// withoutAbsent leaves out evaluation data that only the train block names, and that is not
// there, where a model is trained on with --from and --data replaces the training data beside
// which it would lie.
func (s *session) withoutAbsent(errw io.Writer) {
	t := &s.train
	if s.settings.weights == "" || !s.dataGiven || s.evalGiven || len(t.EvalData) == 0 {
		return
	}
	_, _, err := data.List(t.EvalData)
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != "MT0601" {
		return // there, or of another kind: told where it is opened
	}
	if !s.checking {
		fmt.Fprintf(errw, "note: the evaluation data of the train block, %s, is not there; a part of `--data` is held out instead\n", strings.Join(t.EvalData, ", "))
	}
	t.EvalData = nil
}

// isText says whether paths are files of text for a model of more than bytes: such that neither
// mtc data pack nor another program has made into tokens.
func (s *session) isText(name string, paths []string) (bool, error) {
	if s.plan.Vocab <= tokenizer.ByteVocab || len(paths) == 0 || slices.ContainsFunc(paths, packed.Is) {
		return false, nil
	}
	if s.keptData(name) != "" {
		return true, nil // the files may be gone by now
	}
	c, err := data.Open(paths, data.Options{Width: s.train.Width})
	if err != nil {
		return false, err
	}
	defer c.Close()
	return c.Bytes(), nil
}

// keptData is the folder with the packed data that a resumed run had, "" where it had none or is
// given other data than it had.
func (s *session) keptData(name string) string {
	if s.from == nil || s.before == nil || s.had == nil {
		return ""
	}
	given, had, now, then := s.dataGiven, s.had.Data, s.train.Data, s.before.Data
	if name == evalFolder {
		given, had, now, then = s.evalGiven, s.had.Eval, s.train.EvalData, s.before.EvalData
	}
	dir := filepath.Join(filepath.Dir(filepath.Clean(s.from.Path)), name)
	if given || !had || !slices.Equal(absolute(now), then) || !packed.Is(dir) {
		return ""
	}
	return dir
}

// packedPaths are the settings with the folders that text was packed into.
func (s *session) packedPaths(t plan.Train) plan.Train {
	if s.packed != "" {
		t.Data = []string{s.packed}
	}
	if s.held != "" {
		t.EvalData = []string{s.held}
	}
	return t
}

// ownTokenizer opens the tokenizer of the weights, or of the run that is gone on with. Weights
// without one are an error; a model of one's own has none, and its data is read as bytes.
func (s *session) ownTokenizer() (*tokenizer.Folder, error) {
	for _, dir := range s.tokenizers() {
		if _, err := os.Stat(filepath.Join(dir, "tokenizer.json")); err == nil {
			return tokenizer.Open(dir)
		}
	}
	if s.settings.weights == "" {
		return nil, nil
	}
	return nil, fault.New("MT0676", strings.Join(s.train.Data, ", "), "the data is text, and %s has no tokenizer.json to make tokens of it", s.settings.weights).
		Help("an older tokenizer is written as one by `AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)`; `mtc data pack --tokenizer T` takes another one")
}

// packInto packs paths into a folder of the run.
func (s *session) packInto(name string, paths []string, tok *tokenizer.Folder, errw io.Writer) (string, error) {
	files, err := pack.FilesOf(tok)
	if err != nil {
		return "", err
	}
	out := filepath.Join(s.out, name)
	o := s.packing.Options(paths, out, s.plan.Seq)
	o.Name, o.Progress = tok.Dir, pack.Meter(errw)
	if err := o.Speak(tok, files, s.packing.Template); err != nil {
		return "", err
	}
	if kept := s.keptData(name); kept != "" {
		s.asItWas(kept, o, errw)
		return kept, nil
	}
	began := time.Now()
	r, err := pack.Kept(o)
	if err != nil {
		return "", err
	}
	if r == nil {
		fmt.Fprintf(errw, "%s has these tokens already\n", out)
	} else {
		r.Print(errw, out, time.Since(began))
	}
	return out, nil
}

// asItWas says where a resumed run goes on with data that is no longer what lies there.
func (s *session) asItWas(kept string, o pack.Options, errw io.Writer) {
	m, err := packed.ReadManifest(kept)
	if err != nil {
		return // told where it is opened
	}
	if key, err := pack.Key(o); err != nil || key != m.Source.Key {
		fmt.Fprintf(errw, "note: %s, or how it is packed, is not what this run began with; it goes on with %s. `--data` takes what is there now\n",
			strings.Join(o.In, ", "), kept)
	}
}

// inTokens refuses data that is read as bytes, or that another tokenizer made, for a run that has
// a tokenizer.
func (p *Program) inTokens(feed *data.Feed, run, path string) error {
	own := filepath.Join(run, packed.TokenizerDir, "tokenizer.json")
	if _, err := os.Stat(own); err != nil || p.Plan.Vocab <= tokenizer.ByteVocab {
		return nil
	}
	switch {
	case feed.Bytes:
		return fault.New("MT0676", path, "the data is text, and %s reads the tokens of its tokenizer", p.Plan.Model).
			Help("`mtc data pack %s -o DIR --tokenizer %s` makes them; then give `--data DIR`", fault.Shell(path), fault.Shell(filepath.Dir(own)))
	case feed.Hash != "":
		return sameTokenizer(own, feed.Hash, path)
	}
	return nil
}
