package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// help prints a verb's help: what it does, how to call it, its flags. The root's lists the
// verbs in order of use, with the two lines a newcomer needs first.
func help(cmd *cobra.Command, _ []string) {
	w := cmd.OutOrStdout()
	if cmd.HasParent() {
		verbHelp(w, cmd)
		return
	}
	fmt.Fprintf(w, "mtc: %s\n\n", cmd.Short)
	fmt.Fprintf(w, "  mtc new my && mtc run my.mt --data text.txt    from nothing to a training run\n\n")
	for _, c := range cmd.Commands() {
		if c.Hidden || c.Name() == "help" {
			continue
		}
		fmt.Fprintf(w, "  %-9s %s\n", c.Name(), c.Short)
	}
	fmt.Fprintf(w, "\n`mtc VERB --help` says more. Exit codes: 0 fine, 1 wrong input, 2 wrong usage,\n"+
		"3 the machine cannot, 4 internal error.\n")
}

func verbHelp(w io.Writer, cmd *cobra.Command) {
	fmt.Fprintf(w, "%s\n\nusage: %s\n", cmd.Short, cmd.UseLine())
	if cmd.Long != "" {
		fmt.Fprintf(w, "\n%s\n", strings.TrimSpace(cmd.Long))
	}
	if cmd.Example != "" {
		fmt.Fprintf(w, "\nexamples:\n%s\n", strings.TrimRight(cmd.Example, "\n"))
	}
	if cmd.HasAvailableLocalFlags() || cmd.HasAvailableInheritedFlags() {
		fmt.Fprintf(w, "\nflags:\n%s", cmd.Flags().FlagUsagesWrapped(80))
	}
}
