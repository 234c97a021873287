package view

import (
	"embed"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"math"
	"regexp"
	"strings"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

//go:embed page/page.html page/page.css page/*.js
var pageFiles embed.FS

// scripts of the page, in order. They share one scope.
var scripts = []string{"state.js", "draw.js", "detail.js", "table.js", "input.js"}

// Text is a file shown beside the timeline.
type Text struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Page is what an HTML page is made of.
type Page struct {
	Steps   []*Step // one or two, of one schedule: predicted, measured
	Sources []Text  // .mt files that tasks name
	Go      []Text  // generated files; main.go says which function is which
}

// pageData is what the page's script reads. Tasks are columns by place in the list.
type pageData struct {
	Model   string     `json:"model"`
	List    string     `json:"list"`
	First   int        `json:"first"`
	Kinds   []string   `json:"kinds"`
	Lanes   []string   `json:"lanes"`
	Names   []string   `json:"names"` // of subjects
	Spans   []string   `json:"spans"`
	Buffers []string   `json:"buffers"`
	Task    pageTasks  `json:"task"`
	Steps   []pageStep `json:"steps"`
	Sources []Text     `json:"sources"`
	Go      []Text     `json:"go"`
	// Funcs is, by template and function ("layer/forward"), [index of Go, line from 1].
	Funcs map[string][2]int `json:"funcs"`
	// Launches are the kernels of a function, by template and function.
	Launches map[string][]LaunchCost `json:"launches"`
}

type pageTasks struct {
	Kind     []int    `json:"kind"`
	Lane     []int    `json:"lane"`
	Name     []int    `json:"name"` // -1: none
	Span     []int    `json:"span"`
	Micro    []int    `json:"micro"`
	Back     []int    `json:"back"`
	FLOPs    []int64  `json:"flops"`
	Bytes    []int64  `json:"bytes"`
	Reads    [][]int  `json:"reads"`
	Writes   [][]int  `json:"writes"`
	Waits    [][2]int `json:"waits"`   // [place, back], of all tasks one behind the other
	WaitEnd  []int    `json:"waitEnd"` // by place: where in Waits its own end
	Template []string `json:"template"`
}

type pageStep struct {
	Title   string       `json:"title"`
	Seconds float64      `json:"seconds"`
	Rate    float64      `json:"rate"`
	Overlap *float64     `json:"overlap"`
	Start   []float64    `json:"start"` // by place
	End     []float64    `json:"end"`
	Slack   []*float64   `json:"slack"`
	Bound   []string     `json:"bound"`
	Path    []int        `json:"path"`   // places on the critical path
	Others  []pageRun    `json:"others"` // runs of the step before that reach into the period
	Memory  []pageMemory `json:"memory"`
}

type pageRun struct {
	Place int     `json:"p"`
	Start float64 `json:"s"`
	End   float64 `json:"e"`
}

type pageMemory struct {
	Name     string    `json:"name"`
	Reserved int64     `json:"reserved"`
	Peak     int64     `json:"peak"`
	PeakAt   float64   `json:"peakAt"`
	At       []float64 `json:"at"`
	Bytes    []int64   `json:"bytes"`
	Groups   []Group   `json:"groups"`
}

// WriteHTML writes one self-contained page: it asks no network for anything.
func (p *Page) WriteHTML(w io.Writer) error {
	data, err := json.Marshal(p.data()) // <, > and & are escaped, so nothing can end the script
	if err != nil {
		return err
	}
	read := func(name string) string {
		b, err := pageFiles.ReadFile("page/" + name)
		if err != nil {
			panic(err)
		}
		return string(b)
	}
	var js strings.Builder
	js.WriteString("(() => {\n\"use strict\";\n")
	for _, name := range scripts {
		js.WriteString(read(name))
	}
	js.WriteString("})();\n")
	s := p.Steps[0]
	rest := read("page.html")
	// In the order of the page: only the page itself is searched for marks, never a text.
	for _, r := range []struct{ mark, text string }{
		{"{{title}}", html.EscapeString(s.Plan.Model + ", " + s.Line.List.String())},
		{"{{style}}", read("page.css")},
		{"{{head}}", p.head()},
		{"{{summary}}", p.summary()},
		{"{{data}}", string(data)},
		{"{{script}}", js.String()},
	} {
		before, after, ok := strings.Cut(rest, r.mark)
		if !ok {
			panic("page.html has no " + r.mark)
		}
		for _, part := range []string{before, r.text} {
			if _, err := io.WriteString(w, part); err != nil {
				return err
			}
		}
		rest = after
	}
	_, err = io.WriteString(w, rest)
	return err
}

func (p *Page) data() *pageData {
	s := p.Steps[0]
	d := &pageData{
		Model: s.Plan.Model, List: s.Line.List.String(), First: s.First(), Spans: s.Plan.Spans,
		Sources: append([]Text{}, p.Sources...), Go: append([]Text{}, p.Go...), Funcs: goFuncs(p.Go),
	}
	for l := range device.NumLanes {
		d.Lanes = append(d.Lanes, l.String())
	}
	kinds, names := map[string]int{}, map[string]int{"": -1}
	for _, b := range s.Plan.Buffers[1:] {
		d.Buffers = append(d.Buffers, b.Name)
	}
	recorder := map[int]int{}
	for i := range s.Len() {
		if e := s.Task(i).Event; e >= 0 {
			recorder[e] = i
		}
	}
	t := &d.Task
	t.Waits = [][2]int{}
	for i := range s.Len() {
		x := s.Task(i)
		kind, name := Kind(x), Subject(s.Plan, x)
		if _, ok := kinds[kind]; !ok {
			kinds[kind] = len(d.Kinds)
			d.Kinds = append(d.Kinds, kind)
		}
		if _, ok := names[name]; !ok {
			names[name] = len(d.Names)
			d.Names = append(d.Names, name)
		}
		t.Kind = append(t.Kind, kinds[kind])
		t.Name = append(t.Name, names[name])
		t.Lane = append(t.Lane, int(x.Lane))
		t.Span = append(t.Span, x.Span)
		t.Micro = append(t.Micro, x.Micro)
		t.Back = append(t.Back, x.Back)
		t.FLOPs = append(t.FLOPs, x.FLOPs)
		bytes := x.Moved
		if x.Bytes > 0 {
			bytes = x.Bytes
		}
		t.Bytes = append(t.Bytes, bytes)
		t.Reads = append(t.Reads, bufferPlaces(x.Reads))
		t.Writes = append(t.Writes, bufferPlaces(x.Writes))
		for _, w := range x.Waits {
			if r, ok := recorder[w.Event]; ok {
				t.Waits = append(t.Waits, [2]int{r, w.Back})
			}
		}
		t.WaitEnd = append(t.WaitEnd, len(t.Waits))
		template := ""
		if x.Template >= 0 && x.Template < len(s.Plan.Templates) {
			template = s.Plan.Templates[x.Template]
		}
		t.Template = append(t.Template, template)
	}
	d.Launches = map[string][]LaunchCost{}
	for f, list := range s.split() {
		if f.template < len(s.Plan.Templates) && len(list) > 0 {
			d.Launches[s.Plan.Templates[f.template]+"/"+f.fn.String()] = list
		}
	}
	for _, step := range p.Steps {
		d.Steps = append(d.Steps, step.page())
	}
	return d
}

func bufferPlaces(ids []plan.BufID) []int {
	out := make([]int, len(ids))
	for i, id := range ids {
		out[i] = int(id) - 1
	}
	return out
}

// round keeps a time's digits down to a tenth of a nanosecond.
func round(x float64) float64 { return math.Round(x*1e10) / 1e10 }

func (t *Step) page() pageStep {
	x := pageStep{Title: t.Origin(), Seconds: t.Line.Seconds, Rate: t.Line.Rate, Overlap: finite(t.Overlap()), Path: []int{}, Others: []pageRun{}}
	for i := range t.Len() {
		x.Start = append(x.Start, round(t.Start[i]))
		x.End = append(x.End, round(t.End[i]))
		x.Bound = append(x.Bound, string(t.bound(i)))
	}
	for _, s := range t.Slack() {
		x.Slack = append(x.Slack, finite(s))
	}
	for _, l := range t.Path() {
		if l.Run < 0 {
			continue
		}
		if i := t.Line.Runs[l.Run].Task - t.First(); i >= 0 && i < t.Len() {
			x.Path = append(x.Path, i)
		}
	}
	for k := range t.Line.Runs {
		r := &t.Line.Runs[k]
		i := r.Task - t.First()
		if i < 0 || i >= t.Len() || t.run[i] == k && r.Step == 0 {
			continue
		}
		x.Others = append(x.Others, pageRun{i, round(r.Start), round(r.End)})
	}
	for _, m := range t.Memories() {
		if m.Reserved == 0 {
			continue
		}
		pm := pageMemory{Name: m.Name, Reserved: m.Reserved, Peak: m.Peak.Bytes, PeakAt: m.Peak.At, Groups: append([]Group{}, m.AtPeak...)}
		for _, l := range m.Points {
			pm.At = append(pm.At, round(l.At))
			pm.Bytes = append(pm.Bytes, l.Bytes)
		}
		x.Memory = append(x.Memory, pm)
	}
	return x
}

var (
	goTemplate = regexp.MustCompile(`^\t\{Name: "([^"]*)"`)
	goEntry    = regexp.MustCompile(`^\t\tplan\.([A-Za-z]+): +([A-Za-z0-9_]+),`)
)

// goFuncs finds the generated functions: main.go names them by template, the others hold them.
func goFuncs(files []Text) map[string][2]int {
	at := map[string][2]int{}
	for k, f := range files {
		n := 0
		for line := range strings.Lines(f.Text) {
			n++
			if rest, ok := strings.CutPrefix(line, "func "); ok {
				if name, _, ok := strings.Cut(rest, "("); ok && name != "" {
					at[name] = [2]int{k, n}
				}
			}
		}
	}
	out := map[string][2]int{}
	for _, f := range files {
		if f.Name != "main.go" {
			continue
		}
		template := ""
		for line := range strings.Lines(f.Text) {
			if m := goTemplate.FindStringSubmatch(line); m != nil {
				template = m[1]
			}
			if m := goEntry.FindStringSubmatch(line); m != nil {
				if where, ok := at[m[2]]; ok {
					out[template+"/"+snake(m[1])] = where
				}
			}
		}
	}
	return out
}

// snake writes EvalLoss as eval_loss, as plan.Func does.
func snake(s string) string {
	var b strings.Builder
	for i, c := range s {
		if c >= 'A' && c <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}

func esc(format string, args ...any) string { return html.EscapeString(fmt.Sprintf(format, args...)) }
