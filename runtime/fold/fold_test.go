package fold

import (
	"reflect"
	"strings"
	"testing"
)

// TestWriter: long lines are broken between words and lose none; what is to be copied, or is an excerpt, stays.
func TestWriter(t *testing.T) {
	word, path := strings.Repeat("word ", 14)+"end", "/"+strings.Repeat("folder/", 13)+"f.mt"
	command := "`mtc run build/nano --data 'a b.txt' --steps 300`"
	for _, c := range []struct{ name, text, want string }{
		{"short", "error[MT0702]: it fits\n", ""},
		{"as long as may be", strings.Repeat("a ", 39) + "bc\n", ""},
		{"an error", "error[MT0702]: " + word + "\n", "error[MT0702]: word word word word word word word word word word word word word\n  word end\n"},
		{"a help", "  help: " + word + " " + word + "\n", "  help: word word word word word word word word word word word word word word\n        end word word word word word word word word word word word word word\n        word end\n"},
		{"a note of a diagnostic", " note: " + word + " more\n", " note: word word word word word word word word word word word word word word end\n       more\n"},
		{"a path is one word", "error[MT0628]: " + path + ": it is a profile\n", "error[MT0628]:\n  " + path + ":\n  it is a profile\n"},
		{"a command stays whole", "  help: it needs a run that was profiled; " + command + " makes one\n", "  help: it needs a run that was profiled;\n        " + command + " makes one\n"},
		{"a command longer than a line", "  help: `" + word + " " + word + "`\n", "  help: `word word word word word word word word word word word word word word\n        end word word word word word word word word word word word word word\n        word end`\n"},
		{"a backquote without another", "note: it`s " + word + " " + word + "\n", "note: it`s word word word word word word word word word word word word word word\n      end word word word word word word word word word word word word word word\n      end\n"},
		{"an excerpt", "12 | " + word + word + "\n   | " + strings.Repeat(" ", 80) + "^ here\n", ""},
		{"a meter", "\r" + word + word + "\n", ""},
		{"several lines", "note: a\n  " + word + " " + word[:9] + "\nnote: b\n", "note: a\n  word word word word word word word word word word word word word word end word\n    word\nnote: b\n"},
		{"a script of two columns a sign", "note: " + strings.Repeat("日本 ", 16) + "\n", "note: " + strings.TrimRight(strings.Repeat("日本 ", 15), " ") + "\n      日本\n"},
	} {
		if c.want == "" {
			c.want = c.text
		}
		var b strings.Builder
		if n, err := (&Writer{W: &b}).Write([]byte(c.text)); n != len(c.text) || err != nil {
			t.Errorf("%s: %d bytes, %v", c.name, n, err)
		}
		if b.String() != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, b.String(), c.want)
		}
		b.Reset()
		whole := &Writer{W: &b, Whole: func() bool { return true }}
		if _, err := whole.Write([]byte(c.text)); err != nil || b.String() != c.text {
			t.Errorf("%s: lines are not whole:\n%s", c.name, b.String())
		}
	}
}

// TestWriterInParts: what is written comes at once and in order, also where a line is written in parts.
func TestWriterInParts(t *testing.T) {
	var b strings.Builder
	f := &Writer{W: &b}
	long := strings.Repeat("word ", 20)
	for _, part := range []string{"a part", long, "\n", "b\n" + long} {
		before := b.Len()
		if _, err := f.Write([]byte(part)); err != nil || b.Len() != before+len(part) {
			t.Errorf("%q: %v, %q", part, err, b.String())
		}
	}
	if want := "a part" + long + "\nb\n" + long; b.String() != want {
		t.Errorf("%q", b.String())
	}
}

// TestWrap breaks between words only.
func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"one two\n  three", []string{"one two", "three"}},
		{"a word-that-is-too-long b", []string{"a", "word-that-is-too-long", "b"}},
	} {
		if got := Wrap(c.text, 9); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}
