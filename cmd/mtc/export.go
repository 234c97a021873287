package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/program"
)

func newExportCmd(e *env) *cobra.Command {
	var pass passedFlags
	cmd := &cobra.Command{
		Use:   "export [RUN] --hf DIR",
		Short: "write a trained model as a Hugging Face folder",
		Long: "RUN is the folder of a run, or one of its checkpoints (RUN/step-N, RUN/best). Without it the newest run " +
			"of ./runs is taken.\n\n" +
			"A run that began with mtc run --from gives its folder back: the same files, names, order and " +
			"dtypes, with the weights of the checkpoint. Any other run gives config.json and weights where " +
			"an architecture is known that computes what the model does.",
		Example: "  mtc export runs/qwen --hf qwen-tuned\n  mtc export runs/nano --hf nano-hf --dtype bf16",
		Args:    argRange(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			run, exe, err := runProgram(args)
			if err != nil {
				return err
			}
			return execProgram(e, exe, append([]string{"export", run}, pass.args(cmd.Flags())...))
		},
	}
	pass.bind(cmd.Flags(), program.ExportFlags)
	return cmd
}

// runProgram is the run given, or the newest one, and its program.
func runProgram(args []string) (run, exe string, err error) {
	if run, err = runFolder(args); err != nil {
		return "", "", err
	}
	path := run
	if base := filepath.Base(run); strings.HasPrefix(base, "step-") || base == checkpoint.BestFolder {
		path = filepath.Dir(run)
	}
	exe = filepath.Join(path, program.FileName())
	if _, err := os.Stat(exe); err != nil {
		return "", "", inputErrorf("%s is not the folder of a run: it has no program", path).
			hint("`mtc run` makes one; give its --out folder")
	}
	return run, exe, nil
}
