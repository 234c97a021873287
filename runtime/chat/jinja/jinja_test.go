package jinja

import (
	"errors"
	"testing"
)

// A template of any content is refused, or renders or fails with an Error; it never panics and
// never runs without an end.
func FuzzTemplate(f *testing.F) {
	for _, s := range []string{
		"{% for m in messages %}{{ m.role | upper }}{% if not loop.last %}, {% endif %}{% endfor %}",
		"{%- set ns = namespace(a=1) -%}{% set ns.a = ns.a + 1 %}{{ ns.a ~ 'x' }}{% macro f(a, b=2) %}{{ a }}{{ caller() if caller }}{% endmacro %}{% call f(1) %}y{% endcall %}",
		"{% generation %}{{ messages[0]['content'][::-1].split('a', 1) | tojson(indent=2) }}{% endgeneration %}{% raw %}{{ }}{% endraw %}{# c #}",
		"{{ -1 % 3 ** 2 // 1.5 if x is defined and 1 < 2 <= 3 else [1, (2,), {'a': none}] }}{% filter trim | upper %} a {% endfilter %}",
		"{% for a, b in {'x': 1}.items() if b == 1 %}{% break %}{% else %}{% endfor %}{{ '%s %d' % ('a', 2) }}{{ range(3) | map('string') | list }}",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<12 {
			return
		}
		tm, err := Compile(text)
		if err == nil {
			m := NewDict()
			m.Set("role", "user")
			m.Set("content", "abc")
			_, _, err = tm.Render(map[string]any{"messages": []any{m}, "n": int64(3)})
		}
		var e *Error
		if err != nil && !errors.As(err, &e) {
			t.Errorf("%T: %v", err, err)
		}
	})
}

func TestStrftime(t *testing.T) {
	tm, err := Compile("{{ strftime_now('%Y') | length }}")
	if err != nil {
		t.Fatal(err)
	}
	if s, _, err := tm.Render(nil); s != "4" || err != nil {
		t.Errorf("%q, %v", s, err)
	}
}
