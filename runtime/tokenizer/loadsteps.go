package tokenizer

import (
	"encoding/json"
	"errors"
	"slices"

	"golang.org/x/text/unicode/norm"

	"github.com/megatrain/mtc/runtime/jsontext"
	"github.com/megatrain/mtc/runtime/tokenizer/pattern"
)

// target is what a Replace or Split looks for.
type target struct{ String, Regex *string }

func (p target) compile() (*pattern.Pattern, string, error) {
	switch {
	case p.String != nil && *p.String != "":
		return pattern.Literal(*p.String), *p.String, nil
	case p.Regex != nil:
		c, err := pattern.Compile(*p.Regex)
		return c, "", err
	}
	return nil, "", errors.New("there is no pattern")
}

func normalizers(raw json.RawMessage) ([]normalizer, error) {
	kind, err := typeOf(raw)
	if err != nil || kind == "" {
		return nil, err
	}
	var n struct {
		Normalizers []json.RawMessage
		Prepend     string
		Pattern     target
		Content     string
		Left        bool `json:"strip_left"`
		Right       bool `json:"strip_right"`
	}
	if err := jsontext.Part(raw, &n); err != nil {
		return nil, err
	}
	switch kind {
	case "Sequence":
		var out []normalizer
		for _, r := range n.Normalizers {
			l, err := normalizers(r)
			if err != nil {
				return nil, err
			}
			out = append(out, l...)
		}
		return out, nil
	case "NFC":
		return []normalizer{unicodeForm{norm.NFC}}, nil
	case "NFD":
		return []normalizer{unicodeForm{norm.NFD}}, nil
	case "NFKC":
		return []normalizer{unicodeForm{norm.NFKC}}, nil
	case "NFKD":
		return []normalizer{unicodeForm{norm.NFKD}}, nil
	case "Prepend":
		return []normalizer{prepend(n.Prepend)}, nil
	case "Lowercase":
		return []normalizer{lowercase{}}, nil
	case "Strip":
		return []normalizer{strip{n.Left, n.Right}}, nil
	case "StripAccents":
		return []normalizer{stripAccents{}}, nil
	case "Replace":
		c, text, err := n.Pattern.compile()
		if err != nil {
			return nil, err
		}
		return []normalizer{replace{what: c, with: n.Content, text: text}}, nil
	}
	return nil, unread("type", kind)
}

// splitters reads the steps; byteLevel says that the last of them turns bytes into characters.
func splitters(raw json.RawMessage) (out []splitter, byteLevel bool, err error) {
	kind, err := typeOf(raw)
	if err != nil || kind == "" {
		return nil, false, err
	}
	s := struct {
		Steps       []json.RawMessage `json:"pretokenizers"`
		PrefixSpace bool              `json:"add_prefix_space"`
		UseRegex    *bool             `json:"use_regex"`
		Pattern     target
		Behavior    string
		Invert      bool
		Replacement string
		Scheme      string `json:"prepend_scheme"`
		Split       *bool
		Individual  bool   `json:"individual_digits"`
		Delimiter   string `json:"delimiter"`
	}{}
	if err := jsontext.Part(raw, &s); err != nil {
		return nil, false, err
	}
	at := func(text, how string, invert bool) ([]splitter, bool, error) {
		c, err := pattern.Compile(text)
		return []splitter{byPattern{what: c, how: how, invert: invert}}, false, err
	}
	switch kind {
	case "Sequence":
		for _, r := range s.Steps {
			if byteLevel {
				return nil, false, errors.New("a step behind ByteLevel is not read")
			}
			var l []splitter
			if l, byteLevel, err = splitters(r); err != nil {
				return nil, false, err
			}
			out = append(out, l...)
		}
		return out, byteLevel, nil
	case "ByteLevel":
		if s.PrefixSpace {
			out = append(out, spaced{})
		}
		if s.UseRegex == nil || *s.UseRegex {
			out = append(out, byPattern{what: pattern.MustCompile(gpt2Words), how: "Isolated"})
		}
		return out, true, nil
	case "Split":
		c, _, err := s.Pattern.compile()
		if err != nil {
			return nil, false, err
		}
		if !slices.Contains(behaviours, s.Behavior) {
			return nil, false, unread("behavior", s.Behavior)
		}
		return []splitter{byPattern{what: c, how: s.Behavior, invert: s.Invert}}, false, nil
	case "Metaspace":
		m := metaspace{mark: s.Replacement, scheme: s.Scheme, cut: s.Split == nil || *s.Split}
		if m.scheme == "" {
			m.scheme = "never"
			if s.PrefixSpace {
				m.scheme = "always"
			}
		}
		if m.mark == "" || !slices.Contains([]string{"always", "first", "never"}, m.scheme) {
			return nil, false, unread("prepend_scheme", m.scheme)
		}
		m.what = pattern.Literal(m.mark)
		return []splitter{m}, false, nil
	case "Digits":
		if s.Individual {
			return at(`\p{N}`, "Isolated", false)
		}
		return at(`\p{N}`, "Contiguous", false)
	case "Whitespace":
		return at("[\\w\u200c\u200d]+|[^\\w\u200c\u200d\\s]+", "Removed", true) // what pattern.IsWord takes
	case "WhitespaceSplit":
		return at(`\s`, "Removed", false)
	case "Punctuation":
		if s.Behavior == "" {
			s.Behavior = "Isolated"
		}
		if !slices.Contains(behaviours, s.Behavior) {
			return nil, false, unread("behavior", s.Behavior)
		}
		return at("[\\p{P}!-/:-@\\[-`{-~]", s.Behavior, false)
	case "CharDelimiterSplit":
		if s.Delimiter == "" {
			return nil, false, errors.New("there is no delimiter")
		}
		return []splitter{byPattern{what: pattern.Literal(s.Delimiter), how: "Removed"}}, false, nil
	}
	return nil, false, unread("type", kind)
}
