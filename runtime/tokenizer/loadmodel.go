package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/megatrain/mtc/runtime/jsontext"
)

// byteChars is how byte-level vocabularies spell bytes: printable ones by themselves, the
// others by the characters from U+0100 on.
var byteChars, charBytes = func() (to [256]rune, from map[rune]byte) {
	from = map[rune]byte{}
	next := rune(256)
	for b := range 256 {
		r := rune(b)
		if !(b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae) {
			r = next
			next++
		}
		to[b] = r
		from[r] = byte(b)
	}
	return to, from
}()

// spelled gives the bytes of a byte-level token.
func spelled(token string) ([]byte, bool) {
	out := make([]byte, 0, len(token))
	for _, r := range token {
		b, ok := charBytes[r]
		if !ok {
			return nil, false
		}
		out = append(out, b)
	}
	return out, true
}

func (t *Tokenizer) readModel(raw json.RawMessage, byteLevel bool) error {
	var m struct {
		Type         string
		Vocab        json.RawMessage
		Merges       []json.RawMessage
		Dropout      *float64
		Unk          *string `json:"unk_token"`
		Prefix       *string `json:"continuing_subword_prefix"`
		Suffix       *string `json:"end_of_word_suffix"`
		Fuse         bool    `json:"fuse_unk"`
		ByteFallback bool    `json:"byte_fallback"`
		IgnoreMerges bool    `json:"ignore_merges"`
	}
	if len(raw) == 0 {
		return fmt.Errorf("there is none")
	}
	if err := jsontext.Part(raw, &m); err != nil {
		return err
	}
	switch {
	case m.Type != "BPE" && m.Type != "":
		return unread("type", m.Type)
	case m.Prefix != nil && *m.Prefix != "":
		return unread("continuing_subword_prefix", *m.Prefix)
	case m.Suffix != nil && *m.Suffix != "":
		return unread("end_of_word_suffix", *m.Suffix)
	case m.Dropout != nil && *m.Dropout != 0:
		return fmt.Errorf("a dropout of %v would give other ids each time", *m.Dropout)
	}
	var vocab map[string]int32
	if err := jsontext.Part(m.Vocab, &vocab); err != nil {
		return fmt.Errorf("vocab: %w", err)
	}
	if len(vocab) == 0 {
		return fmt.Errorf("the vocabulary is empty")
	}
	t.most = maxID(len(vocab) + int(t.most))
	t.ids = make(map[string]int32, len(vocab))
	for token, id := range vocab {
		if err := t.enter(token, id); err != nil {
			return err
		}
	}
	b := &bpe{byteLevel: byteLevel, chars: map[rune]int32{}, merges: make(map[uint64]merge, len(m.Merges)), unk: -1, fuse: m.Fuse}
	t.model = b
	b.letters(vocab)
	if m.Unk != nil {
		id, ok := vocab[*m.Unk]
		if !ok {
			return fmt.Errorf("the unk_token %q is not in the vocabulary", *m.Unk)
		}
		b.unk = id
	}
	b.fallback = m.ByteFallback
	for i := range b.bytes {
		id, ok := vocab[fmt.Sprintf("<0x%02X>", i)]
		b.bytes[i] = id
		b.fallback = b.fallback && ok
	}
	if m.IgnoreMerges {
		b.whole = map[string]int32{}
		for token, id := range vocab {
			if !byteLevel {
				b.whole[token] = id
			} else if s, ok := spelled(token); ok {
				b.whole[string(s)] = id
			}
		}
	}
	return b.readMerges(m.Merges, vocab)
}

// letters are the tokens of one byte or character.
func (b *bpe) letters(vocab map[string]int32) {
	for i := range b.first {
		b.first[i] = -1
		if b.byteLevel {
			if id, ok := vocab[string(byteChars[i])]; ok {
				b.first[i] = id
			}
		}
	}
	if b.byteLevel {
		return
	}
	for token, id := range vocab {
		r, n := utf8.DecodeRuneInString(token)
		switch {
		case n != len(token) || n == 0:
		case r < utf8.RuneSelf:
			b.first[r] = id
		default:
			b.chars[r] = id
		}
	}
}

// readMerges reads "a b" or ["a", "b"], the first of rank 0.
func (b *bpe) readMerges(list []json.RawMessage, vocab map[string]int32) error {
	for rank, raw := range list {
		var parts []string
		var one string
		if len(raw) > 0 && raw[0] == '[' {
			if err := jsontext.Part(raw, &parts); err != nil {
				return fmt.Errorf("merge %d: %w", rank, err)
			}
		} else if err := jsontext.Part(raw, &one); err != nil {
			return fmt.Errorf("merge %d: %w", rank, err)
		} else {
			parts = strings.Split(one, " ")
		}
		if len(parts) != 2 {
			return fmt.Errorf("merge %d is not of two tokens: %s", rank, raw)
		}
		var ids [3]int32
		for i, s := range []string{parts[0], parts[1], parts[0] + parts[1]} {
			id, ok := vocab[s]
			if !ok {
				return fmt.Errorf("merge %d, %s: the token %q is not in the vocabulary", rank, raw, s)
			}
			ids[i] = id
		}
		// Of a pair that stands twice the later rank holds.
		b.merges[pair(ids[0], ids[1])] = merge{int32(rank), ids[2]}
	}
	return nil
}
