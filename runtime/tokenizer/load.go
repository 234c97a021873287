package tokenizer

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/jsontext"
)

// file is a tokenizer.json.
type file struct {
	Truncation json.RawMessage `json:"truncation"`
	Added      []struct {
		ID         int32  `json:"id"`
		Content    string `json:"content"`
		SingleWord bool   `json:"single_word"`
		LStrip     bool   `json:"lstrip"`
		RStrip     bool   `json:"rstrip"`
		Normalized bool   `json:"normalized"`
		Special    bool   `json:"special"`
	} `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Decoder       json.RawMessage `json:"decoder"`
	Model         json.RawMessage `json:"model"`
}

// maxFile is the largest tokenizer.json that is read; the largest in use have 35 MB.
const maxFile = 256 << 20

// ReadFile reads one of a tokenizer's files: regular (to open a pipe waits for a writer), and no
// larger than maxFile. The error's text does not repeat the path.
func ReadFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, cause(err)
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	case info.Size() > maxFile:
		return nil, fmt.Errorf("%d bytes are too many for a tokenizer", info.Size())
	}
	text, err := os.ReadFile(path)
	return text, cause(err)
}

// Load reads a tokenizer.json.
func Load(path string) (*Tokenizer, error) {
	text, err := ReadFile(path)
	if err != nil {
		return nil, fault.New("MT0602", path, "cannot be read").Wrap(cause(err))
	}
	if f := fault.Unfetched("MT0670", path, string(text[:min(len(text), 32)])); f != nil {
		return nil, f
	}
	t, err := Parse(text)
	if err != nil {
		f := fault.New("MT0670", path, "the tokenizer cannot be used").Wrap(err)
		if !json.Valid(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))) {
			return nil, f.Help("the file is damaged or no tokenizer.json: fetch it again")
		}
		return nil, f.Help("byte-level BPE (GPT-2, Llama 3, Qwen) and BPE with byte fallback (Llama 2, Mistral) are read")
	}
	t.name = path
	return t, nil
}

// cause is an error without the path, which the fault names.
func cause(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// Parse reads the text of a tokenizer.json.
func Parse(text []byte) (*Tokenizer, error) {
	var f file
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, jsontext.Explain(text, err)
	}
	t := &Tokenizer{name: "tokenizer.json", hash: hashOf(text)}
	var err error
	if t.norm, err = normalizers(f.Normalizer); err != nil {
		return nil, fmt.Errorf("normalizer: %w", err)
	}
	t.most = int32(len(f.Added))
	var byteLevel bool
	if t.split, byteLevel, err = splitters(f.PreTokenizer); err != nil {
		return nil, fmt.Errorf("pre_tokenizer: %w", err)
	}
	if err = t.readModel(f.Model, byteLevel); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if err = t.readAdded(&f); err != nil {
		return nil, fmt.Errorf("added_tokens: %w", err)
	}
	if t.prefix, t.suffix, err = t.frame(f.PostProcessor); err != nil {
		return nil, fmt.Errorf("post_processor: %w", err)
	}
	if err = t.readDecoder(f.Decoder); err != nil {
		return nil, fmt.Errorf("decoder: %w", err)
	}
	return t, nil
}

// maxID bounds ids by the number of tokens, so that a wrong one does not take all memory.
func maxID(tokens int) int32 { return int32(min(1<<24, 1<<16+4*tokens)) }

// enter enters a token.
func (t *Tokenizer) enter(token string, id int32) error {
	if id < 0 || id >= t.most {
		return fmt.Errorf("the token %q has the id %d, which cannot be among so few tokens", token, id)
	}
	for int(id) >= len(t.tokens) {
		t.tokens = append(t.tokens, "")
	}
	if old := t.tokens[id]; old != "" && old != token {
		return fmt.Errorf("the tokens %q and %q have one id, %d", old, token, id)
	}
	t.tokens[id] = token
	t.ids[token] = id
	return nil
}

func (t *Tokenizer) readAdded(f *file) error {
	var raw, normal []added
	t.add = make([]added, len(t.tokens))
	for _, a := range f.Added {
		if a.Content == "" {
			continue
		}
		if old, ok := t.ids[a.Content]; ok && old != a.ID {
			return fmt.Errorf("the token %q has the id %d in the vocabulary and %d here", a.Content, old, a.ID)
		}
		if err := t.enter(a.Content, a.ID); err != nil {
			return err
		}
		for len(t.add) < len(t.tokens) {
			t.add = append(t.add, added{})
		}
		x := added{id: a.ID, content: a.Content, special: a.Special, word: a.SingleWord, left: a.LStrip, right: a.RStrip, normal: a.Normalized}
		t.add[a.ID] = x
		if !a.Normalized {
			raw = append(raw, x)
			continue
		}
		p := piece{s: x.content}
		for _, n := range t.norm {
			p = n.apply(p, false)
		}
		if x.content = p.s; x.content == "" {
			return fmt.Errorf("the token %q is nothing in normalized text", a.Content)
		}
		normal = append(normal, x)
		t.add[a.ID].content = p.s // which is also what it decodes to
	}
	t.raw, t.normal = newMatcher(raw), newMatcher(normal)
	return nil
}

// frame reads what is put around a text.
func (t *Tokenizer) frame(raw json.RawMessage) (prefix, suffix []int32, err error) {
	kind, err := typeOf(raw)
	if err != nil {
		return nil, nil, err
	}
	switch kind {
	case "", "ByteLevel": // the latter changes offsets alone
		return nil, nil, nil
	case "Sequence":
		var s struct{ Processors []json.RawMessage }
		if err := jsontext.Part(raw, &s); err != nil {
			return nil, nil, err
		}
		for _, p := range s.Processors {
			a, b, err := t.frame(p)
			if err != nil {
				return nil, nil, err
			}
			prefix, suffix = append(a, prefix...), append(suffix, b...)
		}
		return prefix, suffix, nil
	case "TemplateProcessing":
		return t.template(raw)
	case "BertProcessing", "RobertaProcessing":
		var s struct{ Sep, CLS []any }
		if err := jsontext.Part(raw, &s); err != nil {
			return nil, nil, err
		}
		for _, x := range []struct {
			of []any
			to *[]int32
		}{{s.CLS, &prefix}, {s.Sep, &suffix}} {
			if len(x.of) != 2 {
				return nil, nil, errors.New("sep and cls are pairs of a token and its id")
			}
			id, _ := x.of[1].(float64)
			if err := t.known(int32(id)); err != nil {
				return nil, nil, err
			}
			*x.to = []int32{int32(id)}
		}
		return prefix, suffix, nil
	}
	return nil, nil, unread("type", kind)
}

// template reads the frame of one text, `single`.
func (t *Tokenizer) template(raw json.RawMessage) (prefix, suffix []int32, err error) {
	var s struct {
		Single []struct {
			SpecialToken *struct{ ID string }
			Sequence     *struct{ ID string }
		} `json:"single"`
		Special map[string]struct{ IDs []int32 } `json:"special_tokens"`
	}
	if err := jsontext.Part(raw, &s); err != nil {
		return nil, nil, err
	}
	seen := false
	for _, part := range s.Single {
		switch {
		case part.Sequence != nil:
			if seen {
				return nil, nil, errors.New("the text stands twice in `single`")
			}
			seen = true
		case part.SpecialToken != nil:
			token, ok := s.Special[part.SpecialToken.ID]
			if !ok {
				return nil, nil, fmt.Errorf("the special token %q is not declared", part.SpecialToken.ID)
			}
			for _, id := range token.IDs {
				if err := t.known(id); err != nil {
					return nil, nil, err
				}
			}
			if seen {
				suffix = append(suffix, token.IDs...)
			} else {
				prefix = append(prefix, token.IDs...)
			}
		}
	}
	if !seen {
		return nil, nil, errors.New("the text does not stand in `single`")
	}
	return prefix, suffix, nil
}

func (t *Tokenizer) known(id int32) error {
	if t.Token(id) == "" {
		return fmt.Errorf("the id %d is no token", id)
	}
	return nil
}

// typeOf is the type of a part, "" when it is null or absent.
func typeOf(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	var head struct{ Type string }
	if err := jsontext.Part(raw, &head); err != nil {
		return "", err
	}
	if head.Type == "" {
		return "", errors.New("it has no type")
	}
	return head.Type, nil
}

// unread is something that is not known here, so that the ids could not be right.
func unread(what, kind string) error { return fmt.Errorf("the %s %q is not read", what, kind) }

// HashOf is the hash of the tokenizer in a file, without loading it.
func HashOf(path string) (string, error) {
	text, err := ReadFile(path)
	if err != nil {
		return "", fault.New("MT0602", path, "cannot be read").Wrap(cause(err))
	}
	return hashOf(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))), nil
}

func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
