package codegen

import (
	"go/token"
	"strconv"
	"strings"
	"unicode"
)

// camel joins the parts of a path to one capitalised name: "q.weight" becomes QWeight.
func camel(s string) string {
	var out strings.Builder
	upper := true
	for _, r := range s {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			upper = true
		case upper:
			out.WriteRune(unicode.ToUpper(r))
			upper = false
		default:
			out.WriteRune(r)
		}
	}
	if out.Len() == 0 || unicode.IsDigit(rune(out.String()[0])) {
		return "V" + out.String()
	}
	return out.String()
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// localNames gives the locals of one function their names.
type localNames map[string]bool

// take returns name, or name with a number when it is taken.
func (l localNames) take(name string) string {
	s := name
	for i := 2; l[s] || token.IsKeyword(s); i++ {
		s = name + strconv.Itoa(i)
	}
	l[s] = true
	return s
}
