package main

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/diag/suggest"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/fold"
	"github.com/megatrain/mtc/runtime/hostmem"
)

// env is what a verb sees of the world around it.
type env struct {
	in  io.Reader
	out io.Writer // results
	err io.Writer // diagnostics, progress, warnings
	// diagStyle is the value of --diag: "text", "short" or "json".
	diagStyle string
	// diagToOut sends diagnostics to out: they are the result (check --diag=json).
	diagToOut bool
	// results is what out is: it keeps the error of writing.
	results *output
}

// The exit codes.
const (
	exitOK       = 0
	exitInput    = 1 // what the user gave is wrong
	exitUsage    = 2 // the command line is wrong
	exitMachine  = 3 // the machine cannot: memory, device
	exitInternal = 4 // a fault of mtc
)

// run is the whole program: it returns the exit code.
func run(args []string, in io.Reader, out, errw io.Writer) (code int) {
	results := &output{w: out}
	e := &env{in: in, out: results, err: errw, diagStyle: "text", results: results}
	if f, ok := errw.(*fold.Writer); ok {
		f.Whole = func() bool { return e.diagStyle != "text" }
	}
	defer func() {
		if r := recover(); r != nil {
			code = exitInternal
			if e.diagStyle == "json" {
				var l diag.List
				d := l.Errorf("MT0001", source.Span{}, "internal error: %v", r)
				for _, f := range ownFrames(debug.Stack()) {
					d.Note("in %s", f)
				}
				e.report(&l)
				return
			}
			fmt.Fprintf(errw, "internal error: %v\n", r)
			for _, f := range ownFrames(debug.Stack()) {
				fmt.Fprintf(errw, "  in %s\n", f)
			}
			fmt.Fprintf(errw, "  help: this is a fault of mtc, not of your input; please report it with the command line and the .mt file\n")
		}
	}()
	root := newRootCmd(e)
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(results)
	root.SetErr(errw)
	if err := hostmem.FewFiles(); err != nil {
		return e.finish(machineErrorf("mtc needs files open at once: %v", err).hint("raise the limit of open files: `ulimit -n 1024`"))
	}
	return e.finish(root.Execute())
}

// newRootCmd builds the command tree.
func newRootCmd(e *env) *cobra.Command {
	cobra.EnableCommandSorting = false // the order of verbs is the order of the help
	root := &cobra.Command{
		Use:           "mtc",
		Short:         "compile .mt models into static training schedules, and train them",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownVerb(cmd, args[0])
			}
			return cmd.Help()
		},
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.Version = version()
	root.SetVersionTemplate("mtc {{.Version}}\n")
	enumFlag(root.PersistentFlags(), &e.diagStyle, "diag", "", "how errors are printed", "text", "short", "json")
	root.SetFlagErrorFunc(flagError)
	for _, v := range verbs {
		root.AddCommand(v(e))
	}
	root.SetHelpCommand(newHelpCmd())
	root.SetHelpFunc(help)
	return root
}

// newHelpCmd is `mtc help [VERB]`.
func newHelpCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "help [VERB]",
		Short: "help about a verb",
		Args:  argRange(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			if len(args) == 0 {
				return root.Help()
			}
			for _, c := range root.Commands() {
				if c.Name() == args[0] {
					return c.Help()
				}
			}
			return unknownVerb(root, args[0])
		},
	}
}

func unknownVerb(root *cobra.Command, name string) error {
	var names []string
	for _, c := range root.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	return usageErrorf("there is no command `%s`", name).hint("%s", suggest.HintOr(name, names))
}

// flagError words pflag's errors as ours and adds the nearest flag.
func flagError(cmd *cobra.Command, err error) error {
	var notExist *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	var needs *pflag.ValueRequiredError
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return err
	case errors.As(err, &notExist):
		name := notExist.GetSpecifiedName()
		if notExist.GetSpecifiedShortnames() != "" {
			return usageErrorf("`%s` has no flag `-%s`", cmd.CommandPath(), name).hint("`%s --help` lists its flags", cmd.CommandPath())
		}
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		u := usageErrorf("`%s` has no flag `--%s`", cmd.CommandPath(), name)
		if h := suggest.Hint("--"+name, names); h != "" {
			return u.hint("%s", h)
		}
		return u.hint("`%s --help` lists its flags", cmd.CommandPath())
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		u := usageErrorf("`--%s` cannot be `%s`", f.Name, invalid.GetValue())
		var enum *enumError
		if errors.As(invalid.Unwrap(), &enum) {
			return u.hint("%s", suggest.HintOr(invalid.GetValue(), enum.words))
		}
		switch typ := f.Value.Type(); {
		case strings.HasPrefix(typ, "int"):
			return u.hint("write a whole number")
		case strings.HasPrefix(typ, "uint"):
			return u.hint("write a whole number, 0 or more")
		case strings.HasPrefix(typ, "float"):
			return u.hint("write a number")
		}
		return u.hint("%v", invalid.Unwrap())
	case errors.As(err, &needs):
		return usageErrorf("`--%s` needs a value", needs.GetFlag().Name)
	}
	return usageErrorf("%v", err)
}

