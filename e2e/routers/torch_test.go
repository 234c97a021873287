package routers

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestTrainsLikePyTorch: whole trainings from the same weights on the same rows have the losses
// and the numbers of experts of PyTorch's, whose routers are written out from the definitions
// (tools/fixtures/routers.py). A choice of experts turns rounding into other experts sooner or
// later, so means over ten steps are compared.
func TestTrainsLikePyTorch(t *testing.T) {
	file, err := os.ReadFile("testdata/curves.json")
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		Text   string
		Curves map[string]struct {
			Loss []float64
		}
	}
	if err := json.Unmarshal(file, &f); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(t.TempDir(), "data.bin")
	shard := make([]byte, 1024, 1024+2*len(f.Text))
	for i, v := range []uint32{20240520, 1, uint32(len(f.Text))} {
		binary.LittleEndian.PutUint32(shard[4*i:], v)
	}
	for _, c := range []byte(f.Text) {
		shard = append(shard, c, 0)
	}
	if err := os.WriteFile(data, shard, 0o666); err != nil {
		t.Fatal(err)
	}
	onEach(t, func(t *testing.T, precision string) {
		limit := 0.003
		if precision == "bf16" {
			limit = 0.02
		}
		for _, name := range slices.Sorted(maps.Keys(f.Curves)) {
			want := f.Curves[name]
			t.Run(name, func(t *testing.T) {
				out := filepath.Join(t.TempDir(), "run")
				train(t, "curves-"+name, precision, out, "--data", data)
				losses := metric(t, filepath.Join(out, "metrics.jsonl"), "loss")
				if len(losses) != len(want.Loss) || len(losses) < 100 {
					t.Fatalf("%d losses, PyTorch has %d", len(losses), len(want.Loss))
				}
				worst := 0.0
				for at := 0; at < len(losses); at += 10 {
					a, b := mean(losses[at:at+10]), mean(want.Loss[at:at+10])
					worst = max(worst, math.Abs(a/b-1))
				}
				if first := math.Abs(losses[1]/want.Loss[1] - 1); first > limit/10 {
					t.Errorf("the second loss is %g, PyTorch's %g: if the first weights are others now, the fixture is to be made again", losses[1], want.Loss[1])
				}
				if !(worst <= limit) {
					t.Errorf("the mean loss of ten steps is up to %.2g of it from PyTorch's, %g allowed", worst, limit)
				}
				t.Logf("largest difference of ten steps: %.2g, %g allowed", worst, limit)
			})
		}
	})
}

func mean(x []float64) (m float64) {
	for _, v := range x {
		m += v / float64(len(x))
	}
	return m
}

// metric reads the values of a key from lines of JSON.
func metric(t *testing.T, path, key string) (out []float64) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for d := json.NewDecoder(file); d.More(); {
		var line map[string]any
		if err := d.Decode(&line); err != nil {
			t.Fatal(err)
		}
		if x, ok := line[key].(float64); ok {
			out = append(out, x)
		}
	}
	return out
}
