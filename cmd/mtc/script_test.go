package main

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes the test binary act as mtc when a script runs the command.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"mtc": func() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
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
