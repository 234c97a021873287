package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/compiler/schedule"
	"github.com/megatrain/mtc/compiler/view"
	"github.com/megatrain/mtc/compiler/view/routing"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/telemetry"
)

// reading is a file that a verb reads, and its reader.
type reading struct {
	name string
	good []byte
	read func(t *testing.T, text []byte) error
}

// readings are the JSON files that plan, inspect, compare, diff, run and bench read.
func readings(t *testing.T) []reading {
	t.Helper()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	put := func(t *testing.T, name string, text []byte) {
		t.Helper()
		if err := os.WriteFile(in(name), text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	put(t, "tiny.mt", []byte(tinyModel))
	if code, _, errw := call("compile", in("tiny.mt"), "--no-build", "--placement", "stream", "-o", in("b")); code != exitOK {
		t.Fatal(errw)
	}
	file := func(name string) []byte {
		text, err := os.ReadFile(in(name))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	s, err := loadSchedule([]string{in("b")})
	if err != nil {
		t.Fatal(err)
	}
	profile := &telemetry.Profile{Version: telemetry.ProfileVersion, Model: s.Plan.Model, Hash: s.Plan.Hash, Tasks: len(s.Plan.Tasks),
		Unit: "ns", Target: "cpu", Device: "cpu", Untimed: []float64{1, 2}, Steps: []telemetry.ProfileStep{{Step: 3, List: "steady", Seconds: 1}}}
	steady := s.Plan.Lists[plan.Steady]
	for i := steady.Start; i < steady.End; i++ {
		at := int64(i-steady.Start) * 1e6
		profile.Steps[0].Tasks = append(profile.Steps[0].Tasks, telemetry.ProfileTask{int64(i), at, at + 5e5})
	}
	var measured bytes.Buffer
	if err := profile.Write(&measured); err != nil {
		t.Fatal(err)
	}
	result := []byte(`{"device": "d", "target": "cuda", "precision": "bf16", "cores": 4, "device_memory": 1000000000, "host_memory": 2000000000,
 "kernels": [{"name": "linear.Forward", "shape": {"class": 1, "form": "nt", "m": 8, "n": 8, "k": 8, "count": 1}, "flops": 1024, "bytes": 384, "seconds": 1e-9}],
 "launch": 1e-6, "sustained": 0, "h2d": 5e10, "d2h": 4.9e10, "both": 4e10, "updating": 3e10, "latency": 1e-5, "optimizer": 1e11, "copying": 9e10,
 "threads": [{"threads": 1, "rate": 1e10}], "memory": 1e11, "first_touch": 1e9, "disk_write": 1e9, "disk_read": 1e9, "seconds": 1}`)
	moe := []byte(`{"step":10,"layers":[{"name":"layer[1].moe","mean":1.1,"target":1,"usage":[0.5,0.6],"max_vio":0.1,"cv":0.1,"none":0.2,"fan":[0.2,0.5,0.3],"position":[1,1.2],"threshold":[0.1,-0.2],"drift":0.02,"dead":0,"starved":0,"dropped":0,"flooded":0,"noncausal_tokens":0}]}`)
	return []reading{
		{"machine.json", cost.Shipped("h200").JSON(), func(_ *testing.T, text []byte) error {
			m, err := cost.Parse(text)
			if err == nil {
				writeProfile(io.Discard, m)
			}
			return err
		}},
		{"schedule.json", file("b/schedule.json"), func(_ *testing.T, text []byte) error {
			f, err := schedule.Parse(text)
			if err != nil {
				return err
			}
			s, err := view.Of(f)
			if err != nil {
				return nil // the words are about the plan
			}
			if step, err := s.Predict(view.Nominal(), plan.Steady); err == nil {
				step.WriteText(io.Discard)
			}
			return nil
		}},
		{"profile.json", measured.Bytes(), func(t *testing.T, text []byte) error {
			put(t, "profile.json", text)
			if _, err := telemetry.ReadProfile(in("profile.json")); err != nil {
				return err
			}
			measured, err := s.measured(dir)
			if err != nil {
				return nil // the words are about the plan
			}
			step, err := s.Predict(view.Nominal(), plan.Steady)
			if err != nil {
				t.Fatal(err)
			}
			measured.WriteText(io.Discard)
			view.Compare(step, measured).Write(io.Discard)
			return nil
		}},
		{"build.json", file("b/build.json"), func(t *testing.T, text []byte) error {
			put(t, recordFile, text)
			_, err := readRecord(dir)
			return err
		}},
		{"result.json", result, func(t *testing.T, text []byte) error {
			put(t, "result.json", text)
			_, err := readResults([]string{in("result.json")})
			return err
		}},
		{"moe.jsonl", moe, func(_ *testing.T, text []byte) error {
			lines, err := routing.Read(bytes.NewReader(append(bytes.ReplaceAll(text, []byte("\n"), []byte(" ")), '\n')))
			if err == nil {
				err = routing.Write(io.Discard, "m", lines, nil)
			}
			return err
		}},
	}
}

// goWords are words of encoding/json and of panics, which say nothing to whoever has the file.
var goWords = regexp.MustCompile(`(^|[^.])json: |cannot unmarshal|Go (struct|value)|reflect|runtime error|%!`)

// TestDamagedFiles: files whose values were replaced, doubled, dropped, retyped or cut are refused with a
// place and in plain words, or read and shown; none is read as if nothing were wrong where it cannot be.
func TestDamagedFiles(t *testing.T) {
	for _, r := range readings(t) {
		t.Run(r.name, func(t *testing.T) {
			try := func(what string, text []byte, must bool) {
				t.Helper()
				defer func() {
					if p := recover(); p != nil {
						t.Errorf("%s: panic: %v", what, p)
					}
				}()
				err := r.read(t, text)
				switch {
				case err == nil && must:
					t.Errorf("%s: nothing is wrong with it", what)
				case err == nil:
				case goWords.MatchString(err.Error()):
					t.Errorf("%s: %v", what, err)
				case must && !strings.Contains(err.Error(), "line "):
					t.Errorf("%s: no place: %v", what, err)
				}
			}
			if err := r.read(t, r.good); err != nil {
				t.Fatal(err)
			}
			rnd := rand.New(rand.NewPCG(1, uint64(len(r.good))))
			for range 60 {
				at := rnd.IntN(len(r.good))
				try(fmt.Sprintf("cut at %d", at), bytes.TrimRight(r.good[:at], " \n"), r.name != "moe.jsonl" || at > 0)
				flipped := slices.Clone(r.good)
				flipped[at] ^= 1 << rnd.IntN(8)
				try(fmt.Sprintf("bit at %d", at), flipped, false)
			}
			try("nested deeply", append(bytes.Repeat([]byte(`{"a":`), 1<<16), bytes.Repeat([]byte("}"), 1<<16)...), true)
			try("null", []byte("null"), true)
			try("a list", []byte("[]"), true)
			try("nothing in it", []byte("{}"), true)
			try("two of them", append(slices.Clone(r.good), r.good...), true)
			for range 150 {
				what, text, must := damaged(t, r.good, rnd)
				try(what, text, must)
			}
		})
	}
}

// damaged is a text with one value changed, what was done to it, and whether it has to be refused.
func damaged(t *testing.T, good []byte, rnd *rand.Rand) (what string, text []byte, must bool) {
	t.Helper()
	var tree any
	d := json.NewDecoder(bytes.NewReader(good))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		t.Fatal(err)
	}
	type place struct {
		path string
		old  any
		set  func(any)
		drop func()
	}
	var all []place
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				all = append(all, place{path + "." + k, v[k], func(x any) { v[k] = x }, func() { delete(v, k) }})
				walk(path+"."+k, v[k])
			}
		case []any:
			for i := range v {
				all = append(all, place{fmt.Sprintf("%s[%d]", path, i), v[i], func(x any) { v[i] = x }, nil})
				walk(fmt.Sprintf("%s[%d]", path, i), v[i])
			}
		}
	}
	walk("", tree)
	p := all[rnd.IntN(len(all))]
	switch kind := rnd.IntN(6); {
	case kind == 0 && p.drop != nil:
		p.drop()
		what = "without " + p.path
	case kind == 1:
		p.set(nil)
		what = "null for " + p.path
	case kind == 2: // another type
		switch p.old.(type) {
		case string:
			p.set(7)
		case nil:
			return damaged(t, good, rnd)
		default:
			p.set("seven")
		}
		what, must = "another type of "+p.path, true
	case kind == 3:
		values := []any{json.Number("-1"), json.Number("0"), json.Number("1e300"), json.Number("9223372036854775807"), json.Number("-9223372036854775808"), json.Number("0.5"), json.Number("1e999")}
		p.set(values[rnd.IntN(len(values))])
		what = "a number for " + p.path
	case kind == 4:
		p.set(map[string]any{"x": 1})
		what = "an object for " + p.path
	default:
		values := []any{"", "\x1b[31m", strings.Repeat("x", 1<<16), "compute", []any{}}
		p.set(values[rnd.IntN(len(values))])
		what = "a text for " + p.path
	}
	text, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return what, text, must
}

const tinyModel = `model tiny(D = 16, V = 256) {
  init normal(0.02)
  block layer(x) { x += o: linear(x, D) }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat 2 { layer(x) }
    return head: linear(x, V)
  }
}
train { seq = 16; batch = 4 rows; steps = 100; optimizer = adamw(beta1 = 0.9, beta2 = 0.95, decay = 0.1); lr = constant(peak = 1e-3); clip = 1.0 }
`
