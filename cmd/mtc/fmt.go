package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/format"
	"github.com/megatrain/mtc/lang/source"
)

func newFmtCmd(e *env) *cobra.Command {
	var write, list bool
	cmd := &cobra.Command{
		Use:   "fmt [-w | -l] FILE.mt ...",
		Short: "print a model in the canonical layout",
		Long: `
Prints each file in its one canonical layout; "-" reads the input. Comments stay where they
are, and the meaning stays the same. A file with syntax errors is left alone.`,
		Example: "  mtc fmt m.mt           print\n  mtc fmt -w *.mt        rewrite the files\n  mtc fmt -l models/*.mt list those that would change (exit 1 if any)",
		Args:    argRange(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if write && list {
				return usageErrorf("`-w` and `-l` exclude each other")
			}
			changed := 0
			var all diag.List
			for _, name := range args {
				text, err := readText(e, name)
				var out []byte
				if err == nil {
					out, err = formatText(name, text)
				}
				var found *diag.List
				if errors.As(err, &found) {
					all.Append(found) // the other files are formatted all the same
					continue
				}
				if err != nil {
					return err
				}
				same := bytes.Equal(text, out)
				switch {
				case list:
					if !same {
						changed++
						fmt.Fprintln(e.out, name)
					}
				case write && name != "-":
					if !same {
						if err := replaceFile(name, out); err != nil {
							return err
						}
					}
				default:
					if _, err := e.out.Write(out); err != nil {
						return err
					}
				}
			}
			if err := all.Err(); err != nil {
				return err
			}
			if changed > 0 {
				return exitStatus(exitInput)
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&write, "write", "w", false, "write the result back to the file")
	cmd.Flags().BoolVarP(&list, "list", "l", false, "list the files whose layout differs")
	return cmd
}

// replaceFile writes a file that was read so that a crash leaves either the old or the new text.
func replaceFile(name string, text []byte) error {
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
		return cmp.Or(err, errors.New("it is no regular file"))
	}
	return writeOut(name, func(w io.Writer) error { _, err := w.Write(text); return err })
}

func formatText(name string, text []byte) ([]byte, error) {
	return format.Source(source.New(name, text))
}
