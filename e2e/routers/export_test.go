package routers

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/checkpoint"
)

// TestExportComesBack: a model that goes by cutoffs or biases is exported with them, in config.json for
// others to read and bit for bit beside the weights; a run from the folder has the same weights and
// routers, generates the same, and its export is the same folder.
func TestExportComesBack(t *testing.T) {
	onEach(t, func(t *testing.T, precision string) {
		for _, kind := range append([]string{"biased"}, kinds...) {
			dir := filepath.Join(t.TempDir(), "run")
			c := train(t, kind, precision, dir, "--data", text(t), "--holdout", "0.4")
			export := func(run string) string {
				to := filepath.Join(t.TempDir(), "hf")
				if out, err := exec.Command(program(t, kind, precision), "export", run, "--hf", to).CombinedOutput(); err != nil {
					t.Fatalf("%s: %v\n%s", kind, err, out)
				}
				return to
			}
			out := export(dir)
			config, err := os.ReadFile(filepath.Join(out, "config.json"))
			if err != nil {
				t.Fatal(err)
			}
			var said struct {
				Kind    string `json:"model_type"`
				Routers []struct {
					Name, Kind      string
					Threshold, Bias []float64
				} `json:"mtc_routers"`
			}
			if err := json.Unmarshal(config, &said); err != nil {
				t.Fatalf("%v in\n%s", err, config)
			}
			if said.Kind != "mtc" || len(said.Routers) == 0 {
				t.Fatalf("%s: config.json is\n%s", kind, config)
			}
			moved := false
			for _, r := range said.Routers {
				list := r.Threshold
				if r.Kind == "topk" {
					list = r.Bias
				} else {
					most(t, "cutoffs of "+r.Name, list, cutoffsOf(t, c, r.Name), 1e-6)
				}
				moved = moved || slices.ContainsFunc(list, func(x float64) bool { return x != 0 })
			}
			if !moved {
				t.Errorf("%s: no router has a cutoff or a bias", kind)
			}
			if !bytes.Equal(bytesOf(t, c, checkpoint.RouterFile), mustRead(t, filepath.Join(out, checkpoint.RouterFile))) {
				t.Errorf("%s: the states of the routers are others", kind)
			}

			back := filepath.Join(t.TempDir(), "back")
			again := train(t, kind, precision, back, "--from", out, "--steps", "0")
			for _, file := range []string{checkpoint.WeightsFile, checkpoint.RouterFile} {
				if !bytes.Equal(bytesOf(t, c, file), bytesOf(t, again, file)) {
					t.Errorf("%s: %s came back otherwise", kind, file)
				}
			}
			generate := func(run string) string {
				text, err := exec.Command(program(t, kind, precision), "generate", run, "--prompt", "the router", "--temperature", "0", "--tokens", "20").CombinedOutput()
				if err != nil {
					t.Fatalf("%s: %v\n%s", kind, err, text)
				}
				return string(text)
			}
			if a, b := generate(dir), generate(back); a != b || !strings.HasPrefix(a, "the router") {
				t.Errorf("%s: it generates %q, and from the export %q", kind, a, b)
			}
			twice := export(back)
			for _, e := range must(os.ReadDir(out)) {
				if !bytes.Equal(mustRead(t, filepath.Join(out, e.Name())), mustRead(t, filepath.Join(twice, e.Name()))) {
					t.Errorf("%s: %s of the second export is another", kind, e.Name())
				}
			}
		}
	})
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}
