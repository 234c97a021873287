package tokenizer

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// decoder says what text a token is.
type decoder struct {
	text    [][]byte // by id
	lead    string   // left out at the beginning of a text, up to times times
	times   int
	between string // put between tokens
}

// allOfFirst, as decoder.times, leaves lead out wherever it stands in the first token.
const allOfFirst = -1

// Decode gives the text of ids. Bytes that are no UTF-8 become U+FFFD; ids outside of the
// vocabulary have no text. Special tokens are left out when skip is set.
func (t *Tokenizer) Decode(ids []int32, skip bool) string {
	s := t.Stream(skip)
	var b strings.Builder
	for _, id := range ids {
		b.WriteString(s.Push(id))
	}
	b.WriteString(s.End())
	return b.String()
}

// Bytes gives the bytes of one token, as it stands within a text.
func (t *Tokenizer) Bytes(id int32) []byte {
	switch {
	case t.IsBytes() && id >= 0 && id < ByteVocab:
		return []byte{byte(id)}
	case id < 0 || int(id) >= len(t.dec.text):
		return nil
	}
	return t.dec.text[id]
}

// Stream decodes ids one at a time.
type Stream struct {
	t    *Tokenizer
	skip bool
	n    int    // tokens so far
	lead int    // how often lead may still be left out
	rest []byte // the beginning of a character that is not complete
}

// Stream begins a text.
func (t *Tokenizer) Stream(skip bool) *Stream { return &Stream{t: t, skip: skip, lead: t.dec.times} }

// Continue goes on with a text: nothing is left out at its beginning.
func (t *Tokenizer) Continue(skip bool) *Stream { return &Stream{t: t, skip: skip, n: 1} }

// Push gives the text that an id completes: whole characters only.
func (s *Stream) Push(id int32) string {
	if s.skip && s.t.Special(id) {
		return ""
	}
	if s.n > 0 {
		s.rest = append(s.rest, s.t.dec.between...)
	}
	b := s.t.Bytes(id)
	if s.lead == allOfFirst {
		b = bytes.ReplaceAll(b, []byte(s.t.dec.lead), nil)
		s.lead = 0
	}
	for s.lead > 0 && len(b) > 0 {
		cut, ok := bytes.CutPrefix(b, []byte(s.t.dec.lead))
		if !ok {
			s.lead = 0
			break
		}
		s.lead--
		b = cut
	}
	s.n++
	s.rest = append(s.rest, b...)
	n := complete(s.rest)
	out := valid(s.rest[:n])
	s.rest = append(s.rest[:0], s.rest[n:]...)
	return out
}

// End gives what is left of a character that was never completed.
func (s *Stream) End() string {
	out := valid(s.rest)
	s.rest = nil
	return out
}

// complete is the number of bytes before a character that may still be completed.
func complete(b []byte) int {
	for i := len(b) - 1; i >= 0 && i >= len(b)-utf8.UTFMax+1; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return i
			}
			break
		}
	}
	return len(b)
}

// valid replaces bytes that are no UTF-8, each longest beginning of a character by one U+FFFD.
func valid(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var out []byte
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r != utf8.RuneError || n > 1 {
			out = append(out, b[:n]...)
			b = b[n:]
			continue
		}
		// A beginning that is right so far counts as one.
		n = 1
		for n < len(b) && n < utf8.UTFMax && !utf8.FullRune(b[:n]) && !utf8.RuneStart(b[n]) {
			n++
		}
		if n > 1 && utf8.FullRune(b[:n]) {
			n--
		}
		out = append(out, "\uFFFD"...)
		b = b[n:]
	}
	return string(out)
}
