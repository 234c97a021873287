package main

import (
	"bufio"
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/megatrain/mtc/codegen"
	"github.com/megatrain/mtc/runtime/program"
	"github.com/megatrain/mtc/runtime/telemetry"
)

// outKind is what a verb writes to a file that the user named. A file that is there is replaced by one of its kind
// alone, so that no output takes the place of an input of the same command, of a file that a build
// or a run lives on, or of anything else that was not made by mtc to be made again.
type outKind struct {
	what   string                 // "a page"
	begins string                 // the text that all of the kind begin with
	is     func(path string) bool // in place of begins
}

var (
	outPage    = outKind{what: "a page", begins: "<!doctype html>"}
	outTrace   = outKind{what: "a trace", begins: `{"displayTimeUnit":`}
	outProfile = outKind{what: "a machine's profile", begins: "{\n \"name\":"}
	outProgram = outKind{what: "a program that measures", is: isProgram}
)

// isProgram says whether a file is an executable that the toolchain built.
func isProgram(path string) bool {
	info, err := buildinfo.ReadFile(path)
	return err == nil && strings.HasSuffix(info.Path, "/"+codegen.BenchName)
}

// mayReplace says why a file must not be written: it is there and is no earlier one of the kind, or
// its name is one by which mtc finds a part of the build or run that the folder holds.
func (k outKind) mayReplace(path string) error {
	path, err := linkEnd(path)
	if err != nil {
		return err
	}
	if reserved(path) {
		return &keptError{fmt.Sprintf("its folder is one of a build or a run, and %s there is a part of it", filepath.Base(path))}
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return nil // nothing is lost; what else is wrong is said when it is written
	}
	if k.is != nil {
		if k.is(path) {
			return nil
		}
	} else if head, err := headOf(path, len(k.begins)); err != nil {
		return err
	} else if head == k.begins {
		return nil
	}
	return &keptError{fmt.Sprintf("it is there already, and is not %s", k.what)}
}

// headOf is the beginning of a file, of n bytes at most.
func headOf(path string, n int) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := bufio.NewReader(f).Peek(n)
	if err != nil && len(text) == 0 {
		return "", err
	}
	return string(text), nil
}

// reserved says whether a path is that of a part of a build or of a run.
func reserved(path string) bool {
	dir, name := filepath.Dir(path), filepath.Base(path)
	parts := []string{scheduleFile, recordFile, telemetry.ProfileFile, program.RoutingFile, "run.json", "metrics.jsonl", program.FileName(), "go.mod", "go.sum"}
	if !slices.Contains(parts, name) && filepath.Ext(name) != ".go" && filepath.Ext(name) != ".mt" {
		return false
	}
	return exists(filepath.Join(dir, scheduleFile)) || exists(filepath.Join(dir, recordFile)) || exists(filepath.Join(dir, "run.json"))
}

// keptError is why a file was left as it is.
type keptError struct{ why string }

func (e *keptError) Error() string { return e.why }
