package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/compiler/planner"
	"github.com/megatrain/mtc/compiler/view"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/diag/suggest"
	"github.com/megatrain/mtc/runtime/telemetry"
)

// whatIfKeys are the keys of --what-if, in the order of the table's columns.
var whatIfKeys = []string{"gpu", "link", "device", "host", "batch", "seq"}

// whatIf is a case: a value by key.
type whatIf map[string]string

// readWhatIf reads the flags: KEY=VALUE with commas, a value without a key being one more of the
// key before. All values of all keys are combined, the last key changing fastest.
func readWhatIf(texts []string) ([]whatIf, error) {
	values := map[string][]string{}
	var order []string
	for _, text := range texts {
		key := ""
		for _, part := range strings.Split(text, ",") {
			k, v, ok := strings.Cut(part, "=")
			k, v = strings.TrimSpace(k), strings.TrimSpace(v)
			if !ok && slices.Contains(whatIfKeys, k) { // also behind another key: no value is called so
				return nil, usageErrorf("`--what-if %s`: `%s` has no value", text, k).hint("write `%s=VALUE`", k)
			}
			if !ok {
				k, v = key, k
			}
			switch {
			case k == "":
				return nil, usageErrorf("`--what-if %s`: `%s` has no key", text, part).hint("write KEY=VALUE; keys are %s", suggest.List(whatIfKeys))
			case !slices.Contains(whatIfKeys, k):
				return nil, usageErrorf("`--what-if %s`: there is no key `%s`", text, k).hint("%s", suggest.HintOr(k, whatIfKeys))
			case v == "":
				return nil, usageErrorf("`--what-if %s`: `%s` has no value", text, k).hint("write `%s=VALUE`", k)
			}
			if key = k; !slices.Contains(order, k) {
				order = append(order, k)
			}
			if !slices.Contains(values[k], v) {
				values[k] = append(values[k], v)
			}
		}
	}
	all := []whatIf{{}}
	for _, k := range order {
		var next []whatIf
		for _, c := range all {
			for _, v := range values[k] {
				x := whatIf{k: v}
				for a, b := range c {
					x[a] = b
				}
				next = append(next, x)
			}
		}
		all = next
	}
	if len(all) > mostCases {
		return nil, usageErrorf("`--what-if` asks for %d cases", len(all)).hint("give at most %d", mostCases)
	}
	return all, nil
}

// mostCases bounds a table: a case takes up to some seconds.
const mostCases = 200

// request is what the planner is asked in a case.
func (c whatIf) request(o compileOptions, path string) (planner.Request, error) {
	if gpu := c["gpu"]; gpu != "" {
		m, err := machineFor(gpu, "cuda")
		if err != nil {
			return planner.Request{}, err
		}
		o.Machine, o.Target = gpu, m.Target
	}
	bad := func(key string, err error) error {
		return usageErrorf("`--what-if %s=%s`: %v", key, c[key], err)
	}
	for key, to := range map[string]*int64{"device": &o.Memory, "host": &o.HostMemory} {
		if text := c[key]; text != "" {
			if err := (*byteSize)(to).Set(text); err != nil {
				return planner.Request{}, bad(key, err)
			}
		}
	}
	o.Set = slices.Clone(o.Set)
	for _, key := range []string{"seq", "batch"} {
		text := c[key]
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 {
			return planner.Request{}, bad(key, errors.New("write a number of tokens"))
		}
		if key == "batch" {
			text += " tokens"
		}
		o.Set = mergeSets(o.Set, []string{"train." + key + "=" + text})
	}
	r, err := o.request(path)
	if err != nil {
		return r, err
	}
	if text := c["link"]; text != "" {
		var rate byteSize
		if err := rate.setRate(text); err != nil {
			return r, bad("link", err)
		}
		r.Machine = withLink(r.Machine, float64(rate))
	}
	return r, nil
}

// withLink is a machine with another link; what is lost when it is shared keeps its part.
func withLink(m *cost.Machine, rate float64) *cost.Machine {
	x := *m
	part := rate / m.Link.H2D.Value
	for _, f := range []*cost.Figure{&x.Link.H2D, &x.Link.D2H, &x.Link.Both, &x.Link.Updating} {
		f.Value *= part
		f.Source = "as asked"
	}
	return &x
}

// whatIfJSON is a row of the table.
type whatIfJSON struct {
	Case whatIf `json:"case"`
	Fits bool   `json:"fits"`
	// Plan is that of a case that fits; Short and Change are of one that does not. Wrong says why a
	// case is none of the model: a batch that is no number of rows, a seq past its positions.
	Plan   *planJSON `json:"plan,omitempty"`
	Short  []string  `json:"short,omitempty"`
	Change string    `json:"change,omitempty"`
	More   string    `json:"more,omitempty"` // of one memory, with which it fits as it is
	Wrong  string    `json:"wrong,omitempty"`

	device, host string // how much one that does not fit is over
}

