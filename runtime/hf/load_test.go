package hf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/checkpoint/safetensors"
	"github.com/megatrain/mtc/runtime/plan"
)

// slabPlan is a plan of one slab with parameters one behind another, whole or split masters.
func slabPlan(split bool, names []string, shapes Shapes) (*plan.Plan, checkpoint.View) {
	s := plan.Slab{Name: "s", Weight: 1}
	for _, n := range names {
		size := int64(1)
		for _, d := range shapes[n] {
			size *= d
		}
		s.Params = append(s.Params, plan.Param{Name: n, Off: s.Elems, Shape: shapes[n]})
		s.Elems += size
	}
	bufs := map[plan.BufID][]byte{1: make([]byte, 4*s.Elems)}
	if split {
		s.Lo = 2
		bufs[1], bufs[2] = make([]byte, 2*s.Elems), make([]byte, 2*s.Elems)
	}
	return &plan.Plan{Slabs: []plan.Slab{s}}, func(b plan.BufID) []byte { return bufs[b] }
}

// numbers are n distinct values as a dtype has them.
func numbers(n int, dtype string) []byte {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(i%251) - 100
	}
	raw := make([]byte, int64(n)*width(dtype))
	encode(raw, v, dtype)
	return raw
}

// Each operation of the map puts every element where its definition says, in every dtype, into
// whole and split masters; and the tensor comes back from the parameters.
func TestOperationsBothWays(t *testing.T) {
	const rows, cols = 70, 33 // no multiples of the strips that a transposition works in
	type spot struct {
		param string
		r, c  int
	}
	for _, c := range []struct {
		op     string
		params Shapes
		order  []string
		names  []string
		shape  []int64
		where  func(name, r, c int) spot
	}{
		{"", Shapes{"a": {rows, cols}}, []string{"a"}, []string{"x"}, []int64{rows, cols}, func(_, r, c int) spot { return spot{"a", r, c} }},
		{"transpose", Shapes{"a": {cols, rows}}, []string{"a"}, []string{"x"}, []int64{rows, cols}, func(_, r, c int) spot { return spot{"a", c, r} }},
		{"split", Shapes{"a": {40, cols}, "b": {30, cols}}, []string{"a", "b"}, []string{"x"}, []int64{rows, cols}, func(_, r, c int) spot {
			if r < 40 {
				return spot{"a", r, c}
			}
			return spot{"b", r - 40, c}
		}},
		{"split(transpose", Shapes{"a": {3, rows}, "b": {30, rows}}, []string{"a", "b"}, []string{"x"}, []int64{rows, cols}, func(_, r, c int) spot {
			if c < 3 {
				return spot{"a", c, r}
			}
			return spot{"b", c - 3, r}
		}},
		{"join", Shapes{"a": {2 * rows, cols}}, []string{"a"}, []string{"x", "y"}, []int64{rows, cols}, func(n, r, c int) spot { return spot{"a", n*rows + r, c} }},
		{"join(transpose", Shapes{"a": {2 * cols, rows}}, []string{"a"}, []string{"x", "y"}, []int64{rows, cols}, func(n, r, c int) spot { return spot{"a", n*cols + c, r} }},
	} {
		for _, dtype := range []string{"F32", "BF16", "F16"} {
			for _, split := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %s split masters %t", c.op, dtype, split), func(t *testing.T) {
					dir := t.TempDir()
					put(t, dir, configFile, "{}")
					data := numbers(rows*cols, dtype)
					var entries []safetensors.Entry
					for _, n := range c.names {
						entries = append(entries, safetensors.Entry{Name: n, DType: dtype, Shape: c.shape, Data: data})
					}
					var b bytes.Buffer
					if err := safetensors.Write(&b, nil, entries); err != nil {
						t.Fatal(err)
					}
					put(t, dir, singleFile, b.String())
					f, err := Open(dir)
					if err != nil {
						t.Fatal(err)
					}
					defer f.Close()
					foreign := []plan.Foreign{{Op: c.op, Names: c.names, Params: c.order}}
					m, err := f.Match(foreign, c.params)
					if err != nil {
						t.Fatal(err)
					}
					p, view := slabPlan(split, c.order, c.params)
					if err := m.Load(p, view, nil); err != nil {
						t.Fatal(err)
					}
					masters := checkpoint.MastersOf(&p.Slabs[0], view)
					got := map[string][]float32{}
					var file []safetensors.Entry
					for _, x := range p.Slabs[0].Params {
						v := make([]float32, x.Shape[0]*x.Shape[1])
						masters.Read(v, x.Off)
						got[x.Name] = v
						raw := make([]byte, 4*len(v))
						encode(raw, v, "F32")
						file = append(file, safetensors.Entry{Name: x.Name, DType: "F32", Shape: x.Shape, Data: raw})
					}
					want := make([]float32, rows*cols)
					decode(want, data, dtype)
					for n := range c.names {
						for r := range rows {
							for k := range cols {
								at := c.where(n, r, k)
								if x := got[at.param][at.r*int(c.params[at.param][1])+at.c]; x != want[r*cols+k] {
									t.Fatalf("element %d, %d of %s is %g, not %g", r, k, c.names[n], x, want[r*cols+k])
								}
							}
						}
					}
					var weights bytes.Buffer
					if err := safetensors.Write(&weights, nil, file); err != nil {
						t.Fatal(err)
					}
					w, err := safetensors.Read("weights", bytes.NewReader(weights.Bytes()), int64(weights.Len()))
					if err != nil {
						t.Fatal(err)
					}
					x := &exporter{Request: &Request{Plan: p}, res: &Result{}, weights: w}
					for n := range c.names {
						var out bytes.Buffer
						if err := x.tensor(&out, &outTensor{name: c.names[n], dtype: dtype, shape: c.shape, entry: &foreign[0], part: n}); err != nil {
							t.Fatal(err)
						}
						if !bytes.Equal(out.Bytes(), data) {
							t.Errorf("%s does not come back", c.names[n])
						}
					}
				})
			}
		}
	}
}

