// Package suggest finds the name that was probably meant. It compares a misspelt word with
// the names that could stand in its place and returns the nearest one, or nothing when
// none is near: a wrong guess costs a reader more than no guess.
package suggest

import (
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"
)

// maxLen bounds the words compared: the table of distances is quadratic in it.
const maxLen = 64

// Nearest returns the candidate that alone starts with word, else the one nearest to it by edit
// distance, of equally near ones the first that has all letters of word in order (`seed`
// before `seq` for "sed"), then the first; or "" when every one is too far (more than a third of the longer word, at
// least one edit). An exact match but for case always counts. The word itself is no suggestion.
func Nearest(word string, candidates []string) string {
	best, bestDist, whole := "", 1<<30, false
	prefix := unambiguousPrefix(word, candidates)
	for _, c := range candidates {
		if c == word || c == "" {
			continue
		}
		d := Distance(strings.ToLower(word), strings.ToLower(c))
		longer := max(utf8.RuneCountInString(word), utf8.RuneCountInString(c))
		if d > max(1, longer/3) || d >= longer {
			continue
		}
		if in := within(strings.ToLower(word), strings.ToLower(c)); d < bestDist || d == bestDist && in && !whole {
			best, bestDist, whole = c, d, in
		}
	}
	if prefix != "" && bestDist > 1 {
		return prefix
	}
	return best
}

// within reports whether the letters of word stand in c in their order.
func within(word, c string) bool {
	i := 0
	for j := 0; j < len(c) && i < len(word); j++ {
		if c[j] == word[i] {
			i++
		}
	}
	return i == len(word)
}

// unambiguousPrefix returns the only candidate that word abbreviates ("rms" for "rmsnorm").
func unambiguousPrefix(word string, candidates []string) string {
	if len(strings.TrimLeft(word, "-")) < 3 {
		return ""
	}
	found := ""
	for _, c := range candidates {
		if c != word && strings.HasPrefix(strings.ToLower(c), strings.ToLower(word)) {
			if found != "" && found != c {
				return ""
			}
			found = c
		}
	}
	return found
}

// Hint returns "did you mean `name`?", or "" when no candidate is near.
func Hint(word string, candidates []string) string {
	if n := Nearest(word, candidates); n != "" {
		return fmt.Sprintf("did you mean `%s`?", n)
	}
	return ""
}

// HintOr is Hint, or the list of what is possible, sorted, when nothing is near and the list is short.
func HintOr(word string, candidates []string) string {
	if h := Hint(word, candidates); h != "" {
		return h
	}
	return "one of " + List(candidates)
}

// List writes names as "`a`, `b` and `c`", sorted, at most twelve of them.
func List(names []string) string {
	sorted := append([]string(nil), names...)
	sort.Strings(sorted)
	const most = 12
	rest := 0
	if len(sorted) > most {
		rest = len(sorted) - most
		sorted = sorted[:most]
	}
	quoted := make([]string, len(sorted))
	for i, n := range sorted {
		quoted[i] = "`" + n + "`"
	}
	switch {
	case len(quoted) == 0:
		return "nothing"
	case rest > 0:
		return fmt.Sprintf("%s and %d more", strings.Join(quoted, ", "), rest)
	case len(quoted) == 1:
		return quoted[0]
	}
	return strings.Join(quoted[:len(quoted)-1], ", ") + " and " + quoted[len(quoted)-1]
}

// Distance is the number of single-character insertions, deletions, substitutions and swaps
// of neighbours between a and b (optimal string alignment, Boytsov 2011, section 2.2). Words longer
// than 64 characters are cut.
func Distance(a, b string) int {
	x, y := cut(a), cut(b)
	prev2 := make([]int, len(y)+1)
	prev := make([]int, len(y)+1)
	cur := make([]int, len(y)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(x); i++ {
		cur[0] = i
		for j := 1; j <= len(y); j++ {
			sub := prev[j-1]
			if x[i-1] != y[j-1] {
				sub++
			}
			cur[j] = min(sub, prev[j]+1, cur[j-1]+1)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(y)]
}

func cut(s string) []rune {
	r := []rune(s)
	if len(r) > maxLen {
		r = r[:maxLen]
	}
	return r
}
