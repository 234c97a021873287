package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/megatrain/mtc/runtime/fold"
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
	fmt.Fprintf(w, "\n`mtc VERB --help` says more, `mtc --version` its version. Exit codes: 0 fine,\n"+
		"1 wrong input, 2 wrong usage, 3 the machine cannot, 4 internal error.\n")
}

func verbHelp(w io.Writer, cmd *cobra.Command) {
	fmt.Fprintf(w, "%s\n\nusage: %s\n", cmd.Short, cmd.UseLine())
	if cmd.Long != "" {
		for _, paragraph := range strings.Split(strings.TrimSpace(cmd.Long), "\n\n") {
			fmt.Fprintln(w)
			for _, line := range fold.Wrap(paragraph, helpWidth) {
				fmt.Fprintln(w, line)
			}
		}
	}
	if cmd.Example != "" {
		fmt.Fprintf(w, "\nexamples:\n%s\n", strings.TrimRight(cmd.Example, "\n"))
	}
	if cmd.HasAvailableLocalFlags() || cmd.HasAvailableInheritedFlags() {
		fmt.Fprintf(w, "\nflags:\n")
		flagHelp(w, cmd.Flags())
	}
}

// helpWidth is the columns that help takes.
const helpWidth = fold.Width

// flagHelp lists flags in two columns: how each is written, and what it does.
func flagHelp(w io.Writer, fs *pflag.FlagSet) {
	var forms, docs []string
	widest := 0
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		arg, doc := flagArg(f)
		form := "      --" + f.Name + arg
		if f.Shorthand != "" {
			form = "  -" + f.Shorthand + ", --" + f.Name + arg
		}
		switch f.DefValue {
		case "", "0", "false", "[]":
		default:
			doc += " (default " + f.DefValue + ")"
		}
		forms, docs = append(forms, form), append(docs, doc)
		widest = max(widest, len(form))
	})
	for i, form := range forms {
		for j, line := range fold.Wrap(docs[i], helpWidth-widest-3) {
			if j > 0 {
				form = ""
			}
			fmt.Fprintf(w, "%-*s   %s\n", widest, form, line)
		}
	}
}

// flagArg is what follows a flag's name, and the flag's text. A text names the value in
// backquotes; flags of the program name it by their type.
func flagArg(f *pflag.Flag) (arg, doc string) {
	name, doc := pflag.UnquoteUsage(f)
	if v, ok := f.Value.(*passedValue); ok {
		name, doc = v.kind, f.Usage
	}
	switch {
	case f.Value.Type() == "bool" || name == "":
		return "", doc
	case f.NoOptDefVal != "":
		return "[=" + name + "]", doc
	}
	return " " + name, doc
}

// writeHead prints a line that has others below it; where names are long, it goes on set in.
func writeHead(w io.Writer, text string) {
	for i, line := range fold.Wrap(text, helpWidth-2) {
		fmt.Fprintln(w, strings.Repeat(" ", 2*min(i, 1))+line)
	}
}
