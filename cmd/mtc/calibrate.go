package main

import (
	"github.com/spf13/cobra"

	"github.com/megatrain/mtc/runtime/program"
)

func newCalibrateCmd(e *env) *cobra.Command {
	var pass passedFlags
	cmd := &cobra.Command{
		Use:   "calibrate [RUN] --data PATH",
		Short: "recompute the cutoffs of a mixture of experts on other data",
		Long: "RUN is the folder of a run, or one of its checkpoints (RUN/step-N, RUN/best). Without it the newest run " +
			"of ./runs is taken.\n\n" +
			"Routers that go by cutoffs send each expert its share of the tokens that the model was trained " +
			"on. On other data the share may be another one, and with it the cost of serving. This counts " +
			"the logits of given data, makes their quantiles the cutoffs, and writes a run folder with the " +
			"same weights that generates by them.",
		Example: "  mtc calibrate runs/et_moe --data code/ --out runs/et_moe-code",
		Args:    argRange(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			run, exe, err := runProgram(args)
			if err != nil {
				return err
			}
			return execProgram(e, exe, append([]string{"calibrate", run}, pass.args(cmd.Flags())...))
		},
	}
	pass.bind(cmd.Flags(), program.CalibrateFlags)
	return cmd
}
