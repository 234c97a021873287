package pattern

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/megatrain/mtc/tools/cputime"
)

func split(p *Pattern, s string) []string {
	var out []string
	p.Each(s, func(start, end int, match bool) {
		part := s[start:end]
		if !match {
			part = "-" + part
		}
		out = append(out, part)
	})
	return out
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          []string
	}{
		{`\s+(?!\S)|\s+`, "a  b \n", []string{"-a", " ", " ", "-b", " \n"}},
		{`(?i:'s|'LL)|\p{L}+`, "it'S he'll 'ſ", []string{"it", "'S", "- ", "he", "'ll", "- ", "'ſ"}},
		{`\p{N}{1,3}`, "12345", []string{"123", "45"}},
		{`[^\r\n\p{L}\p{N}]?\p{L}+`, "(a\rb", []string{"(a", "-\r", "b"}},
		{`(?:ab)+c|a`, "ababd", []string{"a", "-b", "a", "-bd"}},
		{`(?:a|ab)(?:c|bcd)`, "abcd", []string{"abcd"}},
		{`a+?b??c`, "aabc", []string{"aabc"}},
		{`a*+a|b`, "aaab", []string{"-aaa", "b"}},
		{`(?>ab|a)b|a`, "abb ab", []string{"abb", "- ", "a", "-b"}},
		{`(?<!\d)\d(?!\d)`, "1 23 4", []string{"1", "- 23 ", "4"}},
		{`(?<=x)y`, "y xy", []string{"-y x", "y"}},
		{`[a-c\-\]]+`, "a-]d", []string{"a-]", "-d"}},
		{`[一-龥]+`, "x漢字x", []string{"-x", "漢字", "-x"}},
		{`\u{1F600}|\x41|\u4e00`, "😀A一", []string{"😀", "A", "一"}},
		{`(a*)*b|a`, "aaab", []string{"aaab"}},
		{`^a|a$`, "aaa", []string{"a", "-a", "a"}},
		{`.`, "a\nb", []string{"a", "-\n", "b"}},
		{`\p{^L}\P{L}`, "1a23", []string{"-1a", "23"}},
		{`[^a]`, "\xffa", []string{"\xff", "-a"}},
	} {
		p, err := Compile(c.pattern)
		if err != nil {
			t.Error(err)
			continue
		}
		if d := cmp.Diff(c.want, split(p, c.text)); d != "" {
			t.Errorf("%s on %q (-wanted +got):\n%s", c.pattern, c.text, d)
		}
	}
}

func TestErrorsNameThePlace(t *testing.T) {
	for _, c := range []struct {
		pattern string
		at      int
	}{
		{`(a`, 2}, {`a)`, 1}, {`*`, 1}, {`[a`, 2}, {`[]`, 2}, {`[a&&b]`, 2}, {`[a[b]]`, 2}, {`[z-a]`, 4}, {`\q`, 2},
		{`\p{Nope}`, 8}, {`(?<!ab)`, 7}, {`(?P<n>a)`, 1}, {`a{2,1}`, 1}, {`a{5000}`, 1}, {`\x{zz}`, 3}, {`\`, 1},
		{strings.Repeat("(", 60), 51}, {`(?:(?:(?:a{900}b){900}c){900})`, 0},
	} {
		_, err := Compile(c.pattern)
		e, ok := err.(*Error)
		if !ok {
			t.Errorf("%q: %v", c.pattern, err)
		} else if c.at > 0 && e.At != c.at {
			t.Errorf("%q: at %d, wanted %d: %v", c.pattern, e.At, c.at, err)
		}
	}
}

// Where Go's own expressions can say the same, both agree.
func TestAgreesWithRegexp(t *testing.T) {
	for _, text := range []string{`a|ab|b*c`, `(?:a+b?)+`, `[^ab]+|a{2,3}`, `(?:a|b)*?c`, `(?i:ab)|\pL\d`, `a??b|[a-b]{1,2}`} {
		p, want := MustCompile(text), regexp.MustCompile(text)
		for i := range 3 * 3 * 3 * 3 * 3 * 3 {
			s := ""
			for k := i; k > 0; k /= 3 {
				s += string("abc"[k%3])
			}
			var got []string
			p.Each(s, func(start, end int, match bool) {
				if match {
					got = append(got, fmt.Sprint(start, end))
				}
			})
			var exp []string
			for _, m := range want.FindAllStringIndex(s, -1) {
				if m[1] > m[0] {
					exp = append(exp, fmt.Sprint(m[0], m[1]))
				}
			}
			if d := cmp.Diff(exp, got); d != "" && !strings.Contains(text, "??") && !strings.Contains(text, "*?") {
				t.Fatalf("%s on %q (-regexp +here):\n%s", text, s, d)
			}
		}
	}
}

// Loops inside of loops take no time without end.
func TestNestedLoopsEnd(t *testing.T) {
	for _, text := range []string{`(?:a*)*b`, `(?:a|a)*b`, `(?:(?:a+)+)+b`, `(?:a|aa)+(?!a)b`, `(?=(?:a*)*b)a`} {
		if d := cputime.Of(func() { MustCompile(text).Each(strings.Repeat("a", 60), func(int, int, bool) {}) }); d > 15*time.Second {
			t.Errorf("%s: %v", text, d)
		}
	}
}

// A long run of one kind takes time in proportion to its length.
func TestLongRunsAreLinear(t *testing.T) {
	p := MustCompile(`(?i:'s)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`)
	for _, unit := range []string{"a", " ", "!", "\n", "漢", "1"} {
		s := strings.Repeat(unit, 1<<20) + "x"
		if d := cputime.Of(func() { p.Each(s, func(int, int, bool) {}) }); d > 15*time.Second {
			t.Errorf("%q: %v for %d bytes", unit, d, len(s))
		}
	}
}
