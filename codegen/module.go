package codegen

import (
	"bytes"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Module says where a generated program finds mtc's runtime.
type Module struct {
	Dir      string // a source tree: go.mod replaces the module by it
	Version  string // else a released version
	Go       string // go line
	Requires []Require
	Sums     []byte // go.sum lines of Requires
	CUDA     struct {
		Requires []Require // what a program for CUDA needs besides
		Sums     []byte
	}
}

// Require is a module that the runtime needs.
type Require struct{ Path, Version string }

// FindModule finds the source of the runtime: source when it is given (--mtc-source), the
// environment's MTC_SOURCE, the tree that this mtc was built from, the checkout around the
// working folder, or the version that this mtc was installed as. The error says what to do.
func FindModule(source string) (*Module, error) {
	from := "--mtc-source"
	if source == "" {
		source, from = os.Getenv("MTC_SOURCE"), "MTC_SOURCE"
	}
	if source != "" {
		is, err := isSource(source)
		switch {
		case err != nil:
			return nil, &ModuleError{fmt.Sprintf("%s: %s", from, unread(source, err)), err}
		case !is:
			return nil, &ModuleError{fmt.Sprintf("%s: %s does not hold the source of mtc (no go.mod of %s there)", from, source, modulePath), nil}
		}
		return readModule(source)
	}
	var failed error // of where the source was looked for; it may be there
	why := ""
	holds := func(dir string) bool {
		is, err := isSource(dir)
		if err != nil && failed == nil {
			failed, why = err, ": "+unread(dir, err)
		}
		return is
	}
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		if dir := filepath.Dir(filepath.Dir(file)); holds(dir) {
			return readModule(dir)
		}
	}
	if wd, err := os.Getwd(); err == nil {
		for dir := wd; ; dir = filepath.Dir(dir) {
			if holds(dir) {
				return readModule(dir)
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Path == modulePath && released(info.Main.Version) {
		return &Module{Version: info.Main.Version, Go: goLine(info.GoVersion)}, nil
	}
	return nil, &ModuleError{"the source of mtc's runtime is not found, and generated programs are built from it" + why, failed}
}

// ModuleError says that the runtime's source is not found, or cannot be read.
type ModuleError struct {
	Message string
	Err     error // the system's, nil: there is none
}

func (e *ModuleError) Error() string { return e.Message }

// Unwrap is what the system said.
func (e *ModuleError) Unwrap() error { return e.Err }

// Help says what to do.
func (e *ModuleError) Help() string {
	return "name a checkout of mtc with `--mtc-source DIR` or the environment variable MTC_SOURCE"
}

// isSource tells whether a folder is the root of mtc's source. An error leaves that open.
func isSource(dir string) (bool, error) {
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return false, nil
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "module" {
			return f[1] == modulePath, nil
		}
	}
	return false, err
}

// unread says why a folder's go.mod was not read.
func unread(dir string, err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fmt.Sprintf("%s cannot be read: %v", filepath.Join(dir, "go.mod"), err)
}

// released tells whether a version names something that can be fetched.
func released(v string) bool {
	return strings.HasPrefix(v, "v") && !strings.HasSuffix(v, "+dirty")
}

// goLine is a Go version as the go command writes it into a go.mod: with three parts, so
// that it needs no update when the runtime's module asks for a patch release.
func goLine(version string) string {
	v := strings.TrimPrefix(version, "go")
	if i := strings.IndexAny(v, " -"); i >= 0 {
		v = v[:i]
	}
	if strings.Count(v, ".") == 1 {
		v += ".0"
	}
	return v
}

// readModule reads what a program needs of the source tree's own go.mod and go.sum: the go
// line, and those requirements that programs import, so that building needs nothing else in
// the module cache.
func readModule(dir string) (*Module, error) {
	m, err := requirements(dir)
	if err != nil {
		return nil, &ModuleError{"the source of mtc's runtime cannot be used: " + err.Error(), err}
	}
	return m, nil
}

func requirements(dir string) (*Module, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return nil, err
	}
	m := &Module{Dir: dir}
	var all []Require
	block := false
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "//")
		f := strings.Fields(line)
		switch {
		case len(f) == 0:
		case f[0] == ")":
			block = false
		case f[0] == "go" && len(f) == 2:
			m.Go = goLine(f[1])
		case f[0] == "require" && len(f) == 2 && f[1] == "(":
			block = true
		case f[0] == "require" && len(f) == 3:
			all = append(all, Require{f[1], f[2]})
		case block && len(f) == 2:
			all = append(all, Require{f[0], f[1]})
		}
	}
	imports, err := programImports(dir)
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		if slices.ContainsFunc(imports, func(p string) bool { return p == r.Path || strings.HasPrefix(p, r.Path+"/") }) {
			m.Requires = append(m.Requires, r)
		} else if slices.Contains(cudaModules, r.Path) {
			m.CUDA.Requires = append(m.CUDA.Requires, r)
		}
	}
	sums, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(sums) {
		f := strings.Fields(string(line))
		if len(f) != 3 {
			continue
		}
		switch r := (Require{f[0], strings.TrimSuffix(f[1], "/go.mod")}); {
		case slices.Contains(m.Requires, r):
			m.Sums = append(m.Sums, line...)
		case slices.Contains(m.CUDA.Requires, r):
			m.CUDA.Sums = append(m.CUDA.Sums, line...)
		}
	}
	return m, nil
}

