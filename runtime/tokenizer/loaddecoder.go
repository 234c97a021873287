package tokenizer

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/megatrain/mtc/runtime/jsontext"
)

// readDecoder works out the text of every token once: all that the steps do is done to one
// token at a time, but for what is left out at the beginning of a text.
func (t *Tokenizer) readDecoder(raw json.RawMessage) error {
	t.dec.text = make([][]byte, len(t.tokens))
	for i, s := range t.tokens {
		t.dec.text[i] = []byte(s)
		if a := t.add[i]; a.content != "" {
			t.dec.text[i] = []byte(a.content)
		}
	}
	kind, err := typeOf(raw)
	if err != nil {
		return err
	}
	if kind == "" {
		t.dec.between = " "
		return nil
	}
	fused := false
	return t.decodeStep(raw, kind, &fused)
}

func (t *Tokenizer) decodeStep(raw json.RawMessage, kind string, fused *bool) error {
	var s struct {
		Decoders    []json.RawMessage
		Pattern     target
		Content     string
		Start, Stop int
		Replacement string
		Scheme      string `json:"prepend_scheme"`
		PrefixSpace *bool  `json:"add_prefix_space"`
	}
	if err := jsontext.Part(raw, &s); err != nil {
		return err
	}
	each := func(f func(s string) string) {
		for i, b := range t.dec.text {
			t.dec.text[i] = []byte(f(string(b)))
		}
	}
	switch kind {
	case "Sequence":
		for _, r := range s.Decoders {
			kind, err := typeOf(r)
			if err == nil && kind == "" {
				err = errors.New("a step is null")
			}
			if err == nil {
				err = t.decodeStep(r, kind, fused)
			}
			if err != nil {
				return err
			}
		}
	case "ByteLevel":
		each(func(s string) string {
			if b, ok := spelled(s); ok {
				return string(b)
			}
			return s
		})
	case "Replace":
		c, _, err := s.Pattern.compile()
		if err != nil {
			return err
		}
		each(func(text string) string {
			return replace{what: c, with: s.Content}.apply(piece{s: text}, false).s
		})
	case "ByteFallback":
		each(func(s string) string {
			if len(s) == 6 && strings.HasPrefix(s, "<0x") && s[5] == '>' {
				if b, err := strconv.ParseUint(s[3:5], 16, 8); err == nil {
					return string([]byte{byte(b)})
				}
			}
			return s
		})
	case "Fuse":
		*fused = true
	case "Strip":
		if s.Content == "" || s.Start < 0 || s.Stop < 0 {
			return errors.New("a Strip without content, or of a negative number")
		}
		if *fused {
			if s.Stop > 0 {
				return errors.New("a Strip at the end of a text is not read")
			}
			t.dec.lead, t.dec.times = s.Content, s.Start
			return nil
		}
		each(func(text string) string {
			for range s.Start {
				text = strings.TrimPrefix(text, s.Content)
			}
			for range s.Stop {
				text = strings.TrimSuffix(text, s.Content)
			}
			return text
		})
	case "Metaspace":
		if s.Replacement == "" {
			return errors.New("a Metaspace without replacement")
		}
		each(func(text string) string { return strings.ReplaceAll(text, s.Replacement, " ") })
		if s.Scheme == "always" || s.Scheme == "first" || s.Scheme == "" && (s.PrefixSpace == nil || *s.PrefixSpace) {
			t.dec.lead, t.dec.times = " ", allOfFirst
		}
	default:
		return unread("type", kind)
	}
	return nil
}
