package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/megatrain/mtc/runtime/program"
)

func newGenerateCmd(e *env) *cobra.Command {
	var pass passedFlags
	cmd := &cobra.Command{
		Use:   "generate [RUN]",
		Short: "sample from a trained model",
		Long: "RUN is the folder of a run, or one of its checkpoints (RUN/step-N, RUN/best). Without it the newest run " +
			"of ./runs is taken.\n\n" +
			"The model sees at most as many tokens as it was compiled for (seq). Generation goes on past " +
			"that: each time the context is full, its last half is read again as the new context. Of a " +
			"prompt that is longer than seq, the last seq tokens are read. --stop-at-seq ends there " +
			"instead. The same seed and prompt give the same text.",
		Example: "  mtc generate runs/nano --prompt \"func main\" --tokens 300",
		Args:    argRange(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			run, exe, err := runProgram(args)
			if err != nil {
				return err
			}
			return execProgram(e, exe, append([]string{"generate", run}, pass.args(cmd.Flags())...))
		},
	}
	pass.bind(cmd.Flags(), program.GenerateFlags)
	return cmd
}

// plainArg is a path as a program takes it for no flag, whatever it begins with.
func plainArg(path string) string {
	path = filepath.Clean(path)
	if strings.HasPrefix(path, "-") {
		path = "." + string(filepath.Separator) + path
	}
	return path
}

// runFolder is the run given, or the newest one of ./runs.
func runFolder(args []string) (string, error) {
	if len(args) == 1 {
		if _, err := os.Stat(args[0]); err != nil {
			return "", inputErrorf("%s cannot be read: %v", args[0], reasonOf(err)).hint("give the --out folder of a run")
		}
		return plainArg(args[0]), nil
	}
	found, err := filepath.Glob(filepath.Join("runs", "*", "run.json"))
	if err != nil || len(found) == 0 {
		return "", usageErrorf("there are no runs in ./runs").hint("name the folder of a run: `mtc generate RUN --prompt TEXT`")
	}
	best := found[0]
	for _, path := range found[1:] {
		if a, err := os.Stat(path); err == nil {
			if b, err := os.Stat(best); err == nil && a.ModTime().After(b.ModTime()) {
				best = path
			}
		}
	}
	return filepath.Dir(best), nil
}
