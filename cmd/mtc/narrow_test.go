package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/megatrain/mtc/compiler/view"
	"github.com/megatrain/mtc/runtime/fold"
	"github.com/megatrain/mtc/runtime/telemetry"
)

// TestReportsAreNarrow: whatever a verb reports keeps to 80 columns.
func TestReportsAreNarrow(t *testing.T) {
	dir := t.TempDir()
	model := func(name string) string { return filepath.Join("..", "..", "models", name+".mt") }
	build := func(name, placement string) string {
		out := filepath.Join(dir, name+placement)
		if code, _, errw := call("compile", model(name), "--no-build", "--placement", placement, "-o", out); code != exitOK {
			t.Fatal(errw)
		}
		return out
	}
	nano, stream, moe := build("nano", "resident"), build("nano", "stream"), build("et_moe_nano", "stream")
	lines := [][]string{{"diff", nano, stream}, {"diff", nano, moe, "--all"}, {"doctor"}, {"ops"}, {"explain"},
		{"compile", model("qwen2.5-7b-lora"), "--no-build", "-o", filepath.Join(dir, "lora")},
		{"plan", model("nano"), "--what-if", "gpu=h200", "--what-if", "batch=65536,131072", "--what-if", "host=64GiB"}}
	for _, b := range []string{nano, stream, moe} {
		lines = append(lines, []string{"inspect", b}, []string{"inspect", b, "--memory"}, []string{"inspect", b, "--task", "3"}, []string{"inspect", b, "--list", "steady"},
			[]string{"inspect", b, "--why", "30"})
	}
	for _, m := range []string{"nano", "et_moe_nano"} {
		lines = append(lines, []string{"plan", model(m), "--machine", "rtx4090", "--host-memory", "64GiB"})
	}
	for _, args := range lines {
		_, out, errw := call(args...)
		if out == "" {
			t.Errorf("mtc %s: %s", strings.Join(args, " "), errw)
		}
		for _, line := range strings.Split(out, "\n") {
			if n := utf8.RuneCountInString(line); n > helpWidth && !strings.Contains(line, dir) {
				t.Errorf("mtc %s: %d columns: %s", strings.Join(args, " "), n, line)
			}
		}
	}
}

// TestLongNames: a name that is longer than a line stands in one of its own, beside at most the word that says what it is.
func TestLongNames(t *testing.T) {
	dir, long := t.TempDir(), strings.Repeat("very_", 20)+"long"
	text := strings.NewReplacer("tiny", long, "layer", long+"_layer").Replace(tinyModel)
	file, a, b := filepath.Join(dir, "m.mt"), filepath.Join(dir, "a"), filepath.Join(dir, "b")
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"check", file}, {"compile", file, "--no-build", "-o", a}, {"compile", file, "--no-build", "--placement", "stream", "--micro-batch", "2", "-o", b},
		{"plan", file, "--machine", "rtx4090"}, {"inspect", b}, {"inspect", b, "--memory"}, {"inspect", b, "--list", "steady"},
		{"inspect", b, "--task", "3"}, {"inspect", b, "--task", "40"}, {"inspect", b, "--why", "forward " + long}, {"inspect", b, "--why", "prefetch"}, {"diff", a, b, "--all"},
	} {
		_, out, errw := call(args...)
		if out == "" {
			t.Errorf("mtc %s: %s", strings.Join(args, " "), errw)
		}
		for _, line := range strings.Split(out, "\n") {
			if n := utf8.RuneCountInString(line); n > helpWidth && len(strings.Fields(line)) > 2 && !strings.Contains(line, dir) {
				t.Errorf("mtc %s: %d columns: %s", strings.Join(args, " "), n, line)
			}
		}
	}
}

