package program

import (
	"strings"
	"syscall"
	"testing"

	"github.com/megatrain/mtc/runtime/plan"
)

// Help that cannot be written is an error of the machine, of every command; and a wrong command line has a
// code, like every error that a user sees.
func TestEveryErrorHasACode(t *testing.T) {
	p := &Program{Plan: &plan.Plan{Format: plan.Format, Model: "m"}}
	for _, verb := range []string{"train", "generate", "export", "calibrate", "info", "debug-step", "sample-routing"} {
		var out, errw strings.Builder
		if code := p.Run([]string{verb, "--help"}, &out, &errw); code != exitOK || !strings.Contains(out.String(), "usage: PROGRAM "+verb) || errw.Len() > 0 {
			t.Errorf("%s --help: exit %d, %s%s", verb, code, out.String(), errw.String())
		}
		errw.Reset()
		if code := p.Run([]string{verb, "--help"}, full{}, &errw); code != exitMachine || !strings.HasPrefix(errw.String(), "error[MT0703]: the output cannot be written: no space") {
			t.Errorf("%s --help to a full device: exit %d, %s", verb, code, errw.String())
		}
		errw.Reset()
		if code := p.Run([]string{verb, "--nothing"}, &out, &errw); code != exitUsage || !strings.HasPrefix(errw.String(), "error[MT0701]: `"+verb+"` has no flag") {
			t.Errorf("%s --nothing: exit %d, %s", verb, code, errw.String())
		}
	}
	for _, args := range [][]string{{"nothing"}, {"train", "--profile=0"}, {"train", "--profile=x"}, {"train", "--steps", "x"}, {"train", "more"}, {"info", "more"},
		{"generate", "a", "b"}, {"train"}} {
		var out, errw strings.Builder
		if code := p.Run(args, &out, &errw); code != exitUsage || !strings.HasPrefix(errw.String(), "error[MT0701]: ") {
			t.Errorf("%q: exit %d, %s", args, code, errw.String())
		}
	}
}

// full is a device without space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }
