package cost

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/op"
)

func TestShippedProfiles(t *testing.T) {
	entries, err := profiles.ReadDir("profiles")
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(names) {
		t.Errorf("%d profiles, %d names", len(entries), len(names))
	}
	for _, name := range Names() {
		m := Shipped(name)
		if m == nil {
			t.Errorf("no profile %s", name)
			continue
		}
		if m.Name != name || m.Target != "cuda" || m.Rates["bf16"] == nil || m.Rates["f32"] == nil {
			t.Errorf("%s: named %s, for %s", name, m.Name, m.Target)
		}
		// Every figure says where it is from.
		var all any
		if err := json.Unmarshal(m.JSON(), &all); err != nil {
			t.Fatal(err)
		}
		everyFigure(all, name, func(path string, source string) {
			if source == "" {
				t.Errorf("%s has no source", path)
			}
		})
		if m.Link.Both.Value > m.Link.H2D.Value || m.Link.Updating.Value > m.Link.Both.Value || m.Host.Copying.Value > m.Host.Optimizer.Value {
			t.Errorf("%s: something is faster when it is shared", name)
		}
		again, err := Parse(m.JSON())
		if err != nil || !bytes.Equal(again.JSON(), m.JSON()) {
			t.Errorf("%s: it does not survive its own text: %v", name, err)
		}
	}
}

// everyFigure calls f for each object with a source.
func everyFigure(x any, path string, f func(path, source string)) {
	switch x := x.(type) {
	case map[string]any:
		if s, ok := x["source"]; ok {
			f(path, s.(string))
		}
		for k, v := range x {
			everyFigure(v, path+"."+k, f)
		}
	case []any:
		for _, v := range x {
			everyFigure(v, path, f)
		}
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	good := filepath.Join(dir, "mine.json")
	write := func(path string, text []byte) {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write(good, Shipped("h200").JSON())
	bad := filepath.Join(dir, "bad.json")
	write(bad, []byte(`{"name": "x", "target": "cuda", "rates": {}}`))
	typo := filepath.Join(dir, "typo.json")
	write(typo, []byte(`{"nam": "x"}`))

	if m, err := Find(good, "cuda"); err != nil || m.Name != "h200" {
		t.Errorf("a file: %v", err)
	}
	var unknown *UnknownError
	if _, err := Find("h2000", "cuda"); !errors.As(err, &unknown) {
		t.Errorf("an unknown name: %v", err)
	}
	for path, want := range map[string]string{bad: "line 1, column 1: the text has no `title`", typo: "line 1, column 2: there is no field `nam`", filepath.Join(dir, "none.json"): "no such file"} {
		if _, err := Find(path, "cuda"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", filepath.Base(path), err, want)
		}
	}
	if _, err := Find(This, "cpu"); err == nil || !strings.Contains(err.Error(), "nothing was measured") {
		t.Errorf("this machine, unmeasured: %v", err)
	}
	path, err := CacheFile("cuda")
	if err != nil {
		t.Fatal(err)
	}
	write(path, Shipped("rtx4090").JSON())
	if m, err := Find(This, "cuda"); err != nil || m.Name != "rtx4090" {
		t.Errorf("this machine: %v", err)
	}
}

// TestCheck: whatever figure of a profile is none of a machine, the error has its name.
func TestCheck(t *testing.T) {
	if err := Shipped("h200").Check(); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		want   string
		change func(m *Machine)
	}{
		{"target", func(m *Machine) { m.Target = "tpu" }},
		{"the name, ", func(m *Machine) { m.Name = "h200\x1b[31m" }},
		{"has no name", func(m *Machine) { m.Name = " " }},
		{"product.points[0].form is", func(m *Machine) { m.Rates["f32"].Product.Points[0].Form = "ntt" }},
		{"no rates", func(m *Machine) { m.Rates = nil }},
		{"link.h2d.source is empty", func(m *Machine) { m.Link.H2D.Source = " " }},
		{"rates.f32.launch.source is empty", func(m *Machine) { m.Rates["f32"].Launch.Source = "" }},
		{"rates.f32.product.source is empty", func(m *Machine) { m.Rates["f32"].Product.Source = "" }},
		{"has a size of 4611686018427387904", func(m *Machine) { m.Rates["f32"].Product.Points[0].M = 1 << 62 }},
		{"rates.f16", func(m *Machine) { m.Rates["f16"] = m.Rates["f32"] }},
		{"rates.f32 is empty", func(m *Machine) { m.Rates["f32"] = nil }},
		{"rates.f32.product has no points", func(m *Machine) { m.Rates["f32"].Product.Points = nil }},
		{"rates.f32.attention.points[0] has sizes", func(m *Machine) { m.Rates["f32"].Attention.Points[0].K = 0 }},
		{"rates.f32.kernels.x has no points", func(m *Machine) { m.Rates["f32"].Kernels = map[string]Curve{"x": {}} }},
		{"rates.f32.kernels.x.points[1].bytes", func(m *Machine) {
			m.Rates["f32"].Kernels = map[string]Curve{"x": {Source: "x", Points: []Size{{2, 1e9}, {2, 1e9}}}}
		}},
		{"host.threads[1].threads", func(m *Machine) { m.Host.Threads = []Threads{{4, 1e9}, {2, 1e9}} }},
	} {
		m := Shipped("h200")
		tc.change(m)
		if err := m.Check(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v, want %q", err, tc.want)
		}
	}
}

// TestCheckFigures tries every number of a profile, as a file has them.
func TestCheckFigures(t *testing.T) {
	var profile any
	if err := json.Unmarshal(Shipped("h200").JSON(), &profile); err != nil {
		t.Fatal(err)
	}
	tried := 0
	var walk func(path string, at any)
	try := func(path string, set func(x float64), was float64) {
		last := path[strings.LastIndex(path, ".")+1:]
		bad := []float64{-1, -1e12, 1e30}
		if zero := regexp.MustCompile(`^(link\.latency|host\.first_touch|disk\..*|rates\..*\.sustained)$`); !zero.MatchString(path) {
			bad = append(bad, 0)
		}
		for _, x := range bad {
			if (last == "m" || last == "n" || last == "k" || last == "bytes" || last == "threads") && x == 1e30 {
				continue // no integer
			}
			set(x)
			text, _ := json.Marshal(profile)
			if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(path, ".m"), ".n"), ".k")) {
				t.Errorf("%s = %v: %v", path, x, err)
			}
			tried++
		}
		set(was)
	}
	walk = func(path string, at any) {
		switch at := at.(type) {
		case map[string]any:
			for k, v := range at {
				p := strings.TrimPrefix(path+"."+k, ".")
				if x, ok := v.(float64); ok {
					try(strings.TrimSuffix(p, ".value"), func(x float64) { at[k] = x }, x)
					continue
				}
				walk(p, v)
			}
		case []any:
			for i, v := range at[:min(2, len(at))] {
				walk(fmt.Sprintf("%s[%d]", path, i), v)
			}
		}
	}
	walk("", profile)
	if tried < 200 {
		t.Errorf("%d figures tried", tried)
	}
}

