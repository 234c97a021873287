package jinja

import (
	"runtime/debug"
	"testing"
	"time"

	"github.com/megatrain/mtc/tools/cputime"
)

// A template cannot take a machine's memory or time, whatever it does.
func TestHostileTemplatesEnd(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 30))
	defer func(n int, m int64) { maxSteps, maxOutput = n, m }(maxSteps, maxOutput)
	maxSteps, maxOutput = 1_000_000, 8<<20
	grow := func(what string) string {
		return "{% set ns = namespace(s='aaaaaaaaaa', l=[1]) %}{% for i in range(100) %}{% set ns." + what + " %}{% endfor %}"
	}
	for name, text := range map[string]string{
		"a macro that calls itself":   "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}",
		"two that call each other":    "{% macro f(x) %}{{ g(x) }}{% endmacro %}{% macro g(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}",
		"a text that doubles":         grow("s = ns.s + ns.s") + "{{ ns.s }}",
		"one with a tilde":            grow("s = ns.s ~ ns.s") + "{{ ns.s }}",
		"a list that doubles":         grow("l = ns.l + ns.l"),
		"lists of lists":              grow("l = [ns.l, ns.l]") + "{{ ns.l }}",
		"lists of lists, as JSON":     grow("l = [ns.l, ns.l]") + "{{ ns.l | tojson | length }}",
		"lists of lists, compared":    grow("l = [ns.l, ns.l]") + "{% set a = ns.l %}" + grow("l = [ns.l, ns.l]") + "{{ a == ns.l }}",
		"a list in a list, and so on": "{% set ns = namespace(l=1) %}{% for i in range(100000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l }}",
		"many times":                  "{{ 'a' * 10000000000 }}",
		"times times":                 "{{ ('a' * 100000000) * 100000000000 }}",
		"a list many times":           "{{ [1] * 10000000000 }}",
		"an empty one more often":     "{{ [] * 9000000000000000000 }}",
		"a long range":                "{% for i in range(1000000000) %}x{% endfor %}",
		"a range past the end":        "{% for i in range(-9223372036854775807, 9223372036854775807) %}x{% endfor %}",
		"a range up to the end":       "{% for i in range(9223372036854775800, 9223372036854775807, 5) %}x{% endfor %}",
		"loops in loops":              "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
		"replacements":                "{{ ('a' * 20000) | replace('a', 'b' * 20000) | replace('b', 'c' * 20000) }}",
		"a method's":                  "{{ ('a' * 20000).replace('a', 'b' * 20000).replace('b', 'c' * 20000) }}",
		"joins":                       "{{ range(99999) | join('a' * 100000) }}",
		"a method's join":             "{{ ('a' * 1000000).join(['x'] * 10000) }}",
		"indents":                     "{{ ('a\n' * 10000000) | indent(900) }}",
		"a search in a search":        "{% for i in range(99999) %}{% if i in range(99999) %}{% endif %}{% endfor %}",
		"unique":                      "{{ range(99999) | unique | list | length }}",
		"texts that are copied":       "{% set s = 'a' * 5000000 %}{% for i in range(99999) %}{% set t = s ~ i %}{% endfor %}",
		"widths":                      "{{ '%99999999s' % 'a' }}{{ ('%500000s' * 9000) % 'a' }}",
		"captures":                    "{% for i in range(99999) %}{% set s %}{{ 'a' * 1000000 }}{% endset %}{% endfor %}",
	} {
		var err error
		took := cputime.Of(func() {
			var tm *Template
			if tm, err = Compile(text); err == nil {
				_, _, err = tm.Render(nil)
			}
		})
		if err == nil {
			t.Errorf("%s: it rendered", name)
		}
		if took > 10*time.Second {
			t.Errorf("%s: %v", name, took)
		}
		t.Logf("%-28s %8v  %v", name, took.Round(time.Millisecond), err)
		debug.FreeOSMemory()
	}
}
