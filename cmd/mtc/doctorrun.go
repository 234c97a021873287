package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/telemetry"
)

// doctorRun looks at the newest checkpoint of a run, or at a given one: weights that never
// moved, rows of theirs that did not, and values that are no numbers.
func doctorRun(e *env, run string, asJSON bool) error {
	c, err := checkpoint.Resolve(run, run)
	if err != nil {
		return err
	}
	all, err := c.Survey()
	if err != nil {
		return err
	}
	if asJSON {
		enc := json.NewEncoder(e.out)
		for i := range all {
			if err := enc.Encode(&all[i]); err != nil {
				return err
			}
		}
		return nil
	}
	var params int64
	for i := range all {
		params += elements(all[i].Shape)
	}
	fmt.Fprintf(e.out, "%s: step %d, %d updates, %s parameters in %d tensors\n", c.Path, c.State.Step, c.State.Updates, telemetry.Group(params), len(all))
	if b := c.State.Base; b != nil {
		fmt.Fprintf(e.out, "  they are adapters; the frozen weights are those of %s\n", b.Path)
		if _, err := os.Stat(b.Path); err != nil {
			fmt.Fprintf(e.out, "  which cannot be read: %v; `--from DIR` says where they are now\n", reasonOf(err))
		}
	}
	if c.State.Updates == 0 {
		fmt.Fprintln(e.out, "  nothing has been trained yet")
	}
	moved := 0
	for i := range all {
		h := &all[i]
		if h.Moved {
			moved++
		}
		switch {
		case c.State.Updates == 0:
		case !h.Moved:
			fmt.Fprintf(e.out, "  %-28s never moved: no gradient has reached it\n", h.Name)
		case h.Idle > 0:
			fmt.Fprintf(e.out, "  %-28s %s of %s rows never moved\n", h.Name, telemetry.Group(h.Idle), telemetry.Group(h.Shape[0]))
		}
		if h.NonFinite > 0 {
			fmt.Fprintf(e.out, "  %-28s %s values are not finite\n", h.Name, telemetry.Group(h.NonFinite))
		}
	}
	if c.State.Updates > 0 {
		fmt.Fprintf(e.out, "  %d of %d tensors have moved\n", moved, len(all))
	}
	return nil
}

func elements(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}
