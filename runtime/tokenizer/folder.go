package tokenizer

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/jsontext"
)

// Files are the files of a tokenizer, as far as they go along with data, runs and exports.
var Files = []string{"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
	"chat_template.jinja", "generation_config.json", "vocab.json", "merges.txt", "tokenizer.model"}

// Folder is a tokenizer with what lies beside its tokenizer.json.
type Folder struct {
	*Tokenizer
	Dir          string
	BOS, EOS     string  // texts of the tokens, "" when there is none
	EOSID        int32   // -1 when there is none
	Stop         []int32 // tokens that end what is generated, EOSID among them
	Template     string  // of chats, "" when there is none
	TemplateFile string
}

// OpenBytes is the tokenizer of bytes, whose documents a zero separates.
func OpenBytes() *Folder { return &Folder{Tokenizer: Bytes(), EOSID: 0, Stop: []int32{0}} }

// Open reads a tokenizer.json, or a folder with one.
func Open(path string) (*Folder, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fault.New("MT0602", path, "there is no tokenizer").Wrap(cause(err)).Help("name a folder with a tokenizer.json, or bytes, gpt2 or o200k")
	}
	f := &Folder{Dir: filepath.Dir(path)}
	if info.IsDir() {
		f.Dir = path
		path = filepath.Join(path, "tokenizer.json")
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			return nil, fault.New("MT0670", f.Dir, "the folder has no tokenizer.json").
				Help("an older tokenizer is written as one by `AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)`")
		}
	}
	if f.Tokenizer, err = Load(path); err != nil {
		return nil, err
	}
	return f, f.beside()
}

// beside reads the other files.
func (f *Folder) beside() error {
	var config struct {
		BOS      json.RawMessage `json:"bos_token"`
		EOS      json.RawMessage `json:"eos_token"`
		Template json.RawMessage `json:"chat_template"`
		Added    map[string]also `json:"added_tokens_decoder"`
	}
	var special struct {
		BOS json.RawMessage `json:"bos_token"`
		EOS json.RawMessage `json:"eos_token"`
	}
	var generation struct {
		EOS json.RawMessage `json:"eos_token_id"`
	}
	for name, to := range map[string]any{"tokenizer_config.json": &config, "special_tokens_map.json": &special, "generation_config.json": &generation} {
		if err := readJSON(filepath.Join(f.Dir, name), to); err != nil {
			return err
		}
	}
	f.BOS, f.EOS = tokenText(config.BOS, special.BOS), tokenText(config.EOS, special.EOS)
	if f.EOSID = f.ID(f.EOS); f.EOS != "" && f.EOSID < 0 {
		return fault.New("MT0670", filepath.Join(f.Dir, "tokenizer_config.json"), "the eos_token %q is not in the vocabulary", f.EOS).
			Help("tokenizer.json and tokenizer_config.json are of two models")
	}
	if err := f.agrees(config.Added); err != nil {
		return err
	}
	var many []int32
	var one int32
	switch {
	case len(generation.EOS) == 0:
	case json.Unmarshal(generation.EOS, &many) == nil:
	case json.Unmarshal(generation.EOS, &one) == nil:
		many = []int32{one}
	}
	for _, id := range append(many, f.EOSID) {
		if id >= 0 && !slices.Contains(f.Stop, id) {
			f.Stop = append(f.Stop, id)
		}
	}
	return f.findTemplate(config.Template)
}

// also is an added token as tokenizer_config.json has it.
type also struct {
	Content         string
	LStrip, RStrip  bool
	SingleWord      bool `json:"single_word"`
	Normalized      *bool
	Special, anyhow bool
}

// agrees refuses added tokens of tokenizer_config.json, BOS and EOS among them, that tokenizer.json has
// not or in another way: transformers takes what stands there, so that its ids are others.
func (f *Folder) agrees(list map[string]also) error {
	tokens := []also{{Content: f.BOS, anyhow: true}, {Content: f.EOS, anyhow: true}}
	for _, id := range slices.Sorted(maps.Keys(list)) {
		tokens = append(tokens, list[id])
	}
	for _, x := range tokens {
		var a added
		if id := f.ID(x.Content); id >= 0 && int(id) < len(f.add) {
			a = f.add[id]
		}
		normal := x.Normalized == nil && !x.Special || x.Normalized != nil && *x.Normalized
		alike := a.left == x.LStrip && a.right == x.RStrip && a.word == x.SingleWord && (a.normal == normal || len(f.norm) == 0)
		if x.Content != "" && (a.content == "" || !alike && !x.anyhow) {
			return fault.New("MT0670", filepath.Join(f.Dir, "tokenizer_config.json"), "the added token %q is not in tokenizer.json, or is found in another way there", x.Content).
				Help("`AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)` writes a tokenizer.json of both")
		}
	}
	return nil
}

// findTemplate takes the template's own file before the one in the configuration.
func (f *Folder) findTemplate(raw json.RawMessage) error {
	own := filepath.Join(f.Dir, "chat_template.jinja")
	text, err := ReadFile(own)
	switch {
	case err == nil:
		f.Template, f.TemplateFile = string(text), own
		return nil
	case !errors.Is(err, os.ErrNotExist):
		return fault.New("MT0602", own, "cannot be read").Wrap(cause(err))
	}
	var named []struct{ Name, Template string }
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return nil
	case json.Unmarshal(raw, &f.Template) == nil:
	case json.Unmarshal(raw, &named) == nil:
		for _, n := range named {
			if n.Name == "default" {
				f.Template = n.Template
			}
		}
	default:
		return fault.New("MT0671", filepath.Join(f.Dir, "tokenizer_config.json"), "chat_template is neither a text nor a list of named ones")
	}
	f.TemplateFile = filepath.Join(f.Dir, "tokenizer_config.json")
	return nil
}

// tokenText is the text of the first token that is given, as a text or an object.
func tokenText(list ...json.RawMessage) string {
	for _, raw := range list {
		var s string
		var o struct{ Content string }
		if len(raw) == 0 {
			continue
		}
		if json.Unmarshal(raw, &s) == nil && s != "" {
			return s
		}
		if json.Unmarshal(raw, &o) == nil && o.Content != "" {
			return o.Content
		}
	}
	return ""
}

// readJSON reads a file that need not be there.
func readJSON(path string, to any) error {
	text, err := ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fault.New("MT0602", path, "cannot be read").Wrap(cause(err))
	}
	if err := jsontext.Explain(text, json.Unmarshal(text, to)); err != nil {
		return fault.New("MT0670", path, "the file is not what it should be").Wrap(err).Help("fetch it again")
	}
	return nil
}
