package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/megatrain/mtc/runtime/tokenizer/pattern"
)

// normalizer changes a piece before it is split.
type normalizer interface {
	apply(p piece, track bool) piece
}

// prepend puts a text before every piece.
type prepend string

func (n prepend) apply(p piece, track bool) piece {
	if p.s == "" || n == "" {
		return p
	}
	r := rewrite(p, track)
	r.put(string(n), 0)
	r.keep(0, len(p.s))
	return r.done()
}

// replace puts a text in the place of every match.
type replace struct {
	what *pattern.Pattern
	with string
	text string // a literal, when it is one
}

func (n replace) apply(p piece, track bool) piece {
	if n.text != "" && !strings.Contains(p.s, n.text) {
		return p
	}
	if n.text != "" && !track {
		return piece{s: strings.ReplaceAll(p.s, n.text, n.with), base: p.base}
	}
	r := rewrite(p, track)
	n.what.Each(p.s, func(start, end int, match bool) {
		if match {
			r.put(n.with, start)
		} else {
			r.keep(start, end)
		}
	})
	return r.done()
}

// unicodeForm is NFC and its relatives.
type unicodeForm struct{ norm.Form }

func (n unicodeForm) apply(p piece, track bool) piece {
	if n.IsNormalString(p.s) {
		return p
	}
	r := rewrite(p, track)
	for from := 0; from < len(p.s); {
		start, end, many := markedRun(p.s, from)
		if !many {
			start = len(p.s)
		}
		// Bytes that are not UTF-8 stand as they are: the package keeps them too.
		var it norm.Iter
		it.InitString(n.Form, p.s[from:start])
		for !it.Done() {
			at := from + it.Pos()
			r.put(string(it.Next()), at)
		}
		if many {
			r.put(normalRun(n.Form, p.s[start:end]), start)
		}
		from = end
	}
	return r.done()
}

// lowercase is the small letter of every character.
type lowercase struct{}

func (lowercase) apply(p piece, track bool) piece {
	r := rewrite(p, track)
	for i := 0; i < len(p.s); {
		c, n := utf8.DecodeRuneInString(p.s[i:])
		switch {
		case c == utf8.RuneError && n == 1:
			r.keep(i, i+1)
		case c == 'İ':
			r.put("i̇", i)
		default:
			r.put(string(unicode.ToLower(c)), i)
		}
		i += n
	}
	return r.done()
}

// strip removes white space at the ends.
type strip struct{ left, right bool }

func (n strip) apply(p piece, _ bool) piece {
	i, j := 0, len(p.s)
	if n.left {
		i = j - len(strings.TrimLeftFunc(p.s, unicode.IsSpace))
	}
	if n.right {
		j = max(i, len(strings.TrimRightFunc(p.s, unicode.IsSpace)))
	}
	return p.cut(i, j)
}

// stripAccents removes marks, also those that take room.
type stripAccents struct{}

func (stripAccents) apply(p piece, track bool) piece {
	r := rewrite(p, track)
	for i := 0; i < len(p.s); {
		c, n := utf8.DecodeRuneInString(p.s[i:])
		if !unicode.Is(unicode.M, c) {
			r.keep(i, i+n)
		}
		i += n
	}
	return r.done()
}
