package diag

import (
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// view is one source line as it is displayed: tabs expanded, bytes that do not print
// replaced, cut to the part around its marks when it is long.
type view struct {
	text  string
	spots []spot
	room  int // columns for each of its lines
}

// spot is a mark in display columns.
type spot struct {
	from, to int // to > from
	text     string
	primary  bool
}

// The columns that excerpts keep to, and how many are kept before the first mark of a longer line.
const (
	maxWidth = 80
	keepLeft = 24
	tabWidth = 4
)

// newView lays out a line in so many columns. Marks are byte ranges within it.
func newView(line string, marks []mark, room int) *view {
	cells, col := layoutLine(line, marks)
	v := &view{room: room}
	for _, m := range marks {
		s := spot{from: col[m.from], to: col[m.to], text: m.text, primary: m.primary}
		s.to = max(s.to, s.from+1)
		v.spots = append(v.spots, s)
	}
	v.cut(cells)
	sort.SliceStable(v.spots, func(i, j int) bool { return v.spots[i].from < v.spots[j].from })
	return v
}

// layoutLine returns the line's cells (one string for each display column, "" for the second
// half of a wide rune) and the display column of each byte offset that a mark uses.
func layoutLine(line string, marks []mark) (cells []string, col map[int]int) {
	col = map[int]int{}
	want := map[int]bool{}
	for _, m := range marks {
		want[m.from], want[m.to] = true, true
	}
	for i := 0; i < len(line); {
		r, n := utf8.DecodeRuneInString(line[i:])
		for k := i; k < i+n; k++ {
			if want[k] {
				col[k] = len(cells)
			}
		}
		switch {
		case r == '\t':
			cells = append(cells, " ")
			for len(cells)%tabWidth != 0 {
				cells = append(cells, " ")
			}
		case r < 0x20:
			cells = append(cells, string(rune(0x2400+r))) // control pictures
		case r == 0x7f:
			cells = append(cells, "\u2421")
		case r == utf8.RuneError:
			cells = append(cells, "\ufffd")
		default:
			switch runeWidth(r) {
			case 0:
				if len(cells) > 0 && unicode.IsMark(r) {
					cells[len(cells)-1] += string(r)
				}
			case 2:
				cells = append(cells, string(r), "")
			default:
				cells = append(cells, string(r))
			}
		}
		i += n
	}
	col[len(line)] = len(cells)
	return cells, col
}

// cut sets the text, and shifts the marks when a long line is shown in part.
func (v *view) cut(cells []string) {
	start, end, room := 0, len(cells), v.room
	pre, post := "", ""
	if len(cells) > room {
		first := 0
		if len(v.spots) > 0 {
			first = v.spots[0].from
			for _, s := range v.spots {
				if s.primary {
					first = s.from
				}
			}
		}
		if first > room*2/3 {
			start, pre = min(first-keepLeft, len(cells)+3-room), "..."
		}
		if room -= len(pre); start+room < end {
			end, post = start+room-3, "..."
		}
		if start > 0 && cells[start] == "" {
			start++
		}
		if end < len(cells) && cells[end] == "" {
			end--
		}
	}
	v.text = pre + strings.Join(cells[start:end], "") + post
	limit := min(len(pre)+end-start+1, v.room) // a mark may stand behind the line
	v.spots = slices.DeleteFunc(v.spots, func(s spot) bool { return !s.primary && (s.to <= start || s.from > end) })
	for i := range v.spots {
		s := &v.spots[i]
		s.from = min(max(0, s.from-start+len(pre)), limit-1)
		s.to = min(max(s.from+1, s.to-start+len(pre)), limit)
	}
}

// rows returns the lines below the source line: the underlines with the last text beside
// them where it has room there, then the other texts from right to left, each hanging under its mark.
func (v *view) rows() []string {
	if len(v.spots) == 0 {
		return nil
	}
	end := 0
	for _, s := range v.spots {
		end = max(end, s.to)
	}
	line := []rune(strings.Repeat(" ", end))
	byWidth := append([]spot(nil), v.spots...)
	sort.SliceStable(byWidth, func(i, j int) bool { return byWidth[i].to-byWidth[i].from > byWidth[j].to-byWidth[j].from })
	for _, s := range byWidth {
		c := '-'
		if s.primary {
			c = '^'
		}
		for i := s.from; i < s.to; i++ {
			line[i] = c
		}
	}
	var hang []spot
	for _, s := range v.spots {
		if s.text != "" {
			hang = append(hang, s)
		}
	}
	first := string(line)
	if n := len(hang); n > 0 && hang[n-1].to == end && end+1+textWidth(hang[n-1].text) <= v.room {
		first += " " + hang[n-1].text
		hang = hang[:n-1]
	}
	out := []string{first}
	for n := len(hang); n > 0; n-- {
		out = append(out, bars(hang[:n], ""))
		lines, at := v.hung(hang[n-1])
		for _, l := range lines {
			out = append(out, bars(hang[:n-1], l, at))
		}
	}
	return out
}

// hung is the text of a mark in lines, and where they begin: under the mark, or as far to the left of it as they need.
func (v *view) hung(s spot) (lines []string, at int) {
	widest := v.room - min(s.from, v.room/4)
	for _, word := range strings.Fields(s.text) {
		if n := len(lines); n > 0 && textWidth(lines[n-1])+1+textWidth(word) <= widest {
			lines[n-1] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	at = s.from
	for _, l := range lines {
		at = max(0, min(at, v.room-textWidth(l)))
	}
	return lines, at
}

// textWidth is the columns that a text takes.
func textWidth(s string) (n int) {
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

// bars draws `|` under each spot, and a text at a column.
func bars(spots []spot, text string, at ...int) string {
	var b []rune
	put := func(col int, s string) {
		for len(b) < col {
			b = append(b, ' ')
		}
		b = append(b[:col], []rune(s)...)
	}
	for _, s := range spots {
		put(s.from, "|")
	}
	if len(at) > 0 {
		put(at[0], text)
	}
	return string(b)
}

// runeWidth is the number of columns a terminal gives a rune: 0 for combining and format
// characters, 2 for East Asian wide ones and emoji (Unicode Annex 11, by block), else 1.
func runeWidth(r rune) int {
	switch {
	case unicode.Is(unicode.Mn, r), unicode.Is(unicode.Me, r), unicode.Is(unicode.Cf, r):
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0x303e, r >= 0x3041 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3,
		r >= 0xf900 && r <= 0xfaff, r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6,
		r >= 0x1f300 && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}
