package routing

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/ops/moe"
)

const text = `{"step":10,"layers":[{"name":"layer[1].moe","mean":1.1,"target":1,"usage":[0.5,0.6],"max_vio":0.1,"cv":0.1,"none":0.2,"fan":[0.2,0.5,0.3],"position":[1,1.2],"threshold":[0.1,-0.2],"drift":0.02,"dead":0,"starved":0,"dropped":0,"flooded":0,"noncausal_tokens":0}]}
{"step":20,"layers":[{"name":"layer[1].moe","mean":1,"target":1,"usage":[0.4,0.6],"max_vio":0.2,"cv":0.1,"none":0.3,"fan":[0.3,0.4,0.3],"position":[1,1.1],"threshold":[0.2,-0.1],"drift":0.01,"dead":1,"starved":0,"dropped":0,"flooded":0,"noncausal_tokens":0}]}
`

// TestPage: the page of two lines has each figure, well-formed, and names what it draws.
func TestPage(t *testing.T) {
	lines, err := Read(strings.NewReader(text + `{"step":30,"la`))
	if err != nil || len(lines) != 2 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	sample := moe.SampleOf([]string{"layer[1].moe"}, []float64{3, 1, 2}, [][]float64{{1}, {0}, {2}})
	if len(sample.Bins) != 3 || sample.Bins[0].Loss != 1 || sample.Bins[2].Fan[0] != 1 {
		t.Errorf("%+v", sample)
	}
	var b bytes.Buffer
	if err := Write(&b, "m<1>", lines, &sample); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	if n := strings.Count(page, "<svg"); n != 7 {
		t.Errorf("%d figures", n)
	}
	for _, want := range []string{"m&lt;1&gt;", "layer[1].moe", "cutoffs", "usage of each expert", "stroke-dasharray"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
	for _, svg := range strings.Split(page, "<svg")[1:] {
		svg, _, _ = strings.Cut("<svg"+svg, "</svg>")
		d := xml.NewDecoder(strings.NewReader(svg + "</svg>"))
		for {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%v in\n%s", err, svg)
			}
		}
	}
	if strings.Contains(page, "NaN") || strings.Contains(page, "Inf") {
		t.Error("a coordinate is no number")
	}
}

func TestOneLineAndFaults(t *testing.T) {
	one, _, _ := strings.Cut(text, "\n")
	lines, err := Read(strings.NewReader(one + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Write(&b, "m", lines, nil); err != nil || !strings.Contains(b.String(), "<circle") {
		t.Errorf("%v", err)
	}
	if cut, err := Read(strings.NewReader(one + "\n" + one[:20])); err != nil || len(cut) != 1 { // of a run that goes on
		t.Errorf("%d lines, %v", len(cut), err)
	}
	change := func(from, to string) string {
		t.Helper()
		if !strings.Contains(text, from) {
			t.Fatalf("no %q to change", from)
		}
		return strings.Replace(text, from, to, 1)
	}
	for _, c := range []struct{ text, want string }{
		{"{}\n", "line 1, column 1: the text has no `step`"}, {"x\n", "line 1, column 1"}, {`{"step":1,"loss":2}` + "\n", "no field `loss`"},
		{one + "\nnothing of a run", "line 2"},
		{change(`"step":20`, `"step":10`), "line 2, column 9: step 10 stands behind step 10"},
		{change(`"step":10`, `"step":-1`), "step -1"},
		{change(`"usage":[0.4,0.6]`, `"usage":[0.4]`), "line 2, column 30: layer[1].moe with 1 experts; the first line has layer[1].moe with 2"},
		{change(`"name":"layer[1].moe"`, `"name":"layer[2].moe"`), "the first line has layer[2].moe"},
		{change(`"usage":[0.5,0.6]`, `"usage":[]`), "has no experts"},
		{change(`"mean":1.1`, `"mean":-1.1`), "mean of layer[1].moe is -1.1"},
		{change(`"mean":1.1`, `"mean":1e300`), "1e+300"},
		{change(`"mean":1.1`, `"mean":null`), "layers[0].mean is null"},
		{change(`"mean":1.1`, `"mean":1,"mean":1`), "`mean` twice"},
		{change(`"dead":1`, `"dead":3`), "3 dead"},
	} {
		if _, err := Read(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: %v, want %q", c.text, err, c.want)
		}
	}
	if err := Fits(lines, []string{"layer[1].moe"}, []int64{2}); err != nil {
		t.Error(err)
	}
	for _, of := range []struct {
		names   []string
		experts []int64
	}{{[]string{"layer[1].moe"}, []int64{4}}, {[]string{"layer[0].moe"}, []int64{2}}, {nil, nil}} {
		if Fits(lines, of.names, of.experts) == nil {
			t.Errorf("they fit %v", of)
		}
	}
}
