package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/parser"
	"github.com/megatrain/mtc/lang/source"
)

// checkOptions are the flags of check.
type checkOptions struct {
	compiler.Options
	dump string
}

func newCheckCmd(e *env) *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use:   "check [FILE.mt ...]",
		Short: "say what is wrong with a model, without building it",
		Long: `
Parses and checks each file and prints what is wrong; "-" reads the input. A model without a
train block is checked with batch and sequence length left open. --diag=json prints one object
a line on the output: severity, code, message, file, line, col, endLine, endCol, notes, help.`,
		Example: "  mtc check m.mt\n  mtc check --preset large --set context=2048 gpt2.mt\n  mtc check --dump ast m.mt",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				one, err := onlyModelFile()
				if err != nil {
					return err
				}
				args = []string{one}
			}
			e.diagToOut = e.diagStyle == "json"
			var all diag.List
			for _, name := range args {
				if err := checkFile(cmd.Context(), e, name, o, &all); err != nil {
					return err
				}
			}
			if err := all.Err(); err != nil {
				return err
			}
			e.report(&all)
			return nil
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.Preset, "preset", "", "a preset of the model, by `NAME`")
	fs.StringArrayVar(&o.Set, "set", nil, "a value, `K=V`: a parameter of the model (D=512) or a field of the train block (train.steps=100); repeat it for more")
	fs.StringVar(&o.Model, "model", "", "`NAME` of the model, where a file has several")
	enumFlag(fs, &o.dump, "dump", "", "print a stage", append([]string{"none", "ast"}, frontPasses()...)...)
	return cmd
}

// frontPasses names the passes after which check can stop and print.
func frontPasses() []string {
	var out []string
	for _, p := range compiler.Passes() {
		if !p.Back {
			out = append(out, p.Name)
		}
	}
	return out
}

// checkFile checks one file. Findings go to all; the error is of reading it.
func checkFile(ctx context.Context, e *env, name string, o checkOptions, all *diag.List) error {
	text, err := readText(e, name)
	var unread *diag.List
	if errors.As(err, &unread) {
		all.Append(unread) // the other files have their findings too
		return nil
	}
	if err != nil {
		return err
	}
	if o.dump == "ast" {
		var l diag.List
		ast.Dump(e.out, parser.Parse(source.New(name, text), &l), true)
	}
	opts := o.Options
	opts.Path, opts.Text = name, text
	if o.dump != "none" && o.dump != "ast" {
		opts.DumpAfter = o.dump
	}
	var l diag.List
	res, err := compiler.Check(ctx, opts, &l)
	all.Append(&l)
	if err != nil && l.Err() == nil {
		return err
	}
	if res.Dump != "" {
		if _, err := fmt.Fprint(e.out, res.Dump); err != nil {
			return err
		}
	}
	if l.Err() == nil && o.dump == "none" && e.diagStyle != "json" {
		_, err := fmt.Fprintln(e.out, summary(name, res.Model))
		return err
	}
	return nil
}

// summary is one line about a model that is fine.
func summary(name string, m *ir.Model) string {
	if m == nil {
		return name + ": fine"
	}
	return fmt.Sprintf("%s: model %s is fine: %s parameters in %d units", name, m.Name, commas(m.NumParams()), len(m.Units))
}

// commas writes an int with thousands separators.
func commas(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// readText reads a file, or the input for "-".
func readText(e *env, name string) ([]byte, error) {
	if name == "-" {
		text, err := parser.Read(e.in)
		if err != nil {
			return nil, cannotRead(name, err)
		}
		return text, nil
	}
	text, err := parser.ReadFile(name)
	if err != nil {
		return nil, cannotRead(name, err)
	}
	return text, nil
}
