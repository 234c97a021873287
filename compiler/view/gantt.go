package view

import (
	"fmt"
	"io"
	"strings"

	"github.com/megatrain/mtc/runtime/device"
)

// letters of a timeline, by kind, in the order of the legend.
var letters = []struct {
	letter byte
	kind   string
}{
	{'f', "feed"}, {'P', "prefetch"}, {'F', "forward"}, {'R', "recompute"}, {'R', "again"}, {'h', "round"}, {'L', "loss"}, {'L', "eval_loss"},
	{'B', "backward"}, {'I', "infer"}, {'M', "advance"}, {'n', "norm"}, {'O', "offload"}, {'A', "accumulate"}, {'r', "reduce"},
	{'r', "report"}, {'U', "update"}, {'S', "save"}, {'T', "restore"},
}

func letter(kind string) byte {
	for _, l := range letters {
		if l.kind == kind {
			return l.letter
		}
	}
	return '?'
}

// WriteTimeline draws the period, a line for each lane. A column shows what the lane did for
// most of it: a letter where it was busy for at least half of the column, ':' for less, '.'
// for nothing. An update of the step before is the same letter as one of this step.
func (t *Step) WriteTimeline(w io.Writer) {
	const columns = Width - 16
	period := t.Line.Seconds
	if len(t.Line.Runs) == 0 || !(period > 0) {
		fmt.Fprintf(w, "%s has no tasks that take time\n", t.Line.List)
		return
	}
	column := period / columns
	used := map[string]bool{}
	for l := range device.NumLanes {
		var cells [columns]map[byte]float64
		busy := 0.0
		for i := range t.Line.Runs {
			r := &t.Line.Runs[i]
			from, to := max(r.Start, 0), min(r.End, period)
			if r.Lane != l || to <= from {
				continue
			}
			busy += to - from
			kind := Kind(&t.Plan.Tasks[r.Task])
			used[kind] = true
			for c := int(from / column); c < columns && float64(c)*column < to; c++ {
				if cells[c] == nil {
					cells[c] = map[byte]float64{}
				}
				cells[c][letter(kind)] += min(to, float64(c+1)*column) - max(from, float64(c)*column)
			}
		}
		line := make([]byte, columns)
		for c, cell := range cells {
			line[c] = mark(cell, column)
		}
		fmt.Fprintf(w, "%-8s|%s|%4.0f %%\n", l, line, 100*busy/period)
	}
	fmt.Fprintf(w, "%-8s 0%*s\n", "", columns-1, Seconds(period))
	var legend []string
	for _, l := range letters {
		if used[l.kind] {
			legend = append(legend, fmt.Sprintf("%c %s", l.letter, l.kind))
		}
	}
	fmt.Fprintln(w, wrap(strings.Join(legend, "  "), "  ", Width))
}

// mark is a column's letter.
func mark(cell map[byte]float64, column float64) byte {
	best, most, all := byte('.'), 0.0, 0.0
	for _, l := range letters {
		x, ok := cell[l.letter]
		if !ok {
			continue
		}
		if x > most {
			best, most = l.letter, x
		}
	}
	for _, x := range cell {
		all += x
	}
	switch {
	case all >= column/2:
		return best
	case all > 0:
		return ':'
	}
	return '.'
}

// wrap breaks a text at its separators.
func wrap(s, sep string, width int) string {
	var out, line string
	for _, part := range strings.Split(s, sep) {
		switch {
		case line == "":
			line = part
		case len(line)+len(sep)+len(part) > width:
			out += strings.TrimRight(line+strings.TrimRight(sep, " "), " ") + "\n"
			line = part
		default:
			line += sep + part
		}
	}
	return out + line
}

// writeChart draws a memory over the period, rows high.
func writeChart(w io.Writer, m *Memory, period float64, rows int) {
	const columns = Width - 16
	if m.Peak.Bytes <= 0 || !(period > 0) {
		return
	}
	// A column shows the most that is alive in it.
	var most [columns]int64
	for i, p := range m.Points {
		end := period
		if i+1 < len(m.Points) {
			end = m.Points[i+1].At
		}
		lo := int(p.At / period * columns)
		for c := max(0, lo); c < columns && (c == lo || float64(c)*period/columns < end); c++ {
			most[c] = max(most[c], p.Bytes)
		}
	}
	for r := rows; r >= 1; r-- {
		line := make([]byte, columns)
		for c := range line {
			line[c] = ' '
			// Half a row rounds up, so that what there is shows.
			if float64(most[c])*float64(rows) >= (float64(r)-0.5)*float64(m.Peak.Bytes) {
				line[c] = '#'
			}
		}
		label := ""
		if r == rows {
			label = bytesText(m.Peak.Bytes)
		}
		fmt.Fprintf(w, "%10s |%s|\n", label, line)
	}
}