// programRoots are the packages that generated programs of the CPU target import, from the
// root of the source. What only other packages need (a GPU's driver, the compiler's parser)
// is not asked of the module cache.
var programRoots = []string{"runtime/program", "runtime/device/cpu", "runtime/ops/all", "runtime/bench"}

// cudaModules are the binding of the GPU's driver and what it imports.
var cudaModules = []string{"gorgonia.org/cu", "github.com/google/uuid", "github.com/pkg/errors"}

// programImports lists the packages of other modules that programs need, tests left out.
func programImports(dir string) ([]string, error) {
	found := map[string]bool{}
	seen := map[string]bool{}
	queue := slices.Clone(programRoots)
	for len(queue) > 0 {
		pkg := queue[0]
		queue = queue[1:]
		if seen[pkg] {
			continue
		}
		seen[pkg] = true
		files, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pkg), "*.go"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			if err != nil {
				return nil, err
			}
			for _, i := range f.Imports {
				p, err := strconv.Unquote(i.Path.Value)
				if err != nil {
					continue
				}
				if own, ok := strings.CutPrefix(p, modulePath+"/"); ok {
					queue = append(queue, own)
				} else if first, _, _ := strings.Cut(p, "/"); strings.Contains(first, ".") {
					found[p] = true
				}
			}
		}
	}
	var out []string
	for p := range found {
		out = append(out, p)
	}
	slices.Sort(out)
	return out, nil
}

// on is the module as programs of a target need it.
func (m *Module) on(target string) *Module {
	if target != "cuda" {
		return m
	}
	c := *m
	c.Requires, c.Sums = slices.Concat(m.Requires, m.CUDA.Requires), slices.Concat(m.Sums, m.CUDA.Sums)
	return &c
}

// files are go.mod and go.sum of a program.
func (m *Module) files(model string) (mod, sum []byte) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "module mtcprogram/%s\n\ngo %s\n", strings.ToLower(plainPath(model)), m.Go)
	if m.Dir == "" {
		fmt.Fprintf(&b, "\nrequire %s %s\n", modulePath, m.Version)
		return b.Bytes(), nil
	}
	fmt.Fprintf(&b, "\nrequire %s v0.0.0\n", modulePath)
	if len(m.Requires) > 0 {
		b.WriteString("\nrequire (\n")
		for _, r := range m.Requires {
			fmt.Fprintf(&b, "\t%s %s // indirect\n", r.Path, r.Version)
		}
		b.WriteString(")\n")
	}
	dir := filepath.ToSlash(m.Dir)
	if strings.ContainsAny(dir, " \t\"'`()[]{},") || strings.Contains(dir, "//") {
		dir = strconv.Quote(dir)
	}
	fmt.Fprintf(&b, "\nreplace %s => %s\n", modulePath, dir)
	return b.Bytes(), m.Sums
}

// plainPath keeps what a module path may hold.
func plainPath(s string) string {
	out := strings.Map(func(r rune) rune {
		if r < 128 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-') {
			return r
		}
		return -1
	}, s)
	if out == "" {
		return "model"
	}
	return out
}
