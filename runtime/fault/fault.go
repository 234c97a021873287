// Package fault is the error type of the runtime's outside world: data files, checkpoints and
// the folders they live in. A fault has a stable code (MT06xx, listed below), the file and
// byte it is about, what is wrong in plain words, and what to do. It holds no rendering beyond
// text; callers match it with errors.As.
//
// Codes of data:
//
//	MT0601  a pattern or folder has no files
//	MT0602  a file cannot be read
//	MT0603  a shard's header is not one of the known ones
//	MT0604  a shard is shorter or longer than its header says
//	MT0605  a headerless shard's size is not a multiple of the token width
//	MT0606  a token id is outside the vocabulary
//	MT0607  fewer tokens than training needs
//	MT0608  a pattern, token width or held-out share that cannot be used
//	MT0609  a file changed while it was in use
//
// Codes of checkpoints and run folders:
//
//	MT0620  there is no checkpoint
//	MT0621  a checkpoint is damaged: missing, short or altered files
//	MT0622  a checkpoint belongs to another model
//	MT0623  a checkpoint cannot be written
//	MT0624  a safetensors file is malformed
//	MT0625  a tensor is missing or has another shape or type
//	MT0626  the run folder is in use or already holds a run
//	MT0627  a metrics file cannot be read or written
//	MT0628  a profile of a run cannot be read, or is of another plan
//
// Codes of runs:
//
//	MT0630  gradients stay non-finite
//	MT0631  a value that is not finite, found by --check-nan
//
// Codes of Hugging Face folders:
//
//	MT0660  a JSON file of the folder cannot be used
//	MT0661  a configuration that no known family expresses
//	MT0662  the files of weights are not whole
//	MT0663  the weights are not those of the model
//	MT0664  an export that cannot be written
//
// Codes of tokenizers and packed data:
//
//	MT0670  a tokenizer cannot be used
//	MT0671  a chat template cannot be used
//	MT0672  a record cannot be packed
//	MT0673  there is nothing to learn
//	MT0674  the data was made by another tokenizer
//	MT0675  a packed folder is damaged
//	MT0676  text for a model that reads tokens
//	MT0677  a document does not fit a row
package fault

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"unicode"
)

// Error is one fault. Path and Hint may be empty; Offset is -1 when no byte is meant.
type Error struct {
	Code    string
	Path    string
	Offset  int64
	Message string
	Hint    string
	// Machine says that the machine is at fault (full disk), not the input.
	Machine bool
	Err     error
}

// New makes a fault about a file.
func New(code, path, format string, args ...any) *Error {
	return &Error{Code: code, Path: path, Offset: -1, Message: fmt.Sprintf(format, args...)}
}

// At sets the byte offset.
func (e *Error) At(off int64) *Error {
	e.Offset = off
	return e
}

// Help sets the hint: what to write or run.
func (e *Error) Help(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// Wrap sets the cause.
func (e *Error) Wrap(err error) *Error {
	e.Err = err
	return e
}

// OnMachine marks the machine as the cause, which changes the exit code.
func (e *Error) OnMachine() *Error {
	e.Machine = true
	return e
}

// ByCause marks the machine as the cause where the wrapped error says so: a full disk, or one
// that fails or takes no writes.
func (e *Error) ByCause() *Error {
	for _, m := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS} {
		e.Machine = e.Machine || errors.Is(e.Err, m)
	}
	return e
}

// place is "path", "path: byte 12" or "".
func (e *Error) place() string {
	if e.Path == "" || e.Offset < 0 {
		return e.Path
	}
	return fmt.Sprintf("%s: byte %d", e.Path, e.Offset)
}

// Error is one line: code, place, message and cause.
func (e *Error) Error() string {
	s := e.Code + ": "
	if p := e.place(); p != "" {
		s += p + ": "
	}
	return s + e.text()
}

func (e *Error) text() string {
	if e.Err != nil {
		return e.Message + ": " + e.Err.Error()
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ExitCode is 3 when the machine is at fault, else 1 (the user's input).
func (e *Error) ExitCode() int {
	if e.Machine {
		return 3
	}
	return 1
}

// Text renders err over several lines in the style of the compiler's diagnostics; an error
// without a fault in its chain becomes one line. It ends in a line end.
func Text(err error) string {
	var e *Error
	if !errors.As(err, &e) {
		return "error: " + plain(err.Error()) + "\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "error[%s]: %s\n", e.Code, plain(e.text()))
	if p := e.place(); p != "" {
		fmt.Fprintf(&b, "  --> %s\n", plain(p))
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, "  help: %s\n", plain(e.Hint))
	}
	return b.String()
}

// plain escapes what a terminal would act on or not show: errors quote names and texts out of
// files, and those may hold anything.
func plain(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == '\n' || r == '\t' || unicode.IsGraphic(r) {
			b.WriteRune(r)
			continue
		}
		q := strconv.QuoteRune(r)
		b.WriteString(q[1 : len(q)-1])
	}
	return b.String()
}
