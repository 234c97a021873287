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
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/megatrain/mtc/runtime/aside"
	"github.com/megatrain/mtc/runtime/fault"
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
	if err := buildable(binary); err != nil {
		return "", err
	}
	// -mod=mod overrides a GOFLAGS that asks for a vendor folder; a go.work around the folder
	// would hide the program's own module.
	cmd := exec.CommandContext(ctx, tool, "build", "-mod=mod", "-buildvcs=false", "-tags="+tags, "-o", binary, ".")
	cmd.Dir = dir
	cmd.Env = append(buildEnv(os.Environ()), env...)
	// An interrupted toolchain leaves its temporary files. Where there can be no folder for them it says why.
	place, name := os.TempDir(), "TMPDIR"
	if own := os.Getenv("GOTMPDIR"); own != "" {
		place, name = own, "GOTMPDIR"
	}
	if tmp, err := aside.Make(place, "mtc-go-"); err == nil {
		defer tmp.Remove()
		if path, err := filepath.Abs(tmp.Path); err == nil {
			cmd.Env = append(cmd.Env, name+"="+path)
		}
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		text := strings.TrimSpace(out.String())
		e := &BuildError{Message: "the Go toolchain did not build " + dir, Output: text}
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() < 0 { // not started, or ended by a signal
			e.Message += fmt.Sprintf(": %v", err)
		}
		e.Hint, e.Machine = hint(text+e.Message, tags)
		return "", e
	}
	if _, err := os.Stat(binary); err != nil {
		return "", &BuildError{
			Message: fmt.Sprintf("`%s build` ended well and made no program", tool),
			Output:  strings.TrimSpace(out.String()),
			Hint:    "another program is called `go`: put the Go toolchain, 1.26 or later, first on PATH",
			Machine: true,
		}
	}
	return binary, nil
}

// causes are what stops the Go toolchain beside the lines it compiles, by its words, and what to do.
var causes = []struct {
	words []string
	hint  string
}{
	{[]string{"dial tcp", "GOPROXY=off", "no such host"}, "a module is missing from the module cache: run `go mod download` in the source of mtc while there is a network"},
	{
		[]string{"no space left on device", "disk quota exceeded"},
		"free some space, or use another disk: of the build's folder (-o), of the toolchain's cache (GOCACHE), of its temporary files (GOTMPDIR)",
	},
	{[]string{"too many open files"}, fault.Limit(syscall.EMFILE)},
	{[]string{"file too large"}, fault.Limit(syscall.EFBIG)},
	{
		[]string{"resource temporarily unavailable", "failed to create new OS thread", "pthread_create failed"},
		"the toolchain may not start as many processes and threads as it needs: raise their limit (`ulimit -u 4096`; of a container, its pids)",
	},
	{
		[]string{"cannot allocate memory", "out of memory", "failed to reserve", "signal: killed"},
		"the toolchain needs about 1 GB of memory: end what else takes it, or raise this process's limit (`ulimit -v unlimited`; of a container, its memory)",
	},
	{[]string{"requires go >=", "toolchain not available", "unknown GOEXPERIMENT", "must match format"}, "install Go 1.26 or later"},
	{[]string{"cannot find GOROOT"}, "set GOROOT to the folder of the Go toolchain; it finds that by itself where /proc is mounted"},
	{[]string{"creating work dir"}, "the Go toolchain works in a folder for temporary files: set TMPDIR, or GOTMPDIR, to one that can be written"},
	{
		[]string{"GOCACHE is not defined", "cache not found", "could not create module cache", "failed to initialize build cache", "permission denied", "read-only file system"},
		"the Go toolchain keeps what it built in a cache: set HOME, or GOCACHE and GOPATH, to folders that can be written",
	},
	{[]string{"only valid when using modules", "modules disabled"}, "the program is a module: unset GO111MODULE"},
}

// hint says what to do about what the toolchain says, and whether the machine is at fault.
func hint(text, tags string) (what string, machine bool) {
	if tags == "cuda" && strings.Contains(text, "C compiler") {
		return "a program for CUDA is linked by a C compiler: install gcc and run `make cuda-sdk` again", true
	}
	for _, c := range causes {
		for _, w := range c.words {
			if strings.Contains(text, w) {
				return c.hint, true
			}
		}
	}
	if positioned.MatchString(text) {
		return "this is a fault of mtc, not of the text; please report it with the .mt file", false
	}
	return "no line of the program is at fault: look at what the Go toolchain says, and at what it is told by the environment (`go env`)", true
}

// buildable refuses a path that the Go toolchain does not build in: it takes a backslash for a separator, and a
// line for the end of the path.
func buildable(path string) error {
	bad := func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' && filepath.Separator != '\\' }
	if i := strings.IndexFunc(path, bad); i >= 0 || !utf8.ValidString(path) {
		return &BuildError{
			Message: fmt.Sprintf("the Go toolchain builds nothing in %q", filepath.Dir(path)),
			Hint:    "give a folder by -o without backslashes, lines and bytes that are no UTF-8 in its path",
			Machine: true,
		}
	}
	return nil
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