// Every bit of an f32 goes through whole and split masters, values that are no numbers too.
func TestUnusualValuesStay(t *testing.T) {
	bits := []uint32{0, 1 << 31, 1, 0x80000001, 0x7f7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffffffff, 0x3f808000, 0x3f807fff, 0x7f7f8000}
	raw := make([]byte, 4*len(bits))
	for i, b := range bits {
		binary.LittleEndian.PutUint32(raw[4*i:], b)
	}
	for _, split := range []bool{false, true} {
		shapes := Shapes{"a": {int64(len(bits))}}
		p, view := slabPlan(split, []string{"a"}, shapes)
		masters := checkpoint.MastersOf(&p.Slabs[0], view)
		v := make([]float32, len(bits))
		decode(v, raw, "F32")
		masters.Write(0, v)
		back := make([]float32, len(bits))
		masters.Read(back, 0)
		for i := range bits {
			if got := math.Float32bits(back[i]); got != bits[i] {
				t.Errorf("split %t: %#08x comes back as %#08x", split, bits[i], got)
			}
		}
	}
}

// Values that are not finite are counted, wherever they stand, and the first tensor is named.
func TestOddValuesAreCounted(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		values []float32
		odd    int64
	}{
		{nil, 0}, {[]float32{0, 1, -2, math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32}, 0},
		{[]float32{nan}, 1}, {[]float32{1, 2, 3, 4, 5, inf}, 1}, {[]float32{inf, -inf, 1, nan, -inf}, 4}, {[]float32{1, 1, 1, nan}, 1},
	} {
		n := int64(len(c.values))
		dir := t.TempDir()
		put(t, dir, configFile, "{}")
		file(t, filepath.Join(dir, singleFile), f32("a", n, 1, make([]float32, n)), f32("b", n, 1, c.values), f32("c", n, 1, c.values))
		f, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		var foreign []plan.Foreign
		shapes, names := Shapes{}, []string{"a", "b", "c"}
		for _, name := range names {
			shapes[name] = []int64{n, 1}
			foreign = append(foreign, plan.Foreign{Names: []string{name}, Params: []string{name}})
		}
		m, err := f.Match(foreign, shapes)
		if err != nil {
			t.Fatal(err)
		}
		p, view := slabPlan(true, names, shapes)
		for range 2 { // the second does not count what the first found
			if err := m.Load(p, view, nil); err != nil {
				t.Fatal(err)
			}
		}
		f.Close()
		raw := make([]byte, 2*n)
		encode(raw, c.values, "BF16")
		if got := notFiniteHalves(raw); got != int64(len(c.values)-countFinite(raw)) {
			t.Errorf("%v in bf16: %d are not finite", c.values, got)
		}
		if want := (Odd{Values: 2 * c.odd, Tensor: map[bool]string{true: "b"}[c.odd > 0]}); m.Odd != want {
			t.Errorf("%v: %+v, want %+v", c.values, m.Odd, want)
		}
	}
}

func countFinite(raw []byte) (n int) {
	v := make([]float32, len(raw)/2)
	decode(v, raw, "BF16")
	for _, x := range v {
		if !math.IsNaN(float64(x)) && !math.IsInf(float64(x), 0) {
			n++
		}
	}
	return n
}

