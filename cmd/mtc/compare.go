package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/megatrain/mtc/compiler/view"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/telemetry"
)

func newCompareCmd(e *env) *cobra.Command {
	var machine string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "compare [BUILD] RUN",
		Short: "a run's measured steps beside the prediction",
		Long: `
Lays the profile of a run (mtc run --profile) over the prediction of its schedule: the time of
a step, of each kind of task and each lane, the rates that were reached, the exposed time, and
the three kinds that are farthest from the prediction, each with its likely cause. A run
folder knows its schedule; BUILD names the build where the run's program was carried
elsewhere.`,
		Example: "  mtc compare runs/nano\n  mtc compare build/nano runs/nano --machine machine.json",
		Args:    argRange(1, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			return compare(e, args, machine, asJSON)
		},
	}
	cmd.Flags().StringVar(&machine, "machine", "", "`NAME` or file of a machine's profile to predict for (default: the one that BUILD was planned for; else this machine, if measured)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the comparison as JSON")
	return cmd
}

func compare(e *env, args []string, machine string, asJSON bool) error {
	run := args[len(args)-1]
	if !exists(run) {
		return inputErrorf("there is no folder %s", run).hint("name the folder of a run: `mtc run BUILD --profile` makes one")
	}
	if run = homeOf(run); filepath.Base(run) == scheduleFile {
		run = filepath.Dir(run)
	}
	s, err := loadSchedule(args[:1])
	if err != nil {
		return err
	}
	measured, err := s.measured(run)
	if err != nil {
		return err
	}
	if measured == nil {
		build := "BUILD"
		if len(args) == 2 {
			build = fault.Shell(args[0])
		}
		return inputErrorf("there is no %s in %s: the run was not profiled", telemetry.ProfileFile, run).
			hint("`mtc run %s --profile --out DIR` trains anew and measures", build)
	}
	predicted, err := s.predict(machine, plan.Steady)
	if err != nil {
		return err
	}
	c := view.Compare(predicted, measured)
	var out bytes.Buffer
	if asJSON {
		enc := json.NewEncoder(&out)
		enc.SetIndent("", "  ")
		if err := enc.Encode(c); err != nil {
			return err
		}
	} else {
		s.File.WriteHead(&out)
		out.WriteByte('\n')
		c.Write(&out)
	}
	_, err = e.out.Write(out.Bytes())
	return err
}
