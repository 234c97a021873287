package tokenizer

import (
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
)

// Characters with more marks than x/text takes in one piece are normalized as the standard
// says, as Python's unicodedata does; with fewer, as x/text does.
func TestManyMarks(t *testing.T) {
	acute, dot := "\u0301", "\u0323" // classes 230 and 220
	for _, c := range []struct {
		form     norm.Form
		in, want string
	}{
		{norm.NFC, "xa" + strings.Repeat(acute, 40) + "y", "xá" + strings.Repeat(acute, 39) + "y"},
		{norm.NFC, "a" + strings.Repeat(acute, 35) + dot, "ạ" + strings.Repeat(acute, 35)},
		{norm.NFD, "é" + strings.Repeat(acute+dot, 20) + "é", "e" + strings.Repeat(dot, 20) + strings.Repeat(acute, 21) + "e" + acute},
		{norm.NFKC, "ﬁ" + strings.Repeat(acute, 31), "fí" + strings.Repeat(acute, 30)},
		{norm.NFC, strings.Repeat(acute, 50), strings.Repeat(acute, 50)},
		{norm.NFC, "e" + acute + " A\u030a", "é Å"},
	} {
		for _, track := range []bool{false, true} {
			if got := (unicodeForm{c.form}).apply(piece{s: c.in}, track).s; got != c.want {
				t.Errorf("%+q: %+q, wanted %+q", c.in, got, c.want)
			}
		}
	}
	// On short runs both ways are the same.
	for _, s := range []string{"a" + dot + acute, "é" + dot, "q" + acute + dot + "\u0307", "o\u031b" + dot + acute, acute + "a"} {
		for _, f := range []norm.Form{norm.NFC, norm.NFD, norm.NFKC, norm.NFKD} {
			if strings.HasPrefix(s, acute) {
				continue
			}
			if got, want := normalRun(f, s), f.String(s); got != want {
				t.Errorf("form %d of %+q: %+q, x/text has %+q", f, s, got, want)
			}
		}
	}
}
