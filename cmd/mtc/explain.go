package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/diag/suggest"
)

func newExplainCmd(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "explain [CODE]",
		Short:   "say what an error code means and how to mend it",
		Long:    "Without a code, lists all of them.",
		Example: "  mtc explain MT0301",
		Args:    argRange(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				for _, p := range diag.Pages() {
					fmt.Fprintf(e.out, "%s  %s\n", p.Code, p.Title)
				}
				return nil
			}
			p, ok := diag.PageOf(codeName(args[0]))
			if !ok {
				var codes []string
				for _, p := range diag.Pages() {
					codes = append(codes, p.Code)
				}
				u := usageErrorf("there is no error code `%s`", args[0])
				if n := suggest.Nearest(codeName(args[0]), codes); n != "" {
					u.hint("did you mean `%s`?", n)
				}
				return u.hint("`mtc explain` lists them")
			}
			fmt.Fprint(e.out, p.Plain())
			return nil
		},
	}
}

var codeForm = regexp.MustCompile(`(?i)^(?:error)?\[?(?:mt)?([0-9]{4})\]?:?$`)

// codeName reads a code as it may be typed or copied: MT0301, mt0301, 0301, error[MT0301]:.
func codeName(s string) string {
	if m := codeForm.FindStringSubmatch(strings.TrimSpace(s)); m != nil {
		return "MT" + m[1]
	}
	return strings.ToUpper(s)
}
