package main

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/fault"
)

// cliError is an error with an exit code and help, for what is not tied to a place in a text.
type cliError struct {
	code int
	msg  string
	help []string
	full bool // a disk is
	kept bool // help is about a limit of the process, which nothing else mends
}

func (e *cliError) Error() string { return e.msg }

// diagCode is the code of the error's page: what the command line, what was given, or what the
// machine has wrong.
func (e *cliError) diagCode() string {
	switch e.code {
	case exitUsage:
		return "MT0701"
	case exitMachine:
		return "MT0703"
	case exitInternal:
		return "MT0001"
	}
	return "MT0702"
}

// finding is the error as a diagnostic.
func (e *cliError) finding() *diag.List {
	var l diag.List
	d := l.Errorf(e.diagCode(), source.Span{}, "%s", e.msg)
	for _, h := range e.help {
		d.Hint("%s", h)
	}
	return &l
}

// hint adds a line of help: what to write or run. Where a disk is full space helps too; beside a limit of the
// process nothing else does.
func (e *cliError) hint(format string, args ...any) *cliError {
	help := fmt.Sprintf(format, args...)
	if e.full && !strings.HasPrefix(help, freeSpace) {
		help = freeSpace + ", or " + help
	}
	if !e.kept {
		e.help = append(e.help, help)
	}
	return e
}

// freeSpace begins the help for a full disk.
const freeSpace = "free some space"

// of adds what follows from an error that the message names.
func (e *cliError) of(err error) *cliError {
	e.full = errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
	if limit := fault.Limit(err); limit != "" {
		e.help, e.kept = []string{limit}, true
	}
	return e
}

// usageErrorf is a wrong command line, exit 2.
func usageErrorf(format string, args ...any) *cliError {
	return &cliError{code: exitUsage, msg: fmt.Sprintf(format, args...)}
}

// inputErrorf is a wrong file or value, exit 1, unless an error among args is the machine's.
func inputErrorf(format string, args ...any) *cliError {
	for _, a := range args {
		if err, ok := a.(error); ok && fault.OfMachine(err) {
			return machineErrorf(format, args...)
		}
	}
	return &cliError{code: exitInput, msg: fmt.Sprintf(format, args...)}
}

// machineErrorf is something this machine cannot do, exit 3.
func machineErrorf(format string, args ...any) *cliError {
	e := &cliError{code: exitMachine, msg: fmt.Sprintf(format, args...)}
	for _, a := range args {
		if err, ok := a.(error); ok {
			e.of(err)
		}
	}
	return e
}

// exitStatus ends the program with a code and no message.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }
