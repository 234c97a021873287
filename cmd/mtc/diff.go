package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/compiler/view"
	"github.com/megatrain/mtc/runtime/plan"
)

// exitDiffers ends diff where the schedules are not the same, as for wrong input: a script that
// wants them equal then fails.
const exitDiffers = exitInput

// diffOptions are the flags of diff.
type diffOptions struct {
	json    bool
	all     bool
	compile compileOptions
}

func newDiffCmd(e *env) *cobra.Command {
	var o diffOptions
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "what two schedules have different",
		Long: `
Compares two schedules: builds, run folders, schedule.json files, or .mt files, which are
compiled for it with the options of mtc compile; --machine names what times are predicted for. It shows the settings that differ, the tasks
that are added, gone, moved or changed, list by list, and the change in memory and in the
predicted time of a step. The exit code is 0 where they are the same, 1 where they are not.`,
		Example: "  mtc diff build/nano build/nano-stream\n  mtc diff build/nano models/nano.mt --slots 3",
		Args:    argRange(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.compile.decide(cmd.Flags().Changed)
			return diff(cmd.Context(), e, args, o)
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&o.json, "json", false, "print the difference as JSON")
	fs.BoolVar(&o.all, "all", false, "list all tasks that differ, of all lists; else the first ten of each change in a steady step")
	o.compile.bind(fs)
	o.compile.bindMachine(fs)
	return cmd
}

func diff(ctx context.Context, e *env, args []string, o diffOptions) error {
	var s [2]*view.Schedule
	machine := func(name string) (*cost.Machine, error) { return machineFor(name, s[0].Plan.Target) }
	for i, arg := range args {
		side, err := diffSide(ctx, arg, o.compile)
		if err != nil {
			return err
		}
		if s[i] = side.Schedule; i == 0 && side.dir != "" {
			machine = side.machine
		}
	}
	d := s[0].Compare(s[1])
	switch a, b := s[0].Plan.Target, s[1].Plan.Target; {
	case d.Equal:
	case a != b:
		d.Untimed = fmt.Sprintf("a is for %s, b for %s", a, b)
	default:
		m, err := machine(o.compile.Machine)
		if err != nil {
			return err
		}
		a, err1 := s[0].Predict(m, plan.Steady)
		b, err2 := s[1].Predict(m, plan.Steady)
		if err := cmp.Or(err1, err2); err != nil {
			d.Untimed = err.Error()
		} else {
			d.Predicted(a, b)
		}
	}
	var out bytes.Buffer
	if o.json {
		enc := json.NewEncoder(&out)
		enc.SetIndent("", "  ")
		if err := enc.Encode(d); err != nil {
			return err
		}
	} else {
		most := 10
		if o.all {
			most = view.All
		}
		d.Write(&out, args[0], args[1], most)
	}
	if _, err := e.out.Write(out.Bytes()); err != nil {
		return err
	}
	if !d.Equal {
		return exitStatus(exitDiffers)
	}
	return nil
}

// diffSide is one side of a comparison; that of a .mt has no folder.
func diffSide(ctx context.Context, arg string, o compileOptions) (*loaded, error) {
	if filepath.Ext(arg) == ".mt" && !isFolder(arg) {
		if err := isModelFile(arg); err != nil {
			return nil, err
		}
		s, _, err := compiledAs(ctx, arg, o)
		if err != nil {
			return nil, err
		}
		if s, err = view.Compiled(s.Plan, s.File.Work); err != nil { // with all that is compared
			return nil, err
		}
		return &loaded{Schedule: s}, nil
	}
	return loadSchedule([]string{arg})
}