func TestRateByShape(t *testing.T) {
	table := Table{Points: []Point{{"nt", 16, 16, 16, 100}, {"nt", 1024, 16, 16, 400}, {"nn", 16, 16, 16, 7}}}
	rate := func(form string, m, n, k int64) float64 {
		return table.rate(op.Shape{Class: op.Product, Form: form, M: m, N: n, K: k}, 0)
	}
	if got := rate("nt", 16, 16, 16); got != 100 {
		t.Errorf("at a point: %v, want 100", got)
	}
	if got := rate("nt", 1<<20, 16, 16); got != 400 {
		t.Errorf("beyond the largest: %v, want 400", got)
	}
	// Half way in powers of two the seconds are the mean: 1/160.
	if got := rate("nt", 128, 16, 16); got < 159.9 || got > 160.1 {
		t.Errorf("between: %v, want 160", got)
	}
	if got := rate("nn", 999, 999, 999); got < 6.99 || got > 7.01 {
		t.Errorf("another form: %v, want 7", got)
	}
	// Where 64 are enough, more make no difference, neither of the shape nor of a point: 1024 counts as 64.
	for _, c := range []struct {
		m    int64
		want float64
	}{{16, 100}, {32, 160}, {64, 400}, {256, 400}, {1 << 20, 400}} {
		got := table.rate(op.Shape{Form: "nt", M: c.m, N: 16, K: 16}, 64)
		if got < c.want-0.1 || got > c.want+0.1 {
			t.Errorf("%d where 64 are enough: %v, want %v", c.m, got, c.want)
		}
	}
	// An unknown form takes the mean seconds of all.
	if got, want := rate("tt", 1, 1, 1), 3/(1.0/100+1.0/400+1.0/7); got != want {
		t.Errorf("a form without points: %v, want %v", got, want)
	}
}

// TestProfileFiles: the shipped files are in the form that profiles are written in, so that a
// change shows as one line.
func TestProfileFiles(t *testing.T) {
	for _, name := range Names() {
		path := filepath.Join("profiles", name+".json")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if want := Shipped(name).JSON(); !bytes.Equal(text, want) {
			if os.Getenv("MTC_UPDATE") == "" {
				t.Errorf("%s is not in the written form; MTC_UPDATE=1 rewrites it", path)
			} else if err := os.WriteFile(path, want, 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestRateBySize(t *testing.T) {
	c := Curve{Source: "x", Points: []Size{{1 << 10, 100}, {1 << 20, 20}}}
	for bytes, want := range map[int64]float64{1: 100, 1 << 10: 100, 1 << 15: 60, 1 << 20: 20, 1 << 40: 20} {
		if got := c.rate(bytes); got < want-1e-9 || got > want+1e-9 {
			t.Errorf("%d bytes: %v, want %v", bytes, got, want)
		}
	}
}
