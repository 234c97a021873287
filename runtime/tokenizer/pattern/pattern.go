// Package pattern matches the regular expressions of tokenizer files. They need what Go's
// regexp leaves out (lookahead, possessive loops) and a leftmost match whose alternatives are
// tried in order. A pattern is compiled to instructions for a backtracking machine; a loop
// over one character class is a single instruction with a single entry on the stack, so a
// word of a megabyte takes neither deep recursion nor memory that grows with it.
//
// Read are: literals, escapes, classes (ranges, \p{..}, negated), groups, (?i:..), lookahead
// and lookbehind by one character, greedy, lazy and possessive loops, ^ and $ as the ends of
// the text. Everything else is an error, so that no pattern is understood in another way than
// its author meant. Classes follow the Unicode edition of Go's tables.
package pattern

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Pattern is a compiled expression; it may be used from several goroutines.
type Pattern struct {
	text  string
	code  []instr
	loops bool // it has loops over more than one character class
}

// opcode is what an instruction does.
type opcode uint8

const (
	opClass  opcode = iota // one character of a class
	opLoop                 // as many of a class as there are, at least lo, at most hi; gives back
	opTake                 // the same, and gives nothing back
	opSplit                // go on at x, later at y
	opJump                 // go on at x
	opAhead                // lookahead: the code behind up to opMatch; x: where it goes on
	opBehind               // the character before is of the class
	opAtomic               // as opAhead, and moves to the end of the match
	opBegin                // start of the text
	opEnd                  // end of the text
	opMark                 // remember where an iteration began, in register x
	opMoved                // fail unless the iteration of register x consumed something
	opText                 // a text as it is
	opMatch
)

type instr struct {
	op     opcode
	neg    bool // opAhead, opBehind
	x, y   int
	lo, hi int // hi < 0: no bound
	set    *class
	text   string
}

// String is the text of the pattern.
func (p *Pattern) String() string { return p.text }

// Each calls f with the matches of s in order, empty ones left out, and with the text between
// them.
func (p *Pattern) Each(s string, f func(start, end int, match bool)) {
	m := machine{loops: p.loops}
	done := 0 // end of the last match
	for at := 0; at < len(s); {
		if end, ok := m.run(p.code, 0, s, at); ok && end > at {
			if at > done {
				f(done, at, false)
			}
			f(at, end, true)
			at, done = end, end
			continue
		}
		_, n := utf8.DecodeRuneInString(s[at:])
		at += n
	}
	if done < len(s) {
		f(done, len(s), false)
	}
}

// entry is a place to go back to.
type entry struct {
	pc, at int
	low    int // of a loop: it gives back down to here; -1: not a loop
}

// machine holds the stack of a search, which later searches use again.
type machine struct {
	stack []entry
	marks [16]int
	// Where loops nest, one place can be come to in many ways, all of which fail if one does:
	// been has the choices that were made.
	loops bool
	been  map[choice]bool
}

// choice is a split that was come to.
type choice struct {
	pc, at int
	marks  [16]int
}

// run matches code[pc:] at position at.
func (m *machine) run(code []instr, pc int, s string, at int) (end int, ok bool) {
	base := len(m.stack)
	if m.loops {
		// Each run has choices of its own: one inside of a lookahead may have succeeded.
		before := m.been
		m.been = map[choice]bool{}
		defer func() { m.been = before }()
	}
	for {
		in := &code[pc]
		good := true
		switch in.op {
		case opMatch:
			m.stack = m.stack[:base]
			return at, true
		case opClass:
			n := in.set.width(s, at)
			if good = n > 0; good {
				at, pc = at+n, pc+1
			}
		case opLoop, opTake:
			low, stop, enough := loop(in, s, at)
			if good = enough; good {
				if in.op == opLoop && stop > low {
					m.stack = append(m.stack, entry{pc + 1, stop, low})
				}
				at, pc = stop, pc+1
			}
		case opSplit:
			if m.loops {
				c := choice{pc, at, m.marks}
				if good = !m.been[c]; !good {
					break
				}
				m.been[c] = true
			}
			m.stack = append(m.stack, entry{in.y, at, -1})
			pc = in.x
		case opJump:
			pc = in.x
		case opAhead:
			marks := m.marks
			_, hit := m.run(code, pc+1, s, at)
			m.marks = marks
			if good = hit != in.neg; good {
				pc = in.x
			}
		case opAtomic:
			to, hit := m.run(code, pc+1, s, at)
			if good = hit; good {
				at, pc = to, in.x
			}
		case opBehind:
			r, n := utf8.DecodeLastRuneInString(s[:at])
			if good = (n > 0 && in.set.has(r)) != in.neg; good {
				pc++
			}
		case opText:
			if good = strings.HasPrefix(s[at:], in.text); good {
				at, pc = at+len(in.text), pc+1
			}
		case opBegin:
			if good = at == 0; good {
				pc++
			}
		case opEnd:
			if good = at == len(s); good {
				pc++
			}
		case opMark:
			m.marks[in.x] = at
			pc++
		case opMoved:
			if good = m.marks[in.x] != at; good {
				pc++
			}
		}
		if good {
			continue
		}
		if len(m.stack) == base {
			return 0, false
		}
		top := &m.stack[len(m.stack)-1]
		pc = top.pc
		if top.low < 0 {
			at = top.at
			m.stack = m.stack[:len(m.stack)-1]
			continue
		}
		_, n := utf8.DecodeLastRuneInString(s[:top.at])
		at = top.at - n
		if top.at = at; at <= top.low {
			m.stack = m.stack[:len(m.stack)-1]
		}
	}
}

// loop takes characters of a class: low is where the least number ends, stop where it ends.
func loop(in *instr, s string, at int) (low, stop int, enough bool) {
	n := 0
	low = at
	for in.hi < 0 || n < in.hi {
		w := in.set.width(s, at)
		if w == 0 {
			break
		}
		at += w
		if n++; n == in.lo {
			low = at
		}
	}
	return low, at, n >= in.lo
}

// Error is a pattern that is not read.
type Error struct {
	Pattern string
	At      int // byte of the pattern
	Why     string
}

func (e *Error) Error() string {
	return fmt.Sprintf("the pattern %q, at byte %d: %s", e.Pattern, e.At, e.Why)
}