// argRange checks the number of arguments; most < 0 means any.
func argRange(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		use := cmd.Use
		if cmd.HasParent() {
			use = cmd.Parent().CommandPath() + " " + use
		}
		switch {
		case len(args) < least:
			return usageErrorf("`%s` needs %s", cmd.CommandPath(), count(least, "argument")).hint("write `%s`", use)
		case most >= 0 && len(args) > most:
			return usageErrorf("`%s` takes %s, not %d", cmd.CommandPath(), atMost(most), len(args)).hint("write `%s`", use)
		}
		return nil
	}
}

func atMost(n int) string {
	if n == 0 {
		return "no arguments"
	}
	return "at most " + count(n, "argument")
}

func count(n int, what string) string {
	if n == 1 {
		return "one " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// finish prints what is wrong and returns the exit code.
func (e *env) finish(err error) int {
	if e.results.err != nil && (err == nil || errors.Is(err, e.results.err)) {
		err = machineErrorf("the output cannot be written: %v", e.results.err)
		e.diagToOut = false
	}
	var status exitStatus
	var list *diag.List
	var ce *cliError
	var fe *fault.Error
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &status):
		return int(status)
	case errors.As(err, &list):
		e.report(list)
		return codeOf(list)
	case errors.As(err, &fe) && !errors.As(err, &ce):
		if e.diagStyle == "text" {
			fmt.Fprint(e.err, fault.Text(err))
		} else {
			e.report(findingOf(fe))
		}
		return fe.ExitCode()
	case !errors.As(err, &ce):
		ce = inputErrorf("%v", err)
	}
	if e.diagStyle == "text" {
		fmt.Fprintf(e.err, "error[%s]: %s\n", ce.diagCode(), ce.msg)
		for _, h := range ce.help {
			fmt.Fprintf(e.err, "  help: %s\n", h)
		}
	} else {
		e.report(ce.finding())
	}
	return ce.code
}

// findingOf is a fault as a diagnostic.
func findingOf(fe *fault.Error) *diag.List {
	var l diag.List
	msg := fe.Message
	if fe.Err != nil {
		msg += ": " + fe.Err.Error()
	}
	d := l.Errorf(fe.Code, source.Span{}, "%s", msg)
	d.Path = fe.Path
	if fe.Offset >= 0 {
		d.Note("at byte %d", fe.Offset)
	}
	if fe.Hint != "" {
		d.Hint("%s", fe.Hint)
	}
	return &l
}

// report prints diagnostics as --diag says.
func (e *env) report(list *diag.List) {
	w := e.err
	if e.diagToOut {
		w = e.out
	}
	diag.Render(w, list, diag.Style(e.diagStyle))
}

// codeOf is the exit code of a list of findings: an internal error outweighs wrong input, and
// that the machine.
func codeOf(list *diag.List) int {
	code := exitOK
	for _, d := range list.Sorted() {
		if d.Severity != diag.Error {
			continue
		}
		switch {
		case strings.HasPrefix(d.Code, "MT00"):
			return exitInternal
		case ofMachine(d.Code):
			if code == exitOK {
				code = exitMachine
			}
		default:
			code = exitInput
		}
	}
	return code
}

// ofMachine reports whether a code says that this machine cannot. Codes of MT04 are
// about the plan: some say that it does not fit the machine, others that the user asked for
// what no plan has.
func ofMachine(code string) bool {
	switch code {
	case "MT0403", "MT0405", "MT0411", "MT0412", "MT0413", "MT0414":
		return false
	}
	return strings.HasPrefix(code, "MT04") || strings.HasPrefix(code, "MT05")
}

// ownFrames keeps the frames of this module below a panic, innermost first.
func ownFrames(stack []byte) []string {
	var out []string
	past := false
	for _, l := range strings.Split(string(stack), "\n") {
		switch {
		case strings.HasPrefix(l, "panic("):
			past, out = true, nil
		case past && strings.HasPrefix(l, "github.com/megatrain/mtc/"):
			name, _, _ := strings.Cut(l, "(0x")
			out = append(out, strings.TrimPrefix(name, "github.com/megatrain/mtc/"))
		case past && strings.HasPrefix(l, "main."):
			name, _, _ := strings.Cut(l, "(0x")
			out = append(out, name)
		}
	}
	return out[:min(len(out), 5)]
}
