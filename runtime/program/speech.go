package program

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/megatrain/mtc/runtime/chat"
	"github.com/megatrain/mtc/runtime/data"
	"github.com/megatrain/mtc/runtime/data/packed"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/tokenizer"
)

// speech turns text into the tokens of a model and back: by the tokenizer in the run folder,
// as bytes, or as numbers of tokens where there is neither.
type speech struct {
	tok   *tokenizer.Folder // nil: numbers
	vocab int64
	model string
	note  string // why there is no tokenizer where one lies
	// turnEnd is the text that ends an answer, where no special token does; "": none.
	turnEnd string
}

// speechOf finds the tokenizer of a run; run is its folder.
func (p *Program) speechOf(run string) (*speech, error) {
	s := &speech{vocab: p.Plan.Vocab, model: p.Plan.Model}
	dir := filepath.Join(run, packed.TokenizerDir)
	if _, err := os.Stat(filepath.Join(dir, "tokenizer.json")); err == nil {
		tok, err := tokenizer.Open(dir)
		var f *fault.Error
		if errors.As(err, &f) && f.Code == "MT0670" {
			s.note = fmt.Sprintf("the run's tokenizer is not read here, so text is numbers of tokens (%v)", err)
			return s, nil
		}
		s.tok = tok
		return s, err
	}
	if s.vocab <= tokenizer.ByteVocab {
		s.tok = tokenizer.OpenBytes()
		// A run on packed chats of bytes has their template.
		if text, err := os.ReadFile(filepath.Join(dir, "chat_template.jinja")); err == nil {
			s.tok.Template, s.tok.TemplateFile = string(text), filepath.Join(dir, "chat_template.jinja")
		}
	}
	return s, nil
}

// prompt turns a prompt into tokens. A byte model starts behind a separator, as a file of its
// training data does; a tokenizer puts its own frame around.
func (s *speech) prompt(text string) ([]int32, error) {
	switch {
	case s.tok == nil:
		return s.numbers(text)
	case s.tok.IsBytes():
		return s.checked(append([]int32{data.Separator}, s.tok.Encode(text)...))
	}
	ids := s.tok.Encode(text)
	n := s.tok.Prefix(ids)
	framed := s.tok.Frame(ids)
	framed = framed[:n+len(ids)] // what ends a text does not stand before its continuation
	if len(framed) == 0 && s.tok.EOSID >= 0 {
		framed = []int32{s.tok.EOSID} // which stands before a document
	}
	if len(framed) == 0 {
		return nil, usagef("a prompt is needed").hint("write `--prompt TEXT`")
	}
	return s.checked(framed)
}

// checked refuses tokens that the model has no row for.
func (s *speech) checked(ids []int32) ([]int32, error) {
	for _, id := range ids {
		if int64(id) >= s.vocab {
			if s.tok.IsBytes() {
				return nil, usagef("byte %d of the prompt is outside the model's vocabulary of %d", id, s.vocab)
			}
			return nil, fault.New("MT0606", s.tok.Dir, "the tokenizer gives the id %d, and the model's vocabulary is %d", id, s.vocab).
				Help("it is the tokenizer of another model")
		}
	}
	return ids, nil
}

func (s *speech) numbers(text string) ([]int32, error) {
	var tokens []int32
	for _, word := range strings.Fields(text) {
		id, err := strconv.ParseInt(word, 10, 32)
		if err != nil || id < 0 || id >= s.vocab {
			return nil, usagef("`%s` is not a token id below %d", word, s.vocab).
				hint("%s does not read bytes, and its run has no tokenizer: give token ids, `--prompt \"464 2068 7586\"`", s.model)
		}
		tokens = append(tokens, int32(id))
	}
	if len(tokens) == 0 {
		return nil, usagef("a model that does not read bytes needs a prompt").hint("give token ids: `--prompt \"464 2068 7586\"`")
	}
	return tokens, nil
}