// planWhatIf plans every case and prints a table, the fastest first.
func planWhatIf(ctx context.Context, e *env, o compileOptions, path string, texts []string, asJSON bool) error {
	cases, err := readWhatIf(texts)
	if err != nil {
		return err
	}
	var rows []whatIfJSON
	var wrong error // of the first case that is impossible
	for _, c := range cases {
		r, err := c.request(o, path)
		if err != nil {
			return err
		}
		var l diag.List
		choice, err := choose(ctx, r, &l, e.err)
		row := whatIfJSON{Case: c}
		var short *planner.ShortError
		var findings *diag.List
		switch {
		case errors.As(err, &short):
			row.Short, row.Change, row.More = short.Lines(), short.Change, short.More()
			row.device, row.host = over(short.Device, short.DeviceLimit), over(short.Host, short.HostLimit)
		case errors.As(err, &findings) && (c["batch"] != "" || c["seq"] != ""):
			row.Wrong = firstFinding(err)
			wrong = cmp.Or(wrong, err)
		case err != nil:
			return err
		default:
			x := planReport(choice)
			row.Plan, row.Fits = &x, true
		}
		rows = append(rows, row)
	}
	if wrong != nil && !slices.ContainsFunc(rows, func(r whatIfJSON) bool { return r.Wrong == "" }) {
		// Where it is one without these batches and lengths too, the model itself is wrong.
		c := maps.Clone(cases[0])
		delete(c, "batch")
		delete(c, "seq")
		r, err := c.request(o, path)
		if err != nil {
			return err
		}
		var l diag.List
		var findings *diag.List
		if _, err = choose(ctx, r, &l, e.err); errors.As(err, &findings) {
			return err
		}
	}
	slices.SortStableFunc(rows, func(a, b whatIfJSON) int {
		switch x, y := rateOf(a), rateOf(b); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	if asJSON {
		enc := json.NewEncoder(e.out)
		for _, r := range rows {
			if err := enc.Encode(r); err != nil {
				return err
			}
		}
	} else {
		writeWhatIf(e, rows)
	}
	if !slices.ContainsFunc(rows, func(r whatIfJSON) bool { return r.Fits }) {
		return exitStatus(exitInput)
	}
	return nil
}

// over is how much a case that does not fit is short of a memory, for its row.
func over(need, limit int64) string {
	if need <= limit {
		return "-"
	}
	return "+" + telemetry.Bytes(need-limit)
}

func rateOf(r whatIfJSON) float64 {
	if r.Plan == nil {
		return math.Inf(-1)
	}
	return r.Plan.Rate
}

// writeWhatIf prints the table: the case, tokens a second, a step, memory, what bounds it, and
// the tokens that hide the link.
func writeWhatIf(e *env, rows []whatIfJSON) {
	var keys []string
	for _, k := range whatIfKeys {
		if slices.ContainsFunc(rows, func(r whatIfJSON) bool { return r.Case[k] != "" }) {
			keys = append(keys, k)
		}
	}
	table := [][]string{append(slices.Clone(keys), "tok/s", "step", "device", "host", "bound by", "hides link")}
	var notes []string
	for _, r := range rows {
		var line []string
		for _, k := range keys {
			line = append(line, r.Case[k])
		}
		if r.Wrong != "" {
			notes = append(notes, fmt.Sprintf("%s: %s", strings.Join(line, " "), r.Wrong))
			table = append(table, append(line, "-", "-", "-", "-", "impossible", "-"))
			continue
		}
		if r.Plan == nil {
			verdict := "does not fit"
			if r.device == "-" && r.host == "-" {
				verdict = "impossible"
			}
			notes = append(notes, fmt.Sprintf("%s: %s", strings.Join(line, " "), strings.Join(r.Short, "; ")))
			if r.Change != "" {
				notes = append(notes, "  with "+r.Change+" it fits")
			}
			if r.More != "" {
				notes = append(notes, "  with "+r.More+" it fits as it is")
			}
			table = append(table, append(line, "-", "-", r.device, r.host, verdict, "-"))
			continue
		}
		bound, hides := "", "-"
		if len(r.Plan.Path) > 0 {
			bound = fmt.Sprintf("%s %s", r.Plan.Path[0].Bound, view.Percent(r.Plan.Path[0].Part))
		}
		if r.Plan.HidesLink > 0 {
			hides = tokensText(r.Plan.HidesLink)
		}
		table = append(table, append(line, telemetry.Group(int64(math.Round(r.Plan.Rate))), view.Seconds(r.Plan.Seconds),
			telemetry.Bytes(r.Plan.Device), telemetry.Bytes(r.Plan.Host), bound, hides))
	}
	lines := aligned(table, 2)
	if slices.ContainsFunc(lines, func(line string) bool { return len(line) > helpWidth }) {
		table[0][len(table[0])-1] = "hides"
		lines = aligned(table, 1)
	}
	for _, line := range lines {
		fmt.Fprintln(e.out, line)
	}
	for _, n := range notes {
		for i, line := range wrapped(n, 76) {
			if i > 0 || n[0] == ' ' {
				line = "  " + line
			}
			fmt.Fprintln(e.out, line)
		}
	}
}

// aligned pads columns to their widest entry, some spaces apart.
func aligned(table [][]string, apart int) []string {
	var width []int
	for _, line := range table {
		for i, s := range line {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], len(s))
		}
	}
	var out []string
	for _, line := range table {
		var b strings.Builder
		for i, s := range line {
			fmt.Fprintf(&b, "%-*s%*s", width[i], s, apart, "")
		}
		out = append(out, strings.TrimRight(b.String(), " "))
	}
	return out
}
