package view

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// WriteText prints a step: where its times are from, the timeline, the lanes, the critical
// path, the costliest tasks, and memory.
func (t *Step) WriteText(w io.Writer) {
	t.writeHead(w)
	t.WriteTimeline(w)
	fmt.Fprintln(w)
	t.writeLanes(w)
	fmt.Fprintln(w)
	t.writePath(w)
	fmt.Fprintln(w)
	t.writeCostliest(w, t.Slack())
	fmt.Fprintln(w)
	t.writeMemories(w)
}

func (t *Step) writeHead(w io.Writer) {
	s := fmt.Sprintf("%s, %s: %s", t.Line.List, t.Origin(), Seconds(t.Line.Seconds))
	if t.Line.Rate > 0 {
		s += fmt.Sprintf(", %.0f tokens/s", t.Line.Rate)
	}
	if t.Line.Bound != "" {
		s += ", bound by " + string(t.Line.Bound)
	}
	fmt.Fprintln(w, wrap(s, ", ", Width))
	if m := t.Measured; m != nil && len(m.Steps) > 1 {
		lo, hi := m.Periods[0], m.Periods[0]
		for _, p := range m.Periods {
			lo, hi = min(lo, p), max(hi, p)
		}
		fmt.Fprintf(w, "the median of %d steps, which took %s to %s\n", len(m.Steps), Seconds(lo), Seconds(hi))
	}
	if !t.Line.Settled {
		fmt.Fprintln(w, "the steps do not settle: this is the last one simulated")
	}
}

// writeLanes prints busy, hidden and exposed time.
func (t *Step) writeLanes(w io.Writer) {
	fmt.Fprintf(w, "%-10s %10s %10s %10s %10s %8s\n", "lane", "busy", "hidden", "exposed", "of step", "tasks")
	for _, u := range t.Line.Lanes {
		hidden, exposed := Seconds(u.Hidden), Seconds(u.Exposed)
		if u.Lane == "compute" {
			hidden, exposed = "", ""
		}
		fmt.Fprintf(w, "%-10s %10s %10s %10s %10s %8d\n", u.Lane, Seconds(u.Busy), hidden, exposed, share(u.Busy, t.Line.Seconds), u.Tasks)
	}
	if x := t.Overlap(); math.IsNaN(x) {
		fmt.Fprintln(w, "overlap: no copies, no updates beside the computation")
	} else {
		fmt.Fprintf(w, "overlap: %s of copies and host work run under computation\n", Percent(x))
	}
}

func share(part, all float64) string {
	if all <= 0 {
		return "-"
	}
	return Percent(part / all)
}

// writePath prints the critical path by kind, and how many tasks could take no longer.
func (t *Step) writePath(w io.Writer) {
	parts := t.PathParts()
	n := 0
	for _, p := range parts {
		n += p.Tasks
	}
	fmt.Fprintf(w, "critical path: %d tasks\n", n)
	fmt.Fprintf(w, "  %-12s %-8s %8s %12s %8s\n", "does", "lane", "tasks", "time", "share")
	for _, p := range parts {
		tasks := fmt.Sprint(p.Tasks)
		if p.Lane == "" {
			tasks = ""
		}
		fmt.Fprintf(w, "  %-12s %-8s %8s %12s %8s\n", p.Kind, p.Lane, tasks, Seconds(p.Seconds), share(p.Seconds, t.Line.Seconds))
	}
}

// writeCostliest prints ten rows of tasks, those that do the same thing on different layers
// and micro-batches together.
func (t *Step) writeCostliest(w io.Writer, slack []float64) {
	type row struct {
		first         TaskRow
		tasks         int
		seconds, most float64
		slack         float64 // the least
	}
	index := map[string]int{}
	var rows []*row
	for _, r := range t.rows(slack) {
		key := strings.Join([]string{r.Kind, r.Lane, pattern(r.Subject), r.Span}, "\x00")
		k, ok := index[key]
		if !ok {
			k = len(rows)
			index[key] = k
			rows = append(rows, &row{first: r, slack: math.Inf(1)})
		}
		x := rows[k]
		x.tasks++
		x.seconds += r.Seconds
		x.most = max(x.most, r.Seconds)
		if r.Slack != nil {
			x.slack = min(x.slack, *r.Slack)
		}
	}
	// By what all of a row take.
	for i := 1; i < len(rows); i++ {
		for k := i; k > 0 && rows[k].seconds > rows[k-1].seconds; k-- {
			rows[k], rows[k-1] = rows[k-1], rows[k]
		}
	}
	fmt.Fprintf(w, "%-26s %6s %10s %7s %9s %-15s\n", "costliest tasks", "tasks", "time", "share", "slack", "at")
	for _, r := range rows[:min(10, len(rows))] {
		what := r.first.Kind
		if r.first.Subject != "" {
			s := r.first.Subject
			if r.tasks > 1 && t.several(r.first) {
				s = pattern(s)
			}
			what += " " + s
		}
		at := "never late"
		if !math.IsInf(r.slack, 1) {
			at = Seconds(r.slack)
		}
		line := fmt.Sprintf("  %-24s %6d %10s %7s %9s %-15s", clip(what, 24), r.tasks, Seconds(r.seconds), share(r.seconds, t.Line.Seconds), at, clip(r.first.Span, 17))
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
	fmt.Fprintln(w, "  slack: the least of a row; a task of slack 0 makes the step longer if it takes longer")
}

// several says whether tasks of a row's kind are about different units or slabs.
func (t *Step) several(r TaskRow) bool {
	for i := range t.Len() {
		task := t.Task(i)
		if s := Subject(t.Plan, task); Kind(task) == r.Kind && s != r.Subject && pattern(s) == pattern(r.Subject) {
			return true
		}
	}
	return false
}

// writeMemories prints each memory over the step and what is alive at its peak.
func (t *Step) writeMemories(w io.Writer) {
	for k, m := range t.Memories() {
		if m.Reserved == 0 {
			continue
		}
		if k > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s memory: %s reserved; at most %s alive, at %s", m.Name, bytesText(m.Reserved), bytesText(m.Peak.Bytes), Seconds(m.Peak.At))
		if m.PeakTask >= 0 {
			fmt.Fprintf(w, " in %s", clip(Title(t.Plan, &t.Plan.Tasks[m.PeakTask]), 24))
		}
		fmt.Fprintln(w)
		writeChart(w, &m, t.Line.Seconds, 5)
		for _, g := range m.AtPeak {
			line := fmt.Sprintf("  %-24s %5d %-8s %10s  %s", g.Purpose, g.Buffers, plural(g.Buffers, "buffer"), bytesText(g.Bytes), some(g.Names, 26))
			fmt.Fprintln(w, strings.TrimRight(line, " "))
		}
	}
}

// some lists as many names as n columns hold.
func some(names []string, n int) string {
	s := ""
	for i, name := range names {
		next := name
		if i > 0 {
			next = s + ", " + name
		}
		if len(next) > n || i+1 < len(names) && len(next) > n-5 {
			if i == 0 {
				return clip(name, n)
			}
			return s + ", ..."
		}
		s = next
	}
	return s
}

func plural(n int, what string) string {
	if n == 1 {
		return what
	}
	return what + "s"
}
