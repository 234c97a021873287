package jsontext

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

type part struct {
	N    int64   `json:"n"`
	Rate float64 `json:"rate,omitempty"`
}

type whole struct {
	Name  string          `json:"name"`
	Part  part            `json:"part"`
	Parts []part          `json:"parts"`
	By    map[string]part `json:"by,omitempty"`
	Maybe *part           `json:"maybe"`
	Pair  [2]int          `json:"pair"`
	On    bool            `json:"on,omitzero"`
	own   int
}

// TestRead: what encoding/json lets pass in silence is an error with its place; what may be left out may.
func TestRead(t *testing.T) {
	const good = `{"name": "a", "part": {"n": 1}, "parts": [{"n": 1}, {"n": 2, "rate": 1e3}], "by": {"x": {"n": 1}}, "pair": [1, 2]}`
	for _, c := range []struct {
		from, to string
		rules    Rule
		want     string
	}{
		{"", "", Whole | Known, ""},
		{`"a"`, `"\u001b[31m"`, Whole, "line 1, column 10: name is"},
		{`"a"`, `"\u202ea"`, Whole, "a terminal acts on"},
		{`"a"`, "\"\u009b\"", Whole, "a terminal acts on"},
		{`"a"`, `"a\nb"`, Whole, ""},
		{`"x"`, `"\u0007"`, Whole, "a terminal acts on"},
		{`"parts": [{"n": 1}, {"n": 2, "rate": 1e3}]`, `"parts": null`, Whole | Known, ""},
		{`"pair"`, `"maybe": null, "pair"`, Whole | Known, ""},
		{`"name": "a", `, ``, 0, ""},
		{`"name": "a", `, ``, Whole, "line 1, column 1: the text has no `name`"},
		{`"n": 2, `, ``, Whole, "line 1, column 53: parts[1] has no `n`"},
		{`"x": {"n": 1}`, `"x": {}`, Whole, "by.x has no `n`"},
		{`"name": "a"`, `"name": null`, 0, "line 1, column 10: name is null"},
		{`"part": {"n": 1}`, `"part": null`, 0, "part is null"},
		{`"n": 2`, `"n": null`, 0, "parts[1].n is null"},
		{`"n": 2`, `"n": 2, "n": 3`, 0, "line 1, column 62: parts[1] has `n` twice"},
		{`"x": {"n": 1}`, `"x": {"n": 1}, "\u0078": {"n": 2}`, 0, "by has `x` twice"},
		{`"name": "a"`, `"Name": "a"`, 0, "there is no field `Name`; it is written `name`"},
		{`"name": "a"`, `"name": "a", "more": {"a": [1, "]}", {}]}`, Whole, ""},
		{`"name": "a"`, `"name": "a", "more": {"a": 1, "a": 2}`, Whole, "more has `a` twice"},
		{`"name": "a"`, `"name": "a", "more": 1`, Whole | Known, "line 1, column 15: there is no field `more`"},
		{`"name": "a"`, `"name": "a", "own": 1`, Whole | Known, "there is no field `own`"},
		{`[1, 2]`, `[1]`, 0, "pair has 1 elements, not 2"},
		{`[1, 2]`, `[1, 2, 3]`, 0, "pair has 3 elements, not 2"},
		{`[1, 2]`, `[1, "2"]`, 0, "a string, not a whole number"},
		{`[1, 2]}`, `[1, 2]} {}`, 0, "behind the end of the text"},
		{`[1, 2]}`, `[1, 2]`, 0, "unexpected end of the text"},
		{`1e3`, `1e999`, 0, "not a number within the bounds"},
		{`1e3`, `NaN`, 0, "where a value should begin"},
		{`"a"`, strings.Repeat("[", 20000) + strings.Repeat("]", 20000), 0, "exceeded max depth"},
	} {
		text := strings.Replace(good, c.from, c.to, 1)
		var v whole
		err := Read([]byte(text), &v, c.rules)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%.60s for %s: %v", c.to, c.from, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%.60s for %s: %v, want %q", c.to, c.from, err, c.want)
		case err != nil && !strings.HasPrefix(err.Error(), "line "):
			t.Errorf("no place: %v", err)
		}
	}
	_ = whole{}.own
}

// TestIn: an error about a value stands at its place, also deep down and inside of another error.
func TestIn(t *testing.T) {
	text := []byte("{\n \"a\": [{\"b.c\": 1},\n  {\"b.c\": 2}]}")
	bad := errors.New("it is bad")
	for _, c := range []struct {
		err  error
		want string
	}{
		{In("a[1].b.c", bad), "line 3, column 11: it is bad"},
		{fmt.Errorf("here: %w", In("a[0]", bad)), "line 2, column 8: here: it is bad"},
		{In("a", bad), "line 2, column 7: it is bad"},
		{In("a[2]", bad), "it is bad"}, {In("", bad), "it is bad"}, {bad, "it is bad"},
	} {
		if got := Explain(text, c.err); got.Error() != c.want {
			t.Errorf("%v, want %s", got, c.want)
		}
	}
}
