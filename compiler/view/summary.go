package view

import (
	"fmt"
	"html"
	"strings"

	"github.com/megatrain/mtc/compiler/schedule"
)

// head is the page's heading: the model in a line or two.
func (p *Page) head() string {
	f := p.Steps[0].File
	var b strings.Builder
	fmt.Fprintf(&b, "<h1>%s</h1>\n<p>", html.EscapeString(f.Model))
	parts := []string{schedule.Count(f.Params) + " parameters", f.Placement, "target " + f.Target}
	if f.Precision != "" {
		parts = append(parts, f.Precision)
	}
	parts = append(parts, fmt.Sprintf("%d rows of %d tokens a step, in %d of %d", f.Batch, f.Seq, f.Micros, f.Rows))
	if f.Groups > 1 {
		parts = append(parts, fmt.Sprintf("%d groups", f.Groups))
	}
	if f.Clip {
		parts = append(parts, "clipped")
	}
	b.WriteString(html.EscapeString(strings.Join(parts, " · ")))
	b.WriteString("</p>")
	return b.String()
}

// summary is the step in tables, which also read without the script and on paper.
func (p *Page) summary() string {
	var b strings.Builder
	for _, t := range p.Steps {
		t.htmlStep(&b)
	}
	return b.String()
}

// table writes rows of cells that are text already; the columns from `right` on are numbers.
func table(b *strings.Builder, caption string, right int, head []string, rows [][]string) {
	fmt.Fprintf(b, "<table><caption>%s</caption><thead><tr>", html.EscapeString(caption))
	class := func(i int) string {
		if i >= right {
			return ` class="n"`
		}
		return ""
	}
	for i, h := range head {
		fmt.Fprintf(b, `<th scope="col"%s>%s</th>`, class(i), html.EscapeString(h))
	}
	b.WriteString("</tr></thead><tbody>\n")
	for _, r := range rows {
		b.WriteString("<tr>")
		for i, c := range r {
			fmt.Fprintf(b, "<td%s>%s</td>", class(i), html.EscapeString(c))
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</tbody></table>\n")
}

func (t *Step) htmlStep(b *strings.Builder) {
	fmt.Fprintf(b, "<section><h2>%s</h2>\n<p><strong>%s</strong> a step", esc("%s", t.Origin()), esc("%s", Seconds(t.Line.Seconds)))
	if t.Line.Rate > 0 {
		b.WriteString(esc(", %.0f tokens/s", t.Line.Rate))
	}
	if t.Line.Bound != "" {
		b.WriteString(esc(", bound by %s", t.Line.Bound))
	}
	if x := finite(t.Overlap()); x != nil {
		b.WriteString(esc("; %s of copies and host work run under computation", Percent(*x)))
	}
	b.WriteString(".</p>\n<div class=\"tables\">\n")
	var rows [][]string
	for _, u := range t.Line.Lanes {
		rows = append(rows, []string{u.Lane, Seconds(u.Busy), Seconds(u.Hidden), Seconds(u.Exposed), share(u.Busy, t.Line.Seconds), fmt.Sprint(u.Tasks)})
	}
	table(b, "Lanes", 1, []string{"lane", "busy", "hidden", "exposed", "of step", "tasks"}, rows)
	rows = nil
	for _, p := range t.PathParts() {
		rows = append(rows, []string{p.Kind, p.Lane, fmt.Sprint(p.Tasks), Seconds(p.Seconds), share(p.Seconds, t.Line.Seconds)})
	}
	table(b, "Critical path", 2, []string{"does", "lane", "tasks", "time", "share"}, rows)
	rows = nil
	all := costs(t.rows(t.Slack()))
	for _, r := range all[:min(10, len(all))] {
		rows = append(rows, []string{r.What, r.Span, fmt.Sprint(r.Tasks), Seconds(r.Seconds), Percent(r.Share), slackText(r.Slack)})
	}
	lines := t.Lines()
	table(b, "Costliest tasks", 2, []string{"does", "line", "tasks", "time", "share", "least slack"}, rows)
	rows = nil
	for _, l := range lines[:min(10, len(lines))] {
		rows = append(rows, []string{or(l.Span, "none"), some(l.Kernels, 44), string(l.Bound), Seconds(l.Seconds), Percent(l.Share)})
	}
	if len(rows) > 0 {
		table(b, "Costliest lines", 3, []string{"line", "kernels", "bound by", "time", "share"}, rows)
	}
	for _, m := range t.Memories() {
		if m.Reserved == 0 {
			continue
		}
		rows = nil
		for _, g := range m.AtPeak {
			rows = append(rows, []string{g.Purpose, fmt.Sprint(g.Buffers), bytesText(g.Bytes)})
		}
		table(b, fmt.Sprintf("%s memory: %s of %s alive at %s", m.Name, bytesText(m.Peak.Bytes), bytesText(m.Reserved), Seconds(m.Peak.At)), 1,
			[]string{"alive at the peak", "buffers", "bytes"}, rows)
	}
	b.WriteString("</div></section>\n")
}
