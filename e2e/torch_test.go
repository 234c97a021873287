package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/runtime/checkpoint/safetensors"
)

// tolerance is the largest difference allowed to a tensor, as a share of its scale.
const tolerance = 1e-5

// Every family of models computes what transformers computes: logits (by generation, with the
// cache), loss, every gradient, and ten AdamW steps. Each placement is a program of its own.
func TestProgramsEqualTransformers(t *testing.T) {
	placements := map[string]compiler.Options{
		"resident":                    {},
		"stream, a row a micro-batch": {Placement: "stream", MicroBatch: 1},
		"stream, recompute, 2 groups": {Placement: "stream", MicroBatch: 2, Groups: 2, Recompute: "all", Slots: 3, GradSlots: 3},
	}
	for _, name := range fixtureNames(t) {
		for placement, o := range placements {
			t.Run(name+"/"+placement, func(t *testing.T) {
				t.Parallel()
				o.Path = fixturePath(name, ".mt")
				binary, _ := build(t, o)
				in, err := filepath.Abs(fixturePath(name, ".safetensors"))
				if err != nil {
					t.Fatal(err)
				}
				dump := filepath.Join(t.TempDir(), "dump.safetensors")
				run(t, binary, "debug-step", "--fixture", in, "--dump", dump)
				got, err := safetensors.Open(dump)
				if err != nil {
					t.Fatal(err)
				}
				defer got.Close()
				report, faults := compare(t, got, openFixture(t, name).File)
				t.Log(report)
				for _, f := range faults {
					t.Error(f)
				}
			})
		}
	}
}

// kinds are what a fixture and a dump hold, by the first part of a tensor's name.
var kinds = []string{"logits", "loss", "norm", "lr", "grad", "final"}

// compare checks every result of the fixture against the dump. The report has, for each kind,
// the tensor whose difference is the largest share of what is allowed to it. The scale of a
// tensor is its largest value, but at least a hundredth of the largest of its kind: where a
// value is 0 in exact arithmetic (the gradient of a key bias), there is only rounding to compare.
func compare(t *testing.T, got, want *safetensors.File) (report string, faults []string) {
	t.Helper()
	for _, kind := range kinds {
		var names []string
		top := 0.0
		for i := range want.Tensors {
			if n := want.Tensors[i].Name; n == kind || strings.HasPrefix(n, kind+".") {
				names = append(names, n)
				for _, v := range values(t, want, n) {
					top = math.Max(top, math.Abs(v))
				}
			}
		}
		if len(names) == 0 || !(top > 0) {
			faults = append(faults, "the fixture has nothing to compare under "+kind)
			continue
		}
		sort.Strings(names)
		worst, of := -1.0, ""
		for _, n := range names {
			if got.Lookup(n) == nil {
				faults = append(faults, n+" is missing")
				continue
			}
			diff, scale := difference(values(t, got, n), values(t, want, n))
			allowed := tolerance * math.Max(scale, top/100)
			if diff > allowed {
				faults = append(faults, fmt.Sprintf("%s differs by %.3g, allowed are %.3g", n, diff, allowed))
			}
			if diff/allowed > worst {
				worst, of = diff/allowed, fmt.Sprintf("%s, %.2g", n, diff)
			}
		}
		report += fmt.Sprintf("\n%-6s %3d tensors, the largest difference is %2.0f%% of what is allowed (%s)", kind, len(names), 100*worst, of)
	}
	return report, faults
}

// difference is the largest difference of two tensors and the largest value of the second; it
// is infinite when one has a value that is no number, or another size.
func difference(a, b []float64) (diff, scale float64) {
	if len(a) != len(b) {
		return math.Inf(1), 0
	}
	for i := range a {
		d := math.Abs(a[i] - b[i])
		if math.IsNaN(d) {
			d = math.Inf(1)
		}
		diff, scale = math.Max(diff, d), math.Max(scale, math.Abs(b[i]))
	}
	return diff, scale
}

// values reads a tensor as float64.
func values(t *testing.T, f *safetensors.File, name string) []float64 {
	t.Helper()
	v, err := f.F32(name)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float64, len(v))
	for i := range v {
		out[i] = float64(v[i])
	}
	return out
}

// The comparison finds a value that is off by little more than the tolerance, a NaN among good
// values, a missing tensor and one of another size.
func TestComparisonFindsFaults(t *testing.T) {
	want := openFixture(t, "llama").File
	const name = "grad.layer[1].k.weight"
	_, scale := difference(values(t, want, name), values(t, want, name))
	for what, harm := range map[string]func(v []float32) []float32{
		"":          func(v []float32) []float32 { return v },
		"allowed":   func(v []float32) []float32 { v[7] += float32(0.9 * tolerance * scale); return v },
		"differs":   func(v []float32) []float32 { v[7] += float32(1.1 * tolerance * scale); return v },
		"+Inf":      func(v []float32) []float32 { v[0] = float32(math.NaN()); return v },
		"differs  ": func(v []float32) []float32 { return v[1:] },
		"missing":   func([]float32) []float32 { return nil },
	} {
		var entries []safetensors.Entry
		for i := range want.Tensors {
			n := want.Tensors[i].Name
			if n == "tokens" {
				continue
			}
			v, err := want.F32(n)
			if err != nil {
				t.Fatal(err)
			}
			if n == name {
				if v = harm(v); v == nil {
					continue
				}
			}
			entries = append(entries, safetensors.Entry{Name: n, DType: "F32", Shape: []int64{int64(len(v))}, Data: raw(v)})
		}
		var b bytes.Buffer
		if err := safetensors.Write(&b, nil, entries); err != nil {
			t.Fatal(err)
		}
		got, err := safetensors.Read("harmed", bytes.NewReader(b.Bytes()), int64(b.Len()))
		if err != nil {
			t.Fatal(err)
		}
		_, faults := compare(t, got, want)
		switch good := what == "" || what == "allowed"; {
		case good && len(faults) > 0:
			t.Errorf("%q: %v", what, faults)
		case !good && (len(faults) != 1 || !strings.Contains(faults[0], name) || !strings.Contains(faults[0], strings.TrimSpace(what))):
			t.Errorf("%q: found %v", what, faults)
		}
	}
}

func raw(v []float32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}
