package routing

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// figure is curves over one axis.
type figure struct {
	title, xname string
	x            []float64
	lines        [][]float64
	names        []string // of the lines, where they are few
	guide        float64  // a dashed line across
	guided       bool
	zero         bool // the axis begins at 0
}

// Sizes of a figure in pixels: of the whole, and of its margins.
const (
	wide, high               = 360, 200
	left, right, top, bottom = 48, 8, 8, 30
)

// plot draws a figure.
func plot(b *strings.Builder, f figure) {
	lo, hi := math.Inf(1), math.Inf(-1)
	see := func(v float64) {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	for _, l := range f.lines {
		for _, v := range l {
			see(v)
		}
	}
	if f.guided {
		see(f.guide)
	}
	if f.zero {
		see(0)
	}
	if math.IsInf(lo, 0) || len(f.x) == 0 {
		return
	}
	if hi-lo < 1e-9 {
		lo, hi = lo-0.5, hi+0.5
	}
	x0, x1 := f.x[0], f.x[len(f.x)-1]
	if x1 <= x0 {
		x0, x1 = x0-0.5, x0+0.5
	}
	px := func(v float64) float64 { return left + (v-x0)/(x1-x0)*(wide-left-right) }
	py := func(v float64) float64 { return high - bottom - (v-lo)/(hi-lo)*(high-top-bottom) }
	open(b, f.title, f.legend())
	for _, v := range ticks(lo, hi) {
		fmt.Fprintf(b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#8884"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`,
			left, wide-right, py(v), py(v), left-4, py(v)+4, number(v))
	}
	for _, v := range ticks(x0, x1) {
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`, px(v), high-bottom+14, number(v))
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text>`, wide-right, high-2, html.EscapeString(f.xname))
	if f.guided {
		fmt.Fprintf(b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="currentColor" stroke-dasharray="4 3"/>`, left, wide-right, py(f.guide), py(f.guide))
	}
	for i, l := range f.lines {
		var points []string
		for k, v := range l {
			if k < len(f.x) && !math.IsNaN(v) && !math.IsInf(v, 0) {
				points = append(points, fmt.Sprintf("%.1f,%.1f", px(f.x[k]), py(v)))
			}
		}
		color := f.color(i)
		if len(points) == 1 {
			at := strings.SplitN(points[0], ",", 2)
			fmt.Fprintf(b, `<circle cx="%s" cy="%s" r="2" fill="%s"/>`, at[0], at[1], color)
			continue
		}
		fmt.Fprintf(b, `<polyline fill="none" stroke="%s" points="%s"><title>%d</title></polyline>`, color, strings.Join(points, " "), i)
	}
	b.WriteString("</svg></figure>\n")
}

// bars draws shares.
func bars(b *strings.Builder, title string, shares []float64) {
	hi := 0.0
	for _, v := range shares {
		hi = max(hi, v)
	}
	if hi == 0 {
		return
	}
	open(b, title, "")
	step := float64(wide-left-right) / float64(len(shares))
	py := func(v float64) float64 { return high - bottom - v/hi*(high-top-bottom) }
	for _, v := range ticks(0, hi) {
		fmt.Fprintf(b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#8884"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`,
			left, wide-right, py(v), py(v), left-4, py(v)+4, number(v))
	}
	for i, v := range shares {
		name := strconv.Itoa(i)
		if i == len(shares)-1 {
			name += "+"
		}
		x := left + step*float64(i)
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="hsl(210 60%% 50%%)"><title>%.4f</title></rect><text x="%.1f" y="%d" text-anchor="middle">%s</text>`,
			x+1, py(v), step-2, high-bottom-py(v), v, x+step/2, high-bottom+14, name)
	}
	b.WriteString("</svg></figure>\n")
}

// manyNames is how many lines a legend still tells apart.
const manyNames = 8

// legend names the lines, where they are few.
func (f *figure) legend() string {
	if len(f.names) != len(f.lines) || len(f.names) > manyNames {
		return ""
	}
	var b strings.Builder
	for i, n := range f.names {
		fmt.Fprintf(&b, ` <b><i style="background:%s"></i>%s</b>`, f.color(i), html.EscapeString(n))
	}
	return b.String()
}

func (f *figure) color(i int) string {
	return fmt.Sprintf("hsl(%.0f 60%% 50%%)", 360*float64(i)/float64(len(f.lines)))
}

// open begins a figure; legend is HTML.
func open(b *strings.Builder, title, legend string) {
	t := html.EscapeString(title)
	fmt.Fprintf(b, `<figure><figcaption>%s%s</figcaption><svg width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-label="%s">`, t, legend, wide, high, wide, high, t)
}

// ticks are round numbers within a range, four or so.
func ticks(lo, hi float64) []float64 {
	raw := (hi - lo) / 4
	unit := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5, 10} {
		if m*unit >= raw {
			unit *= m
			break
		}
	}
	var out []float64
	for v := math.Ceil(lo/unit) * unit; v <= hi+unit*1e-9 && len(out) < 12; v += unit {
		out = append(out, v)
	}
	return out
}

// number writes a tick.
func number(v float64) string {
	if math.Abs(v) < 1e-12 {
		return "0"
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
