package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/parser"
	"github.com/megatrain/mtc/lang/source"
)

func newCheckCmd(e *env) *cobra.Command {
	dump := "none"
	cmd := &cobra.Command{
		Use:   "check FILE.mt",
		Short: "say what is wrong with a model, without building it",
		Args:  argRange(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := readText(e, args[0])
			if err != nil {
				return err
			}
			var l diag.List
			f := parser.Parse(source.New(args[0], text), &l)
			if dump == "ast" {
				ast.Dump(e.out, f, true)
			}
			e.diagToOut = e.diagStyle == "json"
			return l.Err()
		},
	}
	enumFlag(cmd.Flags(), &dump, "dump", "", "print a stage", "none", "ast")
	return cmd
}

// readText reads a file, or the input for "-".
func readText(e *env, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(e.in)
	}
	return os.ReadFile(name)
}