// chat writes one turn of the user, behind what the system says, with the model's template up
// to where the assistant begins.
func (s *speech) chat(system, user string) ([]int32, error) {
	if s.tok == nil || s.tok.Template == "" {
		return nil, usagef("the run has no chat template").
			hint("it comes with the weights (`--from DIR`) or the data (`mtc data pack`) of a chat model; `--prompt TEXT` continues a text")
	}
	t, err := chat.Compile(s.tok.TemplateFile, s.tok.Template, s.tok.BOS, s.tok.EOS)
	if err != nil {
		return nil, err
	}
	var c chat.Conversation
	if system != "" {
		c.Messages = append(c.Messages, chat.NewMessage("system", system))
	}
	c.Messages = append(c.Messages, chat.NewMessage("user", user))
	text, err := t.Render(c, true)
	if err != nil {
		return nil, err
	}
	if end := t.TurnEnd(); end != "" {
		if ids := s.tok.Encode(end); len(ids) == 0 || !s.tok.Special(ids[0]) {
			s.turnEnd = end
		}
	}
	return s.checked(s.tok.Encode(text))
}

// ends says whether a token ends what is generated. In a chat that is also a special token
// that the template writes where a turn ends.
func (s *speech) ends(id int32, inChat bool) bool {
	if s.tok == nil {
		return false
	}
	return slices.Contains(s.tok.Stop, id) || inChat && s.tok.Special(id) && strings.Contains(s.tok.Template, s.tok.Token(id))
}

// keepTokenizer puts the tokenizer of packed data into the run folder, unless the run has it
// from its weights: then both must be one.
func (s *session) keepTokenizer() error {
	if s.feed == nil || s.feed.Tokenizer == "" {
		return nil
	}
	to := filepath.Join(s.out, packed.TokenizerDir)
	own := filepath.Join(to, "tokenizer.json")
	if _, err := os.Stat(own); err == nil && s.feed.Hash != tokenizer.Bytes().Hash() {
		if err := sameTokenizer(own, s.feed.Hash, s.train.Data[0]); err != nil {
			return err
		}
	}
	err := os.MkdirAll(to, 0o777)
	for _, name := range tokenizer.Files {
		if err != nil {
			break
		}
		if _, have := os.Stat(filepath.Join(to, name)); have == nil {
			continue
		}
		var text []byte
		if text, err = os.ReadFile(filepath.Join(s.feed.Tokenizer, name)); errors.Is(err, os.ErrNotExist) {
			err = nil
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), text, 0o666)
		}
	}
	if err != nil {
		return fault.New("MT0623", to, "the tokenizer cannot be kept in the run folder").Wrap(err)
	}
	return nil
}

// sameTokenizer refuses data that another tokenizer made than the model's.
func sameTokenizer(path, hash, packedDir string) error {
	own, err := tokenizer.HashOf(path)
	if err != nil || own == hash {
		return err
	}
	return fault.New("MT0674", packedDir, "the data was packed with another tokenizer (%s) than the model's (%s, %s)", hash, own, path).
		Help("pack it again with the model's: `mtc data pack ... --tokenizer %s`", fault.Shell(filepath.Dir(path)))
}

// checkTokenizer holds the tokenizer of the data against that of the weights' folder, or of
// the run that is gone on with, before anything is written. Shards that were not packed do not
// say what made them.
func (s *session) checkTokenizer() error {
	for _, dir := range s.tokenizers() {
		if path := filepath.Join(dir, "tokenizer.json"); s.feed.Hash != "" && s.feed.Hash != "bytes" {
			if _, err := os.Stat(path); err == nil {
				return sameTokenizer(path, s.feed.Hash, s.train.Data[0])
			}
		}
	}
	return nil
}

// tokenizers are the folders where the model's tokenizer may lie.
func (s *session) tokenizers() []string {
	var dirs []string
	if s.settings.weights != "" {
		dirs = append(dirs, s.settings.weights)
	}
	if s.from != nil {
		dirs = append(dirs, filepath.Join(filepath.Dir(filepath.Clean(s.from.Path)), packed.TokenizerDir))
	}
	return dirs
}
