package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// planMachines are what every model is planned for.
var planMachines = []string{
	"--machine h200 --host-memory 1.5e12",
	"--machine h200 --host-memory 1.5TiB",
	"--machine h200 --host-memory 128GiB",
	"--machine rtx4090 --host-memory 64GiB",
	"--machine rtx4090 --host-memory 128GiB",
}

// TestPlanGoldens plans every model for each machine. All of it takes minutes, so that a plain
// run takes one machine a model, in turns; MTC_LONG=1 takes all. MTC_UPDATE=1 rewrites those taken.
func TestPlanGoldens(t *testing.T) {
	files, err := filepath.Glob("../../models/*.mt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no models: %v", err)
	}
	for i, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".mt")
		if name == "llama" {
			continue // sizes are given by the models that use it
		}
		for k, machine := range planMachines {
			args := []string{machine}
			if name == "dense-120b" && k < 2 {
				args = append(args, machine+" --set train.clip=none")
			} else if k != i%len(planMachines) && os.Getenv("MTC_LONG") == "" {
				continue
			}
			for _, a := range args {
				t.Run(name+" "+a, func(t *testing.T) {
					t.Parallel()
					comparePlan(t, file, a)
				})
			}
		}
	}
}

// comparePlan compares a plan with its golden.
func comparePlan(t *testing.T, file, args string) {
	var out bytes.Buffer
	var errs bytes.Buffer
	run(append([]string{"plan", file}, strings.Fields(args)...), nil, &out, &errs)
	for line := range strings.Lines(errs.String()) {
		if !strings.HasPrefix(line, "planning, ") { // how far it was, by the clock
			out.WriteString(line)
		}
	}
	name := strings.TrimSuffix(filepath.Base(file), ".mt")
	for _, r := range [][2]string{{"--machine ", "-"}, {" --host-memory ", "-"}, {" --set train.clip=none", "-noclip"}} {
		args = strings.Replace(args, r[0], r[1], 1)
	}
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("a line of %d columns: %s", n, line)
		}
	}
	golden := filepath.Join("testdata", "plan", name+args+".txt")
	if os.Getenv("MTC_UPDATE") != "" {
		if err := os.WriteFile(golden, out.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("%s changed (MTC_UPDATE=1 rewrites it):\n%s", golden, diff)
	}
}
