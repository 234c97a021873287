package view

import (
	"fmt"
	"math"
	"strings"

	"github.com/megatrain/mtc/compiler/schedule"
	"github.com/megatrain/mtc/runtime/plan"
)

// Kind is what a task counts as: the function of a compute task, else its kind.
func Kind(t *plan.Task) string {
	if t.Kind == plan.Compute {
		return t.Func.String()
	}
	return t.Kind.String()
}

// Subject is the slab or the unit that a task is about, "" for none.
func Subject(p *plan.Plan, t *plan.Task) string {
	switch {
	case t.Slab >= 0 && t.Slab < len(p.Slabs):
		return p.Slabs[t.Slab].Name
	case t.Unit >= 0 && t.Unit < len(p.Units):
		return p.Units[t.Unit].Name
	}
	return ""
}

// Title names a task in a few words: "backward layer[3] micro 1".
func Title(p *plan.Plan, t *plan.Task) string {
	s := Kind(t)
	if x := Subject(p, t); x != "" {
		s += " " + x
	}
	if t.Micro >= 0 && p.Micros > 1 {
		s += fmt.Sprintf(" micro %d", t.Micro)
	}
	if t.Back == 1 {
		s += "'"
	}
	return s
}

// Place is the line of the .mt that a task is from, "" for none.
func Place(p *plan.Plan, t *plan.Task) string {
	if t.Span >= 0 && t.Span < len(p.Spans) {
		return p.Spans[t.Span]
	}
	return ""
}

// Width is the width of everything printed as text, in columns.
const Width = schedule.Width

// Seconds writes a time with three digits that count.
func Seconds(s float64) string {
	a := math.Abs(s)
	switch {
	case a == 0 || math.IsNaN(s):
		return "0"
	case a < 999.5e-9:
		return digits(s*1e9) + " ns"
	case a < 999.5e-6:
		return digits(s*1e6) + " us"
	case a < 999.5e-3:
		return digits(s*1e3) + " ms"
	case a < 1e6:
		return digits(s) + " s"
	}
	return fmt.Sprintf("%.3g s", s)
}

// Rate writes an amount a second in decimal units: "1.24 TFLOP/s".
func Rate(x float64, unit string) string {
	prefix := []string{"", "k", "M", "G", "T", "P", "E"}
	k := 0
	for x >= 999.5 && k < len(prefix)-1 {
		x /= 1000
		k++
	}
	return digits(x) + " " + prefix[k] + unit
}

func digits(x float64) string {
	switch a := math.Abs(x); {
	case a < 9.995:
		return fmt.Sprintf("%.2f", x)
	case a < 99.95:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

// Percent writes a share.
func Percent(x float64) string {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return "-"
	case x != 0 && math.Abs(x) < 0.0995:
		return fmt.Sprintf("%.1f %%", 100*x)
	}
	return fmt.Sprintf("%.0f %%", 100*x)
}

// Change writes what something grew by: "+3.1 %".
func Change(from, to float64) string {
	if from == 0 {
		if to == 0 {
			return "0 %"
		}
		return "new"
	}
	if math.Abs(to/from-1) < 5e-4 {
		return "same"
	}
	if to/from >= 999.5 {
		return "> 999 x"
	}
	if to/from >= 9.995 {
		return fmt.Sprintf("%.3g x", to/from)
	}
	return signed(Percent(to/from-1), to-from)
}

func signed(text string, x float64) string {
	if x > 0 && !strings.HasPrefix(text, "-") {
		return "+" + text
	}
	return text
}

// clip shortens a text to n columns, its middle going.
func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	head := (n - 1) / 2
	return string(r[:head]) + "~" + string(r[len(r)-(n-1-head):])
}

// pattern is a name with every number in it as a star: equal ones are of one kind.
func pattern(name string) string {
	var b strings.Builder
	in := false
	for _, c := range name {
		digit := c >= '0' && c <= '9'
		switch {
		case !digit:
			b.WriteRune(c)
		case !in:
			b.WriteByte('*')
		}
		in = digit
	}
	return b.String()
}
