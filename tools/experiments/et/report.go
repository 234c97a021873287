package main

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// quantile is that of Student's t for a two-sided interval of 95 %, by degrees of freedom.
var quantile = []float64{0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262}

// spread is the mean and the standard deviation of some numbers.
func spread(x []float64) (mean, sd float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		sd += (v - mean) * (v - mean)
	}
	if len(x) > 1 {
		return mean, math.Sqrt(sd / float64(len(x)-1))
	}
	return mean, 0
}

// paired is the mean difference of two arms over the seeds that both have, and the half width
// of its confidence interval; NaN where there are too few.
func paired(a, b map[int64]float64) (diff, half float64, n int) {
	var d []float64
	for _, seed := range slices.Sorted(maps.Keys(a)) {
		if y, ok := b[seed]; ok {
			d = append(d, a[seed]-y)
		}
	}
	if len(d) == 0 {
		return math.NaN(), math.NaN(), 0
	}
	mean, sd := spread(d)
	if len(d) < 2 || len(d) > len(quantile) {
		return mean, math.NaN(), len(d)
	}
	return mean, quantile[len(d)-1] * sd / math.Sqrt(float64(len(d))), len(d)
}

// against is an arm's difference to the baseline, with its interval where there are two seeds.
func against(by map[string]map[int64]float64, arm, baseline string) string {
	diff, half, n := paired(by[arm], by[baseline])
	switch {
	case arm == baseline || n == 0:
		return "-"
	case n == 1:
		return fmt.Sprintf("%+.4f", diff)
	}
	return fmt.Sprintf("%+.4f ± %.4f", diff, half)
}

// write writes the table and a figure.
func write(out, path string, m *manifest, done []result) error {
	if path == "" {
		path = filepath.Join(out, "et.md")
	}
	by, gapOf := map[string]map[int64]float64{}, map[string]map[int64]float64{}
	for _, r := range done {
		if by[r.Arm] == nil {
			by[r.Arm], gapOf[r.Arm] = map[int64]float64{}, map[int64]float64{}
		}
		by[r.Arm][r.Seed], gapOf[r.Arm][r.Seed] = r.Eval, r.Eval-r.Train
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| arm | seeds | evaluation loss | sd | less %s, 95 %% | evaluation less training | less %s, 95 %% | experts a token | products, of dense | max vio | cv | no expert |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n", m.Baseline, m.Baseline)
	for _, a := range m.Arms {
		var evals, gaps, fans, vios, cvs, none []float64
		for _, r := range done {
			if r.Arm == a.Name {
				evals, gaps = append(evals, r.Eval), append(gaps, r.Eval-r.Train)
				fans, vios = append(fans, r.Fan), append(vios, r.MaxVio)
				cvs, none = append(cvs, r.CV), append(none, r.None)
			}
		}
		if len(evals) == 0 {
			continue
		}
		mean, sd := spread(evals)
		scatter := "-" // of one run there is none
		if len(evals) > 1 {
			scatter = fmt.Sprintf("%.4f", sd)
		}
		gap, _ := spread(gaps)
		fan, _ := spread(fans)
		vio, _ := spread(vios)
		cv, _ := spread(cvs)
		no, _ := spread(none)
		usage := "- | 1.000 | - | - | -"
		if a.Router != "none" {
			usage = fmt.Sprintf("%.3f | %.3f | %.2f | %.3f | %.1f %%", fan, (m.Products+(fan-1)*m.Expert)/m.Products, vio, cv, 100*no)
		}
		fmt.Fprintf(&b, "| %s | %d | %.4f | %s | %s | %+.4f | %s | %s |\n",
			a.Name, len(evals), mean, scatter, against(by, a.Name, m.Baseline), gap, against(gapOf, a.Name, m.Baseline), usage)
	}
	b.WriteString(curves(m, done))
	fmt.Print("\n" + b.String())
	if err := os.WriteFile(path, []byte(b.String()), 0o666); err != nil {
		return err
	}
	return os.WriteFile(strings.TrimSuffix(path, ".md")+".svg", []byte(figure(m, by)), 0o666)
}

// figure draws each run's evaluation loss, a column an arm.
func figure(m *manifest, by map[string]map[int64]float64) string {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, runs := range by {
		for _, x := range runs {
			lo, hi = min(lo, x), max(hi, x)
		}
	}
	if hi-lo < 1e-6 {
		lo, hi = lo-0.5, hi+0.5
	}
	const wide, high, left, bottom = 900.0, 360.0, 60.0, 40.0
	py := func(v float64) float64 { return 20 + (hi-v)/(hi-lo)*(high-bottom-40) }
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" font-size=\"12\">\n", wide, high)
	for k := range 5 {
		v := lo + (hi-lo)*float64(k)/4
		fmt.Fprintf(&b, "<line x1=\"%.0f\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/><text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%.3f</text>\n", left, wide, py(v), py(v), left-6, py(v)+4, v)
	}
	step := (wide - left) / float64(len(m.Arms))
	for i, a := range m.Arms {
		x := left + step*(float64(i)+0.5)
		fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n", x, high-bottom/2, a.Name)
		for _, seed := range m.Seeds {
			if v, ok := by[a.Name][seed]; ok {
				fmt.Fprintf(&b, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"#3a6ea5\" fill-opacity=\"0.7\"><title>seed %d: %.4f</title></circle>\n", x, py(v), seed, v)
			}
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}
