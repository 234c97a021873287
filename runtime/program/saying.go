package program

import (
	"strconv"
	"strings"

	"github.com/megatrain/mtc/runtime/tokenizer"
)

// saying writes tokens as text, whole characters at a time, up to a text that ends a turn.
type saying struct {
	stream *tokenizer.Stream // nil: numbers, or bytes as they are
	bytes  bool
	until  string // ends the text, and is not a part of it; "": nothing does
	held   string // may be the beginning of until
	done   bool
}

// begin begins what is generated: an answer, or what goes on from a prompt.
func (s *speech) begin(answer bool) *saying {
	switch {
	case s.tok == nil:
		return &saying{}
	case s.tok.IsBytes():
		return &saying{bytes: true, until: s.turnEnd}
	case answer:
		return &saying{stream: s.tok.Stream(true), until: s.turnEnd}
	}
	return &saying{stream: s.tok.Continue(true)}
}

// push gives the text that a token completes.
func (s *saying) push(token int32) string {
	switch {
	case s.bytes:
		return s.pass(string([]byte{byte(token)}))
	case s.stream == nil:
		return " " + strconv.Itoa(int(token))
	}
	return s.pass(s.stream.Push(token))
}

// pass keeps back what may be the beginning of the end.
func (s *saying) pass(text string) string {
	if s.until == "" || s.done {
		return text
	}
	all := s.held + text
	if before, _, found := strings.Cut(all, s.until); found {
		s.done, s.held = true, ""
		return before
	}
	keep := min(len(all), len(s.until)-1)
	for !strings.HasPrefix(s.until, all[len(all)-keep:]) {
		keep--
	}
	s.held = all[len(all)-keep:]
	return all[:len(all)-keep]
}

// end is what is left: what was kept back, and a character that was never completed.
func (s *saying) end() string {
	if s.done {
		return ""
	}
	out := s.held
	if s.stream != nil {
		out += s.stream.End()
	}
	return out
}