// A frozen slab of halves gets the bits of a bf16 folder, NaNs included, and rounds others as
// masters are rounded; the fingerprint of what was loaded is that of the files.
func TestFrozenHalvesAreTheFolder(t *testing.T) {
	for _, dtype := range []string{"BF16", "F16", "F32"} {
		const rows, cols = 300, 1001 // several pieces of a range, the last of an odd size
		raw := make([]byte, rows*cols*width(dtype))
		for i := range raw {
			raw[i] = byte(uint32(i) * 2654435761 >> 24)
		}
		dir := t.TempDir()
		put(t, dir, configFile, "{}")
		file(t, filepath.Join(dir, singleFile), safetensors.Entry{Name: "x", DType: dtype, Shape: []int64{rows, cols}, Data: raw})
		load := func() (*Matching, []byte) {
			f, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { f.Close() })
			m, err := f.Match([]plan.Foreign{{Op: "split", Names: []string{"x"}, Params: []string{"b", "a"}}}, Shapes{"a": {100, cols}, "b": {200, cols}})
			if err != nil {
				t.Fatal(err)
			}
			return m, make([]byte, 2*rows*cols)
		}
		m, got := load()
		p := &plan.Plan{Slabs: []plan.Slab{{Weight: 1, Elems: rows * cols, Frozen: true, Params: []plan.Param{
			{Name: "a", Shape: []int64{100, cols}}, {Name: "b", Off: 100 * cols, Shape: []int64{200, cols}}}}}}
		if err := m.Load(p, func(plan.BufID) []byte { return got }, nil); err != nil {
			t.Fatal(err)
		}
		values := make([]float32, rows*cols)
		decode(values, raw, dtype)
		var odd int64
		for i, x := range values {
			at := (i + 100*cols) % (rows * cols) // b stands first in the file, last in the slab
			want := uint16((math.Float32bits(x) + 1<<15) >> 16)
			if h := binary.LittleEndian.Uint16(got[2*at:]); h != want {
				t.Fatalf("%s: element %d is %04x, not %04x", dtype, i, h, want)
			}
			if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
				odd++
			}
		}
		if odd == 0 || m.Odd.Values != odd {
			t.Errorf("%s: %d values are not finite, %d were counted", dtype, odd, m.Odd.Values)
		}
		fresh, _ := load()
		a, err1 := m.Fingerprint()
		b, err2 := fresh.Fingerprint()
		if _, whole := joined(m.sums[m.entries[0].from[0]], int64(len(raw))); a != b || err1 != nil || err2 != nil || !whole {
			t.Errorf("%s: fingerprint %s of what was loaded, %s of the files (%v, %v); whole %t", dtype, a, b, err1, err2, whole)
		}
	}
}

// loadEnv names the folder that a child process loads, to be measured.
const loadEnv = "MTC_TEST_HF_LOAD"

// The process's memory grows by the plan's and one tensor's, however large the folder: loading
// 96 MB in f16 into 192 MB of masters, the largest tensor transposed.
func TestLoadingTakesOneTensorBesideThePlan(t *testing.T) {
	const tensors, side = 12, 2048
	var foreign []plan.Foreign
	shapes := Shapes{}
	var names []string
	for i := range tensors {
		n := fmt.Sprintf("p%d", i)
		names = append(names, n)
		shapes[n] = []int64{side, side}
		foreign = append(foreign, plan.Foreign{Op: "transpose", Names: []string{fmt.Sprintf("t%d", i)}, Params: []string{n}})
	}
	if dir := os.Getenv(loadEnv); dir != "" {
		before := peak(t)
		f, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		m, err := f.Match(foreign, shapes)
		if err != nil {
			t.Fatal(err)
		}
		p, view := slabPlan(false, names, shapes)
		if err := m.Load(p, view, nil); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("grew %d\n", peak(t)-before)
		return
	}
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("peak memory is read from /proc")
	}
	dir := t.TempDir()
	put(t, dir, configFile, "{}")
	var entries []safetensors.Entry
	for i := range tensors {
		entries = append(entries, safetensors.Entry{Name: fmt.Sprintf("t%d", i), DType: "F16", Shape: []int64{side, side}, Stream: func(w io.Writer) error {
			_, err := io.CopyN(w, zeros{}, 2*side*side)
			return err
		}})
	}
	out, err := os.Create(filepath.Join(dir, singleFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := safetensors.Write(out, nil, entries); err != nil {
		t.Fatal(err)
	}
	out.Close()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestLoadingTakesOneTensorBesideThePlan$", "-test.v")
	cmd.Env = append(os.Environ(), loadEnv+"="+dir)
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var grew int64
	_, rest, ok := strings.Cut(string(text), "grew ")
	if _, err := fmt.Sscan(rest, &grew); !ok || err != nil {
		t.Fatalf("no figure in:\n%s", text)
	}
	const masters, tensor, slack = 4 * tensors * side * side, 2 * side * side, 24 << 20
	t.Logf("grew by %d MiB; masters %d MiB, a tensor %d MiB", grew>>20, masters>>20, tensor>>20)
	if grew > masters+tensor+slack {
		t.Errorf("memory grew by %d MiB, the masters have %d and a tensor %d", grew>>20, masters>>20, tensor>>20)
	}
	if grew < masters {
		t.Errorf("memory grew by %d MiB, less than the masters: nothing was measured", grew>>20)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// peak is the largest resident memory of this process so far.
func peak(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range strings.Split(string(text), "\n") {
		if f := strings.Fields(l); len(f) == 3 && f[0] == "VmHWM:" {
			kb, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kb << 10
		}
	}
	t.Fatal("no peak memory in /proc/self/status")
	return 0
}
