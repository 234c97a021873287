package telemetry

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Width is the most columns that this package writes.
const Width = 80

// Line is a step for people, at most Width columns for numbers of usual size:
//
//	step  120/1000  loss 2.3456  norm 0.81  lr 6.0e-4  812 ms  10.1k tok/s  3m20s
//
// The last field is the time the run still needs, absent when it is not known (left < 0).
func (s Step) Line(steps int64, left time.Duration) string {
	total := strconv.FormatInt(steps, 10)
	var b strings.Builder
	fmt.Fprintf(&b, "step %*d/%s  loss %s  norm %s  lr %s  %s  %s tok/s", len(total), s.Step, total,
		fixed(s.Loss, 6), fixed(s.GradNorm, 4), exponent(s.LR), milliseconds(s.Seconds), thousands(s.TokensPerSecond()))
	if s.Skipped {
		b.WriteString("  skipped")
	} else if left >= 0 {
		b.WriteString("  " + Duration(left))
	}
	return b.String()
}

// Line is an evaluation for people: the loss in nats a token and its perplexity.
func (e Eval) Line(steps int64) string {
	total := strconv.FormatInt(steps, 10)
	return fmt.Sprintf("eval %*d/%s  loss %s  perplexity %s  over %s tokens  %s", len(total), e.Step, total,
		fixed(e.Loss, 6), fixed(math.Exp(e.Loss), 5), Group(e.Tokens), milliseconds(e.Seconds))
}

// fixed writes v with as many decimals as give it `width` columns, at most four.
func fixed(v float64, width int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Sprintf("%*s", width, strings.ToLower(strconv.FormatFloat(v, 'f', -1, 64)))
	}
	for d := min(4, width-2); d > 0; d-- {
		if s := strconv.FormatFloat(v, 'f', d, 64); len(s) <= width {
			return s
		}
	}
	if s := strconv.FormatFloat(v, 'f', 0, 64); len(s) <= width {
		return fmt.Sprintf("%*s", width, s)
	}
	return strconv.FormatFloat(v, 'e', 1, 64)
}

// exponent is "6.0e-4": two digits and an exponent without padding.
func exponent(v float64) string {
	s := strconv.FormatFloat(v, 'e', 1, 64)
	mantissa, exp, ok := strings.Cut(s, "e")
	n, err := strconv.Atoi(exp)
	if !ok || err != nil {
		return s // not finite
	}
	return fmt.Sprintf("%se%d", mantissa, n)
}

// thousands is a rate in three digits: "812", "10.1k", "164k", "1.25M".
func thousands(v float64) string {
	for _, unit := range []string{"", "k", "M", "G"} {
		switch {
		case v < 9.995 && unit != "":
			return fmt.Sprintf("%.2f%s", v, unit)
		case v < 99.95 && unit != "":
			return fmt.Sprintf("%.1f%s", v, unit)
		case v < 999.5:
			return fmt.Sprintf("%.0f%s", v, unit)
		}
		v /= 1e3
	}
	return fmt.Sprintf("%.0fT", v)
}

func milliseconds(s float64) string {
	switch ms := s * 1e3; {
	case ms < 9.995:
		return fmt.Sprintf("%.2f ms", ms)
	case ms < 99_999:
		return fmt.Sprintf("%.0f ms", ms)
	default:
		return fmt.Sprintf("%.0f s", s)
	}
}

// Duration writes a time in two units: "42s", "3m20s", "5h07m", "2d03h", "3y120d".
func Duration(d time.Duration) string { return Seconds(d.Seconds()) }

// Seconds writes a time of any length as Duration does; of 1,000 years and more, the years.
func Seconds(x float64) string {
	const day, year = 86400, 365 * 86400
	switch years := x / year; {
	case years >= 1e15:
		return fmt.Sprintf("%.0e years", years)
	case years >= 1000:
		return Group(int64(years)) + " years"
	}
	s := int64(math.Round(x))
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	case s < day:
		return fmt.Sprintf("%dh%02dm", s/3600, s%3600/60)
	case s < year:
		return fmt.Sprintf("%dd%02dh", s/day, s%day/3600)
	}
	return fmt.Sprintf("%dy%03dd", s/year, s%year/day)
}

// Group writes n with commas between thousands.
func Group(n int64) string {
	s := strconv.FormatInt(n, 10)
	lead := 0
	if n < 0 {
		lead = 1
	}
	for i := len(s) - 3; i > lead; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Count is "1 file", "2 files".
func Count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Group(n) + " " + noun + "s"
}

// Bytes writes a size in the largest binary unit that leaves a number of 1 or more.
func Bytes(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	v, u := float64(n), 0
	for v >= 1024 && u < len(units)-1 {
		v, u = v/1024, u+1
	}
	if u == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", v, units[u])
}

// Setting is a row of the settings table.
type Setting struct{ Name, Value string }

// Table draws settings in a border, Width columns at most; long values are wrapped at spaces
// where there are some. A Setting with an empty Name continues the one above; one with both
// empty is a rule.
func Table(rows []Setting) string {
	name, value := 0, 0
	for _, r := range rows {
		name = max(name, utf8.RuneCountInString(r.Name))
	}
	room := Width - name - 7 // "| name | value |"
	var lines []Setting
	for _, r := range rows {
		for i, part := range wrap(r.Value, room) {
			if i > 0 {
				r.Name = ""
			}
			lines = append(lines, Setting{r.Name, part})
			value = max(value, utf8.RuneCountInString(part))
		}
	}
	rule := "+" + strings.Repeat("-", name+2) + "+" + strings.Repeat("-", value+2) + "+\n"
	var b strings.Builder
	b.WriteString(rule)
	for _, l := range lines {
		if l == (Setting{}) {
			b.WriteString(rule)
			continue
		}
		fmt.Fprintf(&b, "| %s | %s |\n", pad(l.Name, name), pad(l.Value, value))
	}
	b.WriteString(rule)
	return b.String()
}

// pad fills with spaces to a width in runes.
func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}

// wrap cuts text into lines of at most width runes.
func wrap(text string, width int) []string {
	var out []string
	rest := []rune(text)
	for len(rest) > width {
		cut := width
		for i := width; i > width/2; i-- {
			if rest[i] == ' ' {
				cut = i
				break
			}
		}
		out = append(out, strings.TrimRight(string(rest[:cut]), " "))
		rest = []rune(strings.TrimLeft(string(rest[cut:]), " "))
	}
	return append(out, string(rest))
}
