package ir

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Names of blocks and slabs that differ in an index are written together: `layer[0..3,7].experts` is
// layer[0].experts to layer[3].experts, and layer[7].experts. A list has commas between names.

// mostNamed bounds what one word stands for, above what any model has.
const mostNamed = 1 << 16

// SplitNames are the words of a list: what commas outside brackets separate. White space is left out, so
// that a list which was printed on several lines is one.
func SplitNames(list string) []string {
	list = strings.Join(strings.Fields(list), "")
	var out []string
	depth, start := 0, 0
	for i, c := range list {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == ',' && depth <= 0:
			out = append(out, list[start:i])
			start = i + 1
		}
	}
	return append(out, list[start:])
}

// ExpandName are the names that a word of a list stands for; the word itself where it is no range.
func ExpandName(word string) []string {
	before, rest, ok := strings.Cut(word, "[")
	inside, after, closed := strings.Cut(rest, "]")
	if !ok || !closed {
		return []string{word}
	}
	var out []string
	for _, part := range strings.Split(inside, ",") {
		first, last, span := strings.Cut(part, "..")
		if !span {
			last = first
		}
		a, errA := strconv.Atoi(first)
		b, errB := strconv.Atoi(last)
		if errA != nil || errB != nil || a < 0 || b < a || len(out)+b-a >= mostNamed {
			return []string{word}
		}
		for i := a; i <= b; i++ {
			out = append(out, fmt.Sprintf("%s[%d]%s", before, i, after))
		}
	}
	return out
}

// ExpandNames are the names of a whole list, in order.
func ExpandNames(list string) []string {
	var out []string
	for _, word := range SplitNames(list) {
		out = append(out, ExpandName(word)...)
	}
	return out
}

// JoinNames writes names as a list, those that differ in an index together, where the first of them
// stands. ExpandNames gives the same names.
func JoinNames(names []string) string {
	type group struct {
		before, after string
		index         []int
	}
	var groups []*group
	for _, name := range names {
		before, rest, ok := strings.Cut(name, "[")
		inside, after, _ := strings.Cut(rest, "]")
		n, err := strconv.Atoi(inside)
		if !ok || err != nil {
			groups = append(groups, &group{before: name})
			continue
		}
		k := slices.IndexFunc(groups, func(g *group) bool { return g.index != nil && g.before == before && g.after == after })
		if k < 0 {
			k = len(groups)
			groups = append(groups, &group{before: before, after: after})
		}
		groups[k].index = append(groups[k].index, n)
	}
	var out []string
	for _, g := range groups {
		word := g.before
		if g.index != nil {
			word += "[" + ranges(g.index) + "]" + g.after
		}
		out = append(out, word)
	}
	return strings.Join(out, ",")
}

// ranges writes numbers, three and more in a row as a range.
func ranges(index []int) string {
	slices.Sort(index)
	index = slices.Compact(index)
	var out []string
	for i := 0; i < len(index); {
		k := i
		for k+1 < len(index) && index[k+1] == index[k]+1 {
			k++
		}
		if k-i < 2 {
			k = i
			out = append(out, strconv.Itoa(index[i]))
		} else {
			out = append(out, fmt.Sprintf("%d..%d", index[i], index[k]))
		}
		i = k + 1
	}
	return strings.Join(out, ",")
}
