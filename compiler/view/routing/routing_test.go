package routing

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/ops/moe"
)

const text = `{"step":10,"layers":[{"name":"layer[1].moe","mean":1.1,"target":1,"usage":[0.5,0.6],"fan":[0.2,0.5,0.3],"position":[1,1.2],"threshold":[0.1,-0.2],"drift":0.02}]}
{"step":20,"layers":[{"name":"layer[1].moe","mean":1,"target":1,"usage":[0.4,0.6],"fan":[0.3,0.4,0.3],"position":[1,1.1],"threshold":[0.2,-0.1],"drift":0.01,"dead":1}]}
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
	for _, bad := range []string{"{}\n", "x\n", `{"step":1,"loss":2}` + "\n", one + "\nnothing of a run"} {
		if _, err := Read(strings.NewReader(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}
