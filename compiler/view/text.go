package view

import (
	"fmt"
	"io"
	"math"
	"slices"
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
	t.writeLines(w)
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
	if t.Machine != nil && t.Machine.Name != Nominal().Name {
		if lacks := Lacks(t.Plan, t.Machine); lacks != "" {
			for _, line := range fold(fmt.Sprintf("it does not fit %s, which lacks %s", t.Machine.Name, lacks), Width) {
				fmt.Fprintln(w, line)
			}
		}
	}
	if !t.Line.Settled {
		fmt.Fprintln(w, "the steps do not settle: this is the last one simulated")
	}
}

// writeLanes prints busy, hidden and exposed time.
func (t *Step) writeLanes(w io.Writer) {
	fmt.Fprintf(w, "%-10s %10s %10s %10s %10s %8s\n", "lane", "busy", "hidden", "exposed", "of step", "tasks")
	for _, u := range t.Line.Lanes {
		fmt.Fprintf(w, "%-10s %10s %10s %10s %10s %8d\n", u.Lane, Seconds(u.Busy), Seconds(u.Hidden), Seconds(u.Exposed), share(u.Busy, t.Line.Seconds), u.Tasks)
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

// CostRow is the tasks of a step that do the same thing on different layers and micro-batches.
type CostRow struct {
	What    string   `json:"what"`  // "backward layer[*]"
	First   int      `json:"first"` // the costliest of them
	Tasks   int      `json:"tasks"`
	Lane    string   `json:"lane"`
	Seconds float64  `json:"seconds"` // of all
	Share   float64  `json:"share"`
	Slack   *float64 `json:"slack"` // the least
	Span    string   `json:"span"`
}

// costs lists the tasks of a step by kind, those that take the longest together first.
func costs(tasks []TaskRow) []CostRow {
	type kind struct{ kind, lane, pattern, span string }
	index := map[kind]int{}
	subject := map[kind]string{}
	patterns := map[string]string{}
	var rows []CostRow
	for _, r := range tasks {
		like, known := patterns[r.Subject]
		if !known {
			like = pattern(r.Subject)
			patterns[r.Subject] = like
		}
		key := kind{r.Kind, r.Lane, like, r.Span}
		k, ok := index[key]
		if !ok {
			k = len(rows)
			index[key], subject[key] = k, r.Subject
			rows = append(rows, CostRow{First: r.Task, Lane: r.Lane, Span: r.Span, What: strings.TrimSpace(r.Kind + " " + r.Subject)})
		}
		x := &rows[k]
		if subject[key] != r.Subject {
			x.What = r.Kind + " " + like
		}
		x.Tasks++
		x.Seconds += r.Seconds
		x.Share += r.Share
		if r.Slack != nil && (x.Slack == nil || *r.Slack < *x.Slack) {
			x.Slack = r.Slack
		}
	}
	slices.SortStableFunc(rows, func(a, b CostRow) int { return descending(a.Seconds, b.Seconds) })
	return rows
}

// slackText writes a slack.
func slackText(slack *float64) string {
	if slack == nil {
		return "any"
	}
	return Seconds(*slack)
}

// writeCostliest prints the ten rows that cost the most.
func (t *Step) writeCostliest(w io.Writer, slack []float64) {
	rows := costs(t.rows(slack))
	fmt.Fprintf(w, "%-27s %6s %10s %7s %8s  %s\n", "costliest tasks", "tasks", "time", "share", "slack", "at")
	for _, r := range rows[:min(10, len(rows))] {
		line := fmt.Sprintf("  %-25s %6d %10s %7s %8s  %s", clip(r.What, 25), r.Tasks, Seconds(r.Seconds), Percent(r.Share), slackText(r.Slack), clip(r.Span, 16))
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
	fmt.Fprintln(w, "  slack: the least of the row's tasks; what has none makes the step longer if it\n  takes longer, and nothing ever waits for what has any")
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
		s := fmt.Sprintf("%s memory: %s reserved; at most %s alive, at %s", m.Name, bytesText(m.Reserved), bytesText(m.Peak.Bytes), Seconds(m.Peak.At))
		if m.PeakTask >= 0 {
			s += " in " + Title(t.Plan, &t.Plan.Tasks[m.PeakTask])
		}
		for _, line := range fold(s, Width) {
			fmt.Fprintln(w, line)
		}
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
