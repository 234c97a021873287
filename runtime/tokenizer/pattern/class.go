package pattern

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// class is a set of characters: a bitmap of the first plane, and tables for the rest.
type class struct {
	low    [1 << 10]uint64 // 65,536 bits
	tables []*unicode.RangeTable
	neg    []*unicode.RangeTable // characters beyond the first plane that are in none of these
	invert bool
}

// has reports whether r is in the set.
func (c *class) has(r rune) bool {
	if uint32(r) < 1<<16 {
		return c.low[r>>6]>>(uint(r)&63)&1 != 0
	}
	in := unicode.In(r, c.tables...)
	for _, t := range c.neg {
		in = in || !unicode.Is(t, r)
	}
	return in != c.invert
}

// width is the number of bytes of the character at a position that is in the set, 0 if none.
// A byte that is not UTF-8 stands for U+FFFD.
func (c *class) width(s string, at int) int {
	if at >= len(s) {
		return 0
	}
	if b := s[at]; b < utf8.RuneSelf {
		return int(c.low[b>>6] >> (b & 63) & 1)
	}
	r, n := utf8.DecodeRuneInString(s[at:])
	if !c.has(r) {
		return 0
	}
	return n
}

// addRange adds lo..hi.
func (c *class) addRange(lo, hi rune) {
	for r := lo; r <= hi && r < 1<<16; r++ {
		c.low[r>>6] |= 1 << (uint(r) & 63)
	}
	if hi >= 1<<16 {
		c.tables = append(c.tables, &unicode.RangeTable{R32: []unicode.Range32{{Lo: uint32(max(lo, 1<<16)), Hi: uint32(hi), Stride: 1}}})
	}
}

// addTable adds a table, or what is not in it.
func (c *class) addTable(t *unicode.RangeTable, negated bool) {
	var bits [1 << 10]uint64
	set := func(lo, hi, stride uint32) {
		for r := lo; r <= hi && r < 1<<16; r += stride {
			bits[r>>6] |= 1 << (r & 63)
		}
	}
	for _, r := range t.R16 {
		set(uint32(r.Lo), uint32(r.Hi), uint32(r.Stride))
	}
	for _, r := range t.R32 {
		set(r.Lo, r.Hi, r.Stride)
	}
	for i, b := range bits {
		if negated {
			b = ^b
		}
		c.low[i] |= b
	}
	if negated {
		c.neg = append(c.neg, t)
	} else {
		c.tables = append(c.tables, t)
	}
}

// flip makes the set its complement.
func (c *class) flip() {
	for i := range c.low {
		c.low[i] = ^c.low[i]
	}
	c.invert = !c.invert
}

// fold adds the other cases of the characters of a set of a few.
func (c *class) fold() {
	for r := rune(0); r < 1<<16; r++ {
		if c.low[r>>6]>>(uint(r)&63)&1 == 0 {
			continue
		}
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			c.addRange(f, f)
		}
	}
}

// tableOf is the table of a property, as `\p{..}` names it.
func tableOf(name string) *unicode.RangeTable {
	if t := unicode.Categories[name]; t != nil {
		return t
	}
	if t := unicode.Scripts[name]; t != nil {
		return t
	}
	if name == "Alphabetic" {
		return alphabetic()
	}
	return longNames[name]
}

var longNames = map[string]*unicode.RangeTable{
	"Letter": unicode.L, "Mark": unicode.M, "Number": unicode.N, "Punctuation": unicode.P, "Symbol": unicode.S,
	"Separator": unicode.Z, "Other": unicode.C, "Uppercase_Letter": unicode.Lu, "Lowercase_Letter": unicode.Ll,
	"White_Space": unicode.White_Space, "Space": unicode.White_Space,
}

// alphabetic is the derived property: letters, letter numbers and Other_Alphabetic.
var alphabetic = sync.OnceValue(func() *unicode.RangeTable {
	return merge(unicode.L, unicode.Nl, unicode.Other_Alphabetic)
})

// words is `\w`.
var words = sync.OnceValue(func() *unicode.RangeTable {
	return merge(alphabetic(), unicode.M, unicode.Nd, unicode.Pc)
})

// merge joins tables, by their ranges.
func merge(list ...*unicode.RangeTable) *unicode.RangeTable {
	out := &unicode.RangeTable{}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !unicode.In(r, list...) {
			continue
		}
		hi := r
		for hi < unicode.MaxRune && unicode.In(hi+1, list...) {
			hi++
		}
		if hi < 1<<16 {
			out.R16 = append(out.R16, unicode.Range16{Lo: uint16(r), Hi: uint16(hi), Stride: 1})
		} else {
			out.R32 = append(out.R32, unicode.Range32{Lo: uint32(r), Hi: uint32(hi), Stride: 1})
		}
		r = hi
	}
	return out
}

// IsWord reports whether a character is one of a word where no file's pattern says so: `\w` and the
// characters that join others, as the regular expressions of Rust have it.
func IsWord(r rune) bool { return unicode.Is(words(), r) || unicode.Is(unicode.Join_Control, r) }
