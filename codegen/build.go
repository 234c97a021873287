package codegen

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// BuildError says why a generated program was not built.
type BuildError struct {
	Message string
	Output  string // of the Go toolchain
	Hint    string
	Machine bool // the machine lacks something, as against a fault of the program
}

func (e *BuildError) Error() string {
	if e.Output != "" {
		return e.Message + "\n" + e.Output
	}
	return e.Message
}

// Help says what to do.
func (e *BuildError) Help() string { return e.Hint }

// Binary is the path of the executable that Build makes in a folder.
func Binary(dir, model string) string {
	name := plainPath(model)
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return filepath.Join(dir, name)
}

// Build runs the Go toolchain on a folder of generated files and returns the executable's
// path. On amd64 it turns on Go's SIMD package, which the CPU kernels use.
func Build(ctx context.Context, dir, model string) (string, error) {
	return build(ctx, dir, model, "", []string{"CGO_ENABLED=0"})
}

// build runs the toolchain with tags and more in its environment.
func build(ctx context.Context, dir, model, tags string, env []string) (string, error) {
	tool, err := exec.LookPath("go")
	if err != nil {
		return "", &BuildError{
			Message: "there is no `go` command on this machine, and compiling builds the program with it",
			Hint:    "install Go 1.26 or later, or write the sources only with `--no-build` and run `go build` elsewhere",
			Machine: true,
		}
	}
	binary, err := filepath.Abs(Binary(dir, model))
	if err != nil {
		return "", err
	}
	// -mod=mod overrides a GOFLAGS that asks for a vendor folder; a go.work around the folder
	// would hide the program's own module.
	cmd := exec.CommandContext(ctx, tool, "build", "-mod=mod", "-buildvcs=false", "-tags="+tags, "-o", binary, ".")
	cmd.Dir = dir
	cmd.Env = append(buildEnv(os.Environ()), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	// An interrupted toolchain removes its temporary files.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		text := strings.TrimSpace(out.String())
		e := &BuildError{Message: "the Go toolchain did not build " + dir, Output: text}
		var exit *exec.ExitError
		switch {
		case !errors.As(err, &exit):
			e.Message += fmt.Sprintf(": %v", err)
			e.Machine = true
		case strings.Contains(text, "dial tcp") || strings.Contains(text, "GOPROXY=off") || strings.Contains(text, "no such host"):
			e.Hint = "a module is missing from the module cache: run `go mod download` in the source of mtc while there is a network"
			e.Machine = true
		case tags == "cuda" && strings.Contains(text, "C compiler"):
			e.Hint = "a program for CUDA is linked by a C compiler: install gcc and run `make cuda-sdk` again"
			e.Machine = true
		case strings.Contains(text, "GOCACHE is not defined") || strings.Contains(text, "module cache not found"):
			e.Hint = "the Go toolchain keeps what it built in a cache: set HOME, or GOCACHE and GOPATH to folders"
			e.Machine = true
		case strings.Contains(text, "no space left on device"):
			e.Hint = "free some space, or set GOCACHE and GOTMPDIR to another disk"
			e.Machine = true
		case strings.Contains(text, "requires go >=") || strings.Contains(text, "toolchain not available") || strings.Contains(text, "unknown GOEXPERIMENT"):
			e.Hint = "install Go 1.26 or later"
			e.Machine = true
		case !positioned.MatchString(text):
			e.Hint = "no line of the program is at fault: look at what the Go toolchain says, and at what it is told by the environment (`go env`)"
			e.Machine = true
		default:
			e.Hint = "this is a fault of mtc, not of the text; please report it with the .mt file"
		}
		return "", e
	}
	return binary, nil
}

// positioned matches what the compiler says of a line. What the toolchain says of no line has its cause around it:
// a folder that is not there, a flag in GOFLAGS, a compiler that was killed.
var positioned = regexp.MustCompile(`(?m)^\S+\.go:\d+:`)

// buildEnv is the environment of the Go toolchain.
func buildEnv(env []string) []string {
	experiment := os.Getenv("GOEXPERIMENT")
	if runtime.GOARCH == "amd64" && !strings.Contains(experiment, "simd") {
		experiment = strings.TrimPrefix(experiment+",simd", ",")
	}
	return append(env, "GOEXPERIMENT="+experiment, "GOWORK=off")
}
