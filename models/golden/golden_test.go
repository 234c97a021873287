// Package golden holds a summary of every model's schedule: number of tasks by kind and lane,
// waits, FLOPs, bytes, and memory, for both placements. MTC_UPDATE=1 rewrites them.
package golden

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/compiler/schedule"
	"github.com/megatrain/mtc/lang/diag"
)

// TestScheduleSummaries compiles every model whole, verifier included, for both placements.
func TestScheduleSummaries(t *testing.T) {
	files, err := filepath.Glob("../*.mt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no models: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".mt")
		if name == "llama" {
			continue // sizes are given by the models that use it
		}
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			out.WriteString(summary(t, compiler.Options{Path: file, Placement: schedule.Resident}))
			out.WriteString(summary(t, compiler.Options{Path: file, Placement: schedule.Stream, Recompute: "all"}))
			compare(t, name+".txt", out.String())
		})
	}
}

func summary(t *testing.T, o compiler.Options) string {
	t.Helper()
	var diags diag.List
	start := time.Now()
	res, err := compiler.Compile(context.Background(), o, &diags)
	if err != nil {
		t.Fatalf("%s, %s: %v", o.Path, o.Placement, err)
	}
	t.Logf("%s: %d tasks in %v", o.Placement, len(res.Plan.Tasks), time.Since(start).Round(time.Millisecond))
	f := schedule.FileOf(res.Plan)
	var out strings.Builder
	waits, tasks := 0, map[string]int{}
	for i := range f.Tasks {
		tasks[f.Tasks[i].List]++
		waits += len(f.Tasks[i].Waits)
	}
	recompute := ""
	if o.Recompute != "" {
		recompute = ", recompute " + o.Recompute
	}
	fmt.Fprintf(&out, "%s: %s parameters in %d slabs, %s%s\n", f.Model, schedule.Count(f.Params), len(f.Slabs), o.Placement, recompute)
	fmt.Fprintf(&out, "a step: %d rows of %d tokens, micro-batches: %d of %d rows\n", f.Batch, f.Seq, f.Micros, f.Rows)
	fmt.Fprintf(&out, "tasks: first %d, steady %d, drain %d, eval %d, prefill %d, decode %d; %d waits, %d events\n",
		tasks["first"], tasks["steady"], tasks["drain"], tasks["eval"], tasks["prefill"], tasks["decode"], waits, res.Plan.Events)
	f.WriteKinds(&out, "steady")
	f.WriteMemory(&out, false)
	out.WriteByte('\n')
	return out.String()
}

func compare(t *testing.T, name, got string) {
	t.Helper()
	if os.Getenv("MTC_UPDATE") != "" {
		if err := os.WriteFile(name, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", name, d)
	}
}