// TestErrorsAreNarrow: what every verb says is wrong keeps to 80 columns where main prints it, in the same words as in
// whole lines, and stays in whole lines where a program reads it.
func TestErrorsAreNarrow(t *testing.T) {
	var all [][]string
	for _, verb := range verbs {
		name := verb(&env{}).Name()
		for _, args := range [][]string{{"--no-such-flag-as-this-one"}, {"nowhere/at/all.mt"}, {"nowhere", "at", "all", "of", "the", "folders", "that", "are"}} {
			all = append(all, append([]string{name}, args...))
		}
	}
	nano := filepath.Join("..", "..", "models", "nano.mt")
	all = append(all, [][]string{
		{"plan", nano, "--what-if", "gpu=rtx5090,h200", "--what-if", "batch=9999999999"},
		{"plan", nano, "--machine", "a-machine-that-is-not-there"}, {"plan", nano, "--device-memory", "1KiB", "--machine", "h200"},
		{"plan", nano, "--recompute", "layer[0..3,7],another,layer[9]"}, {"plan", nano, "--set", "D=130"}, {"plan", nano, "--set", "train.lr=cosine(peak = 1, warm = 3)"},
		{"inspect", "..", "--why", "a task of no name", "--html", "/dev/full/x"}, {"diff", nano, nano + "x"}, {"compare", "..", "."},
		{"bench", "-o", nano}, {"bench", "--result", nano}, {"import", "..", "-o", nano}, {"run", nano, "--data", "a/folder/that/is/not/there", "--steps", "3"},
		{"run", nano, "--steps", "three"}, {"generate", ".."}, {"export", ".."}, {"doctor", ".."}, {"calibrate", ".."}, {"ops", "attntion"}, {"explain", "MT9"},
	}...)
	for _, args := range all {
		whole, said, short := &strings.Builder{}, &strings.Builder{}, &strings.Builder{}
		code := run(args, strings.NewReader(""), io.Discard, whole)
		if again := run(args, strings.NewReader(""), io.Discard, &fold.Writer{W: said}); again != code {
			t.Errorf("mtc %s: exit %d, and %d", strings.Join(args, " "), code, again)
		}
		if line := wide(said.String()); line != "" {
			t.Errorf("mtc %s: %d columns: %s", strings.Join(args, " "), len(line), line)
		}
		if a, b := strings.Fields(whole.String()), strings.Fields(said.String()); !slices.Equal(a, b) {
			t.Errorf("mtc %s: says %q, not %q", strings.Join(args, " "), b, a)
		}
		run(append([]string{"--diag", "short"}, args...), strings.NewReader(""), io.Discard, &fold.Writer{W: short})
		for _, line := range strings.Split(short.String(), "\n") {
			if strings.HasPrefix(line, " ") {
				t.Errorf("mtc %s --diag short: a line is broken:\n%s", strings.Join(args, " "), short)
			}
		}
	}
}

// TestPlanTextAgreesWithJSON makes the figures of a plan's text out of its JSON.
func TestPlanTextAgreesWithJSON(t *testing.T) {
	for _, args := range [][]string{
		{"plan", "../../models/nano.mt", "--machine", "h200"},
		{"plan", "../../models/et_moe_nano.mt", "--machine", "rtx4090", "--host-memory", "64GiB"},
		{"plan", "../../models/nano.mt", "--machine", "rtx4090", "--placement", "stream"},
	} {
		code, text, errw := call(args...)
		if code != exitOK {
			t.Fatal(errw)
		}
		code, out, errw := call(append(args, "--json")...)
		if code != exitOK {
			t.Fatal(errw)
		}
		var r planJSON
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatal(err)
		}
		text = strings.Join(strings.Fields(text), " ")
		want := []string{
			fmt.Sprintf("%s parameters, on %s", telemetry.Group(r.Params), r.Machine),
			fmt.Sprintf("device %s of %s", telemetry.Bytes(r.Device), telemetry.Bytes(r.DeviceLimit)),
			fmt.Sprintf("host %s of %s", telemetry.Bytes(r.Host), telemetry.Bytes(r.HostLimit)),
			fmt.Sprintf("step %s for %s tokens: %s tokens/s, %s", view.Seconds(r.Seconds), telemetry.Group(r.Tokens), telemetry.Group(int64(math.Round(r.Rate))), view.Rate(r.FLOPs, "FLOP/s")),
			fmt.Sprintf("run %s steps in %s", telemetry.Group(r.Steps), telemetry.Seconds(r.RunSeconds)),
			fmt.Sprintf("checkpoint %s, of it weights %s", telemetry.Bytes(r.Checkpoint), telemetry.Bytes(r.Weights)),
		}
		for _, x := range r.Path {
			if x.Part >= 0.005 {
				want = append(want, fmt.Sprintf("%s %s", x.Bound, view.Percent(x.Part)))
			}
		}
		for _, u := range r.Lanes {
			if u.Busy > 0.001*r.Seconds {
				want = append(want, fmt.Sprintf("%s %s", u.Lane, view.Percent(u.Busy/r.Seconds)))
			}
		}
		for _, x := range r.Choices {
			want = append(want, x.Flag+" ")
		}
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("mtc %s: no %q in\n%s", strings.Join(args, " "), w, text)
			}
		}
		if math.Abs(r.Rate*r.Seconds/float64(r.Tokens)-1) > 1e-6 || math.Abs(float64(r.Steps)*r.Seconds/r.RunSeconds-1) > 1e-9 {
			t.Errorf("%v tokens/s for %v s, %v s for %d steps", r.Rate, r.Seconds, r.RunSeconds, r.Steps)
		}
	}
}
