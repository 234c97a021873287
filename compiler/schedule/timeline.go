package schedule

import (
	"fmt"
	"io"
	"strings"
)

// letters of a timeline, by kind.
var letters = map[string]byte{
	"forward": 'F', "recompute": 'R', "backward": 'B', "loss": 'L', "eval_loss": 'L', "infer": 'I', "advance": 'M',
	"feed": 'f', "prefetch": 'P', "norm": 'n', "offload": 'O', "accumulate": 'A', "reduce": 'r',
	"report": 'r', "update": 'U', "save": 'S', "restore": 'T', "round": 'h',
}

// WriteTimeline draws a list over time, a line for each lane, on the target's nominal machine.
// A column shows what the lane did for most of it: a letter where it was busy for at least
// half of the column, ':' for less, '.' for nothing.
func (f *File) WriteTimeline(w io.Writer, list string) {
	const columns = Width - 16
	m := Nominal(f.Target)
	period := f.Simulate(list, m)
	start, end := period.Start, period.End
	if len(period.Runs) == 0 {
		fmt.Fprintf(w, "%s has no tasks: nothing is left over for it\n", list)
		return
	}
	if !(end > start) {
		fmt.Fprintf(w, "%s takes no time on the machine that the picture is drawn for\n", list)
		return
	}
	column := (end - start) / columns
	fmt.Fprintf(w, "%s, %s a column at %sFLOP/s, copies %s/s, host %s/s\n", list,
		duration(column), short(int64(m.FLOPs)), decimal(m.Link), decimal(m.Host))
	used := map[byte]string{}
	for _, lane := range f.Lanes {
		var cells [columns]map[byte]float64
		busy := 0.0
		for _, r := range period.Runs {
			t := &f.Tasks[r.Task]
			r.Start, r.End = max(r.Start, start), min(r.End, end)
			if t.Lane != lane || r.End <= r.Start {
				continue
			}
			busy += r.End - r.Start
			c := letters[kindOf(t)]
			used[c] = kindOf(t)
			lo := int((r.Start - start) / column)
			for i := lo; i < columns && start+float64(i)*column < r.End; i++ {
				part := min(r.End, start+float64(i+1)*column) - max(r.Start, start+float64(i)*column)
				if cells[i] == nil {
					cells[i] = map[byte]float64{}
				}
				cells[i][c] += part
			}
		}
		line := make([]byte, columns)
		for i, cell := range cells {
			line[i] = draw(cell, column)
		}
		fmt.Fprintf(w, "%-8s|%s|%4.0f%%\n", lane, line, 100*busy/(end-start))
	}
	var legend []string
	for _, c := range "fPFRLBIhnOArUST" {
		if kind, ok := used[byte(c)]; ok {
			legend = append(legend, fmt.Sprintf("%c %s", c, kind))
		}
	}
	fmt.Fprintln(w, wrap(strings.Join(legend, "  "), Width))
}

// draw is a column's letter.
func draw(cell map[byte]float64, column float64) byte {
	best, most, all := byte('.'), 0.0, 0.0
	for _, c := range "fPFRLBIhnOArUST" {
		x := cell[byte(c)]
		all += x
		if x > most {
			best, most = byte(c), x
		}
	}
	switch {
	case all >= column/2:
		return best
	case all > 0:
		return ':'
	}
	return '.'
}

// wrap breaks a text between double spaces.
func wrap(s string, width int) string {
	var out, line string
	for _, part := range strings.Split(s, "  ") {
		switch {
		case line == "":
			line = part
		case len(line)+2+len(part) > width:
			out += line + "\n"
			line = part
		default:
			line += "  " + part
		}
	}
	return out + line
}

func duration(s float64) string {
	switch {
	case s < 1e-3:
		return threeDigits(s*1e6) + " us"
	case s < 1:
		return threeDigits(s*1e3) + " ms"
	}
	return threeDigits(s) + " s"
}

// decimal writes a rate in decimal units, as links are sold.
func decimal(x float64) string { return short(int64(x)) + "B" }
