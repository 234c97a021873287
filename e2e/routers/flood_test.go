package routers

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/checkpoint/safetensors"
)

// pushed copies a run whose newest checkpoint is c to a folder, with all cutoffs and what they are
// averages of at a value.
func pushed(t *testing.T, c *checkpoint.Checkpoint, dir string, value float64) {
	t.Helper()
	var files []checkpoint.File
	for _, name := range []string{checkpoint.WeightsFile, checkpoint.OptimizerFile, checkpoint.RouterFile} {
		f, err := safetensors.Open(filepath.Join(c.Path, name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		out := checkpoint.File{Name: name, Meta: f.Meta}
		weight := 0.0
		for i := range f.Tensors {
			x := &f.Tensors[i]
			b, err := io.ReadAll(f.Data(x))
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case strings.HasSuffix(x.Name, ".control"):
				weight = math.Float64frombits(binary.LittleEndian.Uint64(b[8:]))
			case strings.HasSuffix(x.Name, ".average"):
				for k := 0; k < len(b); k += 8 {
					binary.LittleEndian.PutUint64(b[k:], math.Float64bits(weight*value))
				}
			case strings.HasSuffix(x.Name, ".threshold"):
				for k := 0; k < len(b); k += 4 {
					binary.LittleEndian.PutUint32(b[k:], math.Float32bits(float32(value)))
				}
			}
			out.Tensors = append(out.Tensors, safetensors.Entry{Name: x.Name, DType: x.DType, Shape: x.Shape, Data: b})
		}
		files = append(files, out)
	}
	if err := os.CopyFS(dir, os.DirFS(filepath.Dir(c.Path))); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, filepath.Base(c.Path))); err != nil {
		t.Fatal(err)
	}
	if _, err := checkpoint.Save(dir, c.State, files, 0); err != nil {
		t.Fatal(err)
	}
}

// TestFloodIsTold: a run that goes on with cutoffs far too low ends well, and says what its rows did not
// hold, in training and in evaluation.
func TestFloodIsTold(t *testing.T) {
	onEach(t, func(t *testing.T, precision string) {
		dir := filepath.Join(t.TempDir(), "run")
		data := []string{"--data", text(t), "--holdout", "0.4", "--set", "train.eval=every(1, batches = 2)"}
		c := train(t, "threshold", precision, dir, append(data, "--steps", "4")...)
		flooded := filepath.Join(t.TempDir(), "run")
		pushed(t, c, flooded, -40)
		out, err := exec.Command(program(t, "threshold", precision), "train", "--out", flooded, "--resume", "--steps", "12").CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, want := range []string{"rows = N", "% of pairs dropped", "pairs dropped in evaluation"} {
			if !bytes.Contains(out, []byte(want)) {
				t.Errorf("the run does not say %q:\n%s", want, out)
			}
		}
		lines, err := os.ReadFile(filepath.Join(flooded, "moe.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		var dropped, evaluated, last float64
		for _, line := range bytes.Split(bytes.TrimSpace(lines), []byte("\n")) {
			var l struct {
				Layers []struct {
					Dropped, Mean float64
					Evaluated     float64 `json:"eval_dropped"`
				}
			}
			if err := json.Unmarshal(line, &l); err != nil {
				t.Fatal(err)
			}
			dropped, evaluated, last = dropped+l.Layers[0].Dropped, evaluated+l.Layers[0].Evaluated, l.Layers[0].Mean
			if l.Layers[0].Mean > 3 {
				t.Errorf("%v experts a token, rows are for 3", l.Layers[0].Mean)
			}
		}
		if dropped == 0 || evaluated == 0 || last == 0 {
			t.Errorf("moe.jsonl tells of %v dropped, %v in evaluation; %v experts a token at the end", dropped, evaluated, last)
		}
	})
}
