//go:build unix

package main

import (
	"regexp"
	"strings"
	"testing"
)

// TestDeviceMemoryOfAProcessor: compile and run mean the same by a cap of device memory on a CPU, and
// a build that was made as MT0415's help says runs with the cap that it was made for.
func TestDeviceMemoryOfAProcessor(t *testing.T) {
	w := newWorkFolder(t)
	w.model("tiny one.mt", "seq = 64; batch = 8 rows")
	w.must(".", "compile", "my models/tiny one.mt", "-o", "plain")
	for _, c := range []struct {
		memory string
		want   string // of the plan; "": none fits
	}{{"100MB", "resident"}, {"1KB", ""}} {
		code, out, _ := w.call(".", "compile", "my models/tiny one.mt", "--no-build", "-o", "capped", "--device-memory", c.memory)
		if fits := code == exitOK && strings.Contains(out, "placement  "+c.want+":"); fits != (c.want != "") {
			t.Errorf("compile, %s: exit %d\n%s", c.memory, code, out)
		}
		code, _, errs := w.call(".", "run", "plain", "--steps", "1", "--out", "runs/"+c.memory, "--device-memory", c.memory)
		if (code == exitOK) != (c.want != "") {
			t.Errorf("run, %s: exit %d\n%s", c.memory, code, errs)
		}
	}

	// A cap that pinned options exceed: what the help says fits, and the build of it runs with that cap.
	small := []string{"--recompute", "none", "--micro-batch", "8", "--placement", "resident"}
	code, _, errs := w.call(".", append([]string{"compile", "my models/tiny one.mt", "-o", "helped", "--device-memory", "120KB"}, small...)...)
	help := regexp.MustCompile("with `?(--[^`\n]*?)`? it fits").FindStringSubmatch(errs)
	if code == exitOK || help == nil || !strings.Contains(errs, "MT0415") {
		t.Fatalf("a cap below the plan: exit %d\n%s", code, errs)
	}
	args := append([]string{"compile", "my models/tiny one.mt", "-o", "helped", "--device-memory", "120KB"}, small...)
	args = append(args, strings.Fields(help[1])...) // the later one of a flag counts
	w.must(".", args...)
	w.must(".", "run", "helped", "--steps", "1", "--out", "runs/a")
	w.must(".", "run", "helped", "--steps", "1", "--out", "runs/b", "--device-memory", "120KB")
}
