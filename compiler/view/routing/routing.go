// Package routing draws what the routers of a run did: one HTML page of SVG figures, without
// scripts and without anything from elsewhere, from the lines of moe.jsonl. By layer: each
// expert's usage against its share, cutoffs or biases, the number of experts a token over the
// run, and against the position in the sequence.
package routing

import (
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/megatrain/mtc/runtime/ops/moe"
)

// Write writes the page. sample may be nil.
func Write(w io.Writer, model string, lines []moe.Line, sample *moe.Sample) error {
	var b strings.Builder
	b.WriteString("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n")
	fmt.Fprintf(&b, "<title>%s: routing</title>\n<style>%s</style></head><body>\n", html.EscapeString(model), style)
	fmt.Fprintf(&b, "<h1>%s: what its routers did</h1>\n", html.EscapeString(model))
	last := lines[len(lines)-1]
	fmt.Fprintf(&b, "<p>%d steps in %d lines. A curve an expert; each point is the mean since the one before.</p>\n", last.Step, len(lines))
	summary(&b, last)
	if sample != nil && len(sample.Bins) > 0 {
		byLoss(&b, sample)
	}
	for i := range last.Layers {
		layer(&b, lines, i)
	}
	b.WriteString("</body></html>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

const style = `
body{font:14px/1.5 system-ui,sans-serif;margin:2em auto;max-width:82em;padding:0 1em;color:#222;background:#fff}
h2{margin:2em 0 .3em;font-size:1.1em}.row{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(360px,100%),360px));gap:1em;align-items:end}figure{margin:0}
figcaption{font-size:.9em;color:#555}figcaption b{font-weight:normal;white-space:nowrap;margin-left:.8em}figcaption i{display:inline-block;width:1em;height:.25em;margin-right:.3em;vertical-align:middle}
svg{max-width:100%;height:auto}svg text{font:11px system-ui,sans-serif;fill:#555}.table{overflow-x:auto}caption{text-align:left}
table{border-collapse:collapse}td,th{padding:.15em .8em;text-align:right;border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}
@media(prefers-color-scheme:dark){body{background:#161616;color:#ddd}figcaption,svg text{color:#aaa;fill:#aaa}td,th{border-color:#333}}
`

// summary is a table of the last line.
func summary(b *strings.Builder, l moe.Line) {
	fmt.Fprintf(b, "<div class=\"table\"><table><caption>Until step %d</caption><tr><th>router</th><th>experts a token</th><th>aims at</th><th>none</th><th>max vio</th><th>CV</th><th>drift</th><th>dead</th><th>starved</th><th>dropped</th><th>balance loss</th><th>z-loss</th></tr>\n", l.Step)
	for _, x := range l.Layers {
		fmt.Fprintf(b, "<tr><td>%s</td><td>%.3f</td><td>%.3f</td><td>%.1f %%</td><td>%.2f</td><td>%.2f</td><td>%.3g</td><td>%d</td><td>%d</td><td>%.2g %%</td><td>%.3g</td><td>%.3g</td></tr>\n",
			html.EscapeString(x.Name), x.Mean, x.Target, 100*x.None, x.MaxVio, x.CV, x.Drift, x.Dead, x.Starved, 100*x.Dropped, x.Balance, x.Z)
	}
	b.WriteString("</table></div>\n")
}

// byLoss draws how many experts tokens had by how hard they were to predict.
func byLoss(b *strings.Builder, s *moe.Sample) {
	fmt.Fprintf(b, "<h2>Experts a token by its loss</h2>\n<p>%d tokens, run one by one as in generation, in %d bins of equally many.</p>\n<div class=\"row\">\n", s.Tokens, len(s.Bins))
	var x, mean []float64
	curves := make([][]float64, len(s.Layers))
	for _, k := range s.Bins {
		x = append(x, k.Loss)
		all := 0.0
		for l, f := range k.Fan {
			curves[l] = append(curves[l], f)
			all += f / float64(len(k.Fan))
		}
		mean = append(mean, all)
	}
	plot(b, figure{title: "mean over the routers", x: x, lines: [][]float64{mean}, zero: true, xname: "loss in nats"})
	plot(b, figure{title: "each router", x: x, lines: curves, names: s.Layers, zero: true, xname: "loss in nats"})
	b.WriteString("</div>\n")
}

// layer draws the figures of one router.
func layer(b *strings.Builder, lines []moe.Line, i int) {
	last := lines[len(lines)-1].Layers[i]
	fmt.Fprintf(b, "<h2>%s</h2>\n<div class=\"row\">\n", html.EscapeString(last.Name))
	var steps []float64
	series := func(pick func(*moe.Layer) []float64) [][]float64 {
		var out [][]float64
		steps = steps[:0]
		for _, l := range lines {
			if i >= len(l.Layers) {
				continue
			}
			steps = append(steps, float64(l.Step))
			for e, x := range pick(&l.Layers[i]) {
				for len(out) <= e {
					out = append(out, nil)
				}
				out[e] = append(out[e], x)
			}
		}
		return out
	}
	n := float64(len(last.Usage))
	usage := series(func(l *moe.Layer) []float64 { return l.Usage })
	plot(b, figure{title: "usage of each expert, and its share (dashed)", x: steps, lines: usage, guide: last.Target / n, guided: true, zero: true, xname: "step"})
	if len(last.Threshold) > 0 {
		cut := series(func(l *moe.Layer) []float64 { return l.Threshold })
		plot(b, figure{title: "cutoffs", x: steps, lines: cut, xname: "step"})
	} else {
		bias := series(func(l *moe.Layer) []float64 { return l.Bias })
		plot(b, figure{title: "biases", x: steps, lines: bias, xname: "step"})
	}
	fan := series(func(l *moe.Layer) []float64 { return []float64{l.Mean, l.None} })
	plot(b, figure{title: "fan-out over the run; its aim is dashed", names: []string{"experts a token", "share of tokens without any"}, x: steps, lines: fan, guide: last.Target, guided: true, zero: true, xname: "step"})
	bars(b, "share of tokens by number of experts, last line", last.Fan)
	var at []float64
	for k := range last.Position {
		at = append(at, (float64(k)+0.5)/float64(len(last.Position)))
	}
	plot(b, figure{title: "experts a token by position in the sequence, last line", x: at, lines: [][]float64{last.Position}, guide: last.Target, guided: true, zero: true, xname: "of the sequence"})
	b.WriteString("</div>\n")
}
