package parser

import (
	"bytes"

	"github.com/megatrain/mtc/lang/diag"
)

// otherText reports a text that is no .mt as a whole: of another encoding, or with other line ends.
// Its lines and columns would not be those that an editor shows, so nothing else is said of it.
func (p *parser) otherText(text []byte) bool {
	head := text[:min(len(text), 4)]
	switch {
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")),
		len(head) == 4 && (head[0] == 0 && head[2] == 0 && head[1] != 0 && head[3] != 0 ||
			head[1] == 0 && head[3] == 0 && head[0] != 0 && head[2] != 0):
		p.errorf("MT0103", p.span(0, 2), "the file is UTF-16, a .mt file is UTF-8").Hint("save the file as UTF-8")
		return true
	}
	lf, bare := bytes.Count(text, []byte{'\n'}), bytes.Count(text, []byte{'\r'})-bytes.Count(text, []byte("\r\n"))
	if bare == 0 || bare < lf {
		return false
	}
	first := bytes.IndexByte(text, '\r')
	for first+1 < len(text) && text[first+1] == '\n' {
		first += 1 + bytes.IndexByte(text[first+1:], '\r')
	}
	p.errorf("MT0103", p.span(first, first+1), "%s", times("carriage return without a line feed", bare)).
		Hint("save the file with lines that end in LF or CR LF")
	return true
}

// repeated is a fault of the text that may stand in many places.
type repeated struct {
	found [2]*diag.Diagnostic // the first two places
	n     int                 // places
	last  int                 // offset of the last
}

// strange notes characters that mean nothing, for sumUp to report. Those of one kind are one slip
// where they stand in more than two places, as no-break spaces before every line are.
func (s *scanner) strange(kind string, start, end int, format string, args ...any) *diag.Diagnostic {
	s.failed = true
	r := s.kinds[kind]
	if r == nil {
		r = &repeated{}
		s.said = append(s.said, r)
		s.kinds[kind] = r
	}
	r.n++
	r.last = start
	if r.n > len(r.found) {
		return &diag.Diagnostic{}
	}
	d := new(diag.List).Errorf("MT0103", s.span(start, end), format, args...)
	r.found[r.n-1] = d
	return d
}

// sumUp reports what strange noted.
func (s *scanner) sumUp() {
	for _, r := range s.said {
		if r.n > len(r.found) {
			line, _ := s.file.Position(r.last)
			s.report(r.found[0].Note("the same stands in %d more places, the last one in line %d", r.n-1, line))
			continue
		}
		for _, d := range r.found[:r.n] {
			s.report(d)
		}
	}
}
