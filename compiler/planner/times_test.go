//go:build unix

package planner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/compiler/cost"
)

// TestPlanningTimes prints the table of docs/performance.md: the processor seconds of planning every model for every
// machine, with as much host memory as its profile has and with 1.5 TiB, which fits more. A number in brackets is of a
// search that finds that nothing fits, and the nearest change that does. It runs with MTC_LONG=1 alone:
//
//	MTC_LONG=1 go test ./compiler/planner -run TestPlanningTimes -v -timeout 1h
func TestPlanningTimes(t *testing.T) {
	if os.Getenv("MTC_LONG") == "" {
		t.Skip("it takes minutes, and no figure of it is right or wrong; MTC_LONG=1 runs it")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // as the command has it
	files, err := filepath.Glob("../../models/*.mt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no models: %v", err)
	}
	var table strings.Builder
	head, rule := "| model |", "|---|"
	for _, m := range cost.Names() {
		head, rule = head+" "+m+" |", rule+"---:|"
	}
	most, which := 0.0, ""
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".mt")
		if name == "llama" {
			continue // sizes are given by the models that use it
		}
		fmt.Fprintf(&table, "| %s |", name)
		for _, machine := range cost.Names() {
			var cell []string
			for _, host := range []int64{0, 1536 << 30} {
				r := Request{Options: compiler.Options{Path: file, Target: "cuda"}, Machine: cost.Shipped(machine), Host: host}
				before := processor(t)
				_, err := choose(t, r)
				took := (processor(t) - before).Seconds()
				text := fmt.Sprintf("%.1f", took)
				var short *ShortError
				switch {
				case errors.As(err, &short):
					text = "(" + text + ")"
				case err != nil:
					t.Fatalf("%s on %s: %v", name, machine, err)
				}
				if cell = append(cell, text); took > most {
					most, which = took, fmt.Sprintf("%s on %s", name, machine)
				}
			}
			fmt.Fprintf(&table, " %s |", strings.Join(cell, ", "))
		}
		table.WriteString("\n")
	}
	t.Logf("\n%s\n%s\n%s\nthe most: %.1f s, %s", head, rule, table.String(), most, which)
}

// processor is the processor time of this process so far.
func processor(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
