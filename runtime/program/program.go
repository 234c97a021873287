// Package program is the main of generated programs: training, generation and a summary of
// the model, around an engine that runs the program's plan. It joins what knows nothing of
// each other: engine, optimizer, data, checkpoints and telemetry.
//
//	PROGRAM [train] [flags]        train; the default
//	PROGRAM generate [RUN] [flags] sample from a trained model
//	PROGRAM export [RUN] --hf DIR  write a checkpoint as a Hugging Face folder
//	PROGRAM calibrate [RUN]        recompute the cutoffs of routers on other data
//	PROGRAM info                   what was compiled
//
// Exit codes: 0 fine, 1 the input is wrong, 2 usage, 3 the machine cannot, 4 internal error,
// 130 and 143 after SIGINT and SIGTERM.
package program

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/engine"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/plan"
)

// Program is what a generated main passes to Main.
type Program struct {
	Plan      *plan.Plan
	Templates []engine.Template  // in the order of Plan.Templates
	Tables    []engine.TableFunc // in the order of Plan.Tables
	Source    []byte             // text of the .mt
	Device    func() (device.Device, error)
}

// Main runs the program with the process's arguments and ends the process.
func Main(p Program) {
	os.Exit(p.Run(os.Args[1:], os.Stdout, os.Stderr))
}

// The exit codes.
const (
	exitOK       = 0
	exitInput    = 1
	exitUsage    = 2
	exitMachine  = 3
	exitInternal = 4
)

// Run is Main without the process: results go to out, progress and errors to errw.
func (p *Program) Run(args []string, out, errw io.Writer) (code int) {
	defer func() {
		if r := recover(); r != nil {
			fmt.Fprintf(errw, "internal error: %v\n%s", r, debug.Stack())
			fmt.Fprintf(errw, "  help: this is a fault of mtc, not of your input; please report it with the command line and the .mt file\n")
			code = exitInternal
		}
	}()
	verb := "train"
	if len(args) > 0 && (len(args[0]) == 0 || args[0][0] != '-') {
		verb, args = args[0], args[1:]
	}
	var err error
	switch verb {
	case "train":
		err = p.train(args, out, errw)
	case "generate":
		err = p.generate(args, out, errw)
	case "export":
		err = p.export(args, out, errw)
	case "calibrate":
		err = p.calibrate(args, out, errw)
	case "sample-routing":
		err = p.sampleRouting(args, out)
	case "info":
		err = p.info(args, out)
	case "debug-step":
		err = p.debugStep(args, out)
	default:
		err = usagef("there is no command `%s`", verb).hint("%s", didYouMean(verb, []string{"train", "generate", "export", "calibrate", "info"}))
	}
	if err == nil {
		err = p.checkDigest()
	}
	return finish(err, errw)
}

// Check says whether a training run of a plan could start: it parses the flags, opens the data
// and looks at the run folder, so a mistake is told before the program is built. It changes
// nothing, but that it packs text into the run folder, where the run finds it; errw hears of
// that. The error is a *fault.Error, or one that Usage knows.
func Check(p *plan.Plan, args []string, errw io.Writer) error {
	prog := &Program{Plan: p}
	set, err := prog.settings(args, io.Discard)
	if err != nil {
		return err
	}
	s := &session{prog: prog, plan: p, settings: set, checking: true}
	if err := s.openWeights(); err != nil {
		return err
	}
	s.foreign.close()
	if s.train.Steps > 0 {
		if err := s.openData(errw); err != nil {
			return err
		}
		s.feed.Close()
	}
	return s.mayUse()
}

// Usage says whether an error is about the command line, and gives its text and help.
func Usage(err error) (msg string, help []string, ok bool) {
	var u *usageError
	if !errors.As(err, &u) {
		return "", nil, false
	}
	return u.msg, u.help, true
}

// finish prints what is wrong and returns the exit code.
func finish(err error, errw io.Writer) int {
	var usage *usageError
	var status exitStatus
	var internal *internalError
	var f *fault.Error
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &status):
		return int(status)
	case errors.As(err, &usage):
		fmt.Fprintf(errw, "error: %s\n", usage.msg)
		for _, h := range usage.help {
			fmt.Fprintf(errw, "  help: %s\n", h)
		}
		return exitUsage
	case errors.As(err, &internal):
		fmt.Fprint(errw, internal.text())
		return exitInternal
	case errors.As(err, &f):
		fmt.Fprint(errw, fault.Text(err))
		return f.ExitCode()
	}
	fmt.Fprintf(errw, "error: %v\n", err)
	return exitInput
}

// exitStatus ends the program with a code; what there was to say has been said.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// usageError is a wrong command line.
type usageError struct {
	msg  string
	help []string
}

func usagef(format string, args ...any) *usageError {
	return &usageError{msg: fmt.Sprintf(format, args...)}
}

func (e *usageError) Error() string { return e.msg }

// hint adds a line of help.
func (e *usageError) hint(format string, args ...any) *usageError {
	e.help = append(e.help, fmt.Sprintf(format, args...))
	return e
}
