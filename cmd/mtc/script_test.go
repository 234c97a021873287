package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/megatrain/mtc/runtime/fold"
)

// TestMain makes the test binary act as mtc when a script runs the command. Scripts are told errors in whole lines, as
// they are before they are folded, but for what programs say; that they keep to 80 columns is measured beside it.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"mtc": func() {
			if os.Getenv(inScript) == "" {
				os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
			}
			var folded bytes.Buffer
			narrow := &fold.Writer{W: &folded}
			code := run(os.Args[1:], os.Stdin, os.Stdout, &told{os.Stderr, narrow})
			if line := wide(folded.String()); line != "" && !slices.Contains(os.Args, "--diag") && !strings.Contains(strings.Join(os.Args, " "), "--diag=") {
				fmt.Fprintf(os.Stderr, "a line of %d columns: %s\n", utf8.RuneCountInString(line), line)
				code = 99
			}
			os.Exit(code)
		},
	})
}

// inScript is the variable by which a process knows that a script runs it.
const inScript = "MTC_IN_SCRIPT"

// told writes what a process has to say to two places.
type told struct{ whole, folded io.Writer }

func (t *told) Write(p []byte) (int, error) {
	_, _ = t.folded.Write(p)
	return t.whole.Write(p)
}

// wide is a line of a text that takes more columns than it may, "" for none. One that is a single word, such as a
// path, cannot be broken.
func wide(text string) string {
	for _, line := range strings.Split(text, "\n") {
		if utf8.RuneCountInString(line) > helpWidth && len(strings.Fields(line)) > 1 {
			return line
		}
	}
	return ""
}

// TestScript runs the command-line sessions in testdata/script. Besides testscript's own
// commands there is `exits N COMMAND ...`, which checks the exit code. MTC_UPDATE=1 rewrites
// what `cmp stdout FILE` and `cmp stderr FILE` compare with.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: os.Getenv("MTC_UPDATE") != "",
		Setup:         goCaches,
		Cmds:          map[string]func(ts *testscript.TestScript, neg bool, args []string){"exits": exits},
	})
}

// goCaches lets scripts that build programs share the Go caches: their home folder is empty.
func goCaches(e *testscript.Env) error {
	e.Setenv(inScript, "1")
	for _, k := range []string{"GOCACHE", "GOMODCACHE", "GOPROXY"} {
		v, err := exec.Command("go", "env", k).Output()
		if err != nil {
			return err
		}
		e.Setenv(k, strings.TrimSpace(string(v)))
	}
	return nil
}

// exits runs a command and checks its exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits N COMMAND ...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("%s exits %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}
