package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/fold"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/program"
)

func newRunCmd(e *env) *cobra.Command {
	var o compileOptions
	b := builder{quiet: true}
	var pass passedFlags
	cmd := &cobra.Command{
		Use:   "run [BUILD | FILE.mt]",
		Short: "train a model, compiling it first where that is needed",
		Long: "Runs the program of a build folder, or of a .mt. What changed is compiled again: the text, a\n" +
			"parameter of the model, or a setting that shapes the schedule. Flags hold for this run: those\n" +
			"of mtc compile stay with a build folder, and the next run without flags has them again.\n" +
			"Without an argument it runs the newest build of ./build.",
		Example: "  mtc run nano.mt --data corpus/ --steps 500\n  mtc run build/nano --set 'train.lr=cosine(peak = 1e-3, warmup = 20)'\n  mtc run --resume",
		Args:    argRange(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.decide(cmd.Flags().Changed)
			r := runner{env: e, builder: &b, given: cmd.Flags().Changed, options: o, pass: pass.args(cmd.Flags())}
			dir, err := r.prepare(cmd.Context(), args)
			if err != nil {
				return err
			}
			return r.exec(dir, r.pass)
		},
	}
	o.bind(cmd.Flags())
	o.bindMachine(cmd.Flags())
	b.bind(cmd.Flags())
	pass.bind(cmd.Flags(), program.TrainFlags, "set", "root")
	return cmd
}

// passedFlags are flags of the program that mtc takes and passes on.
type passedFlags struct{ list []program.Flag }

// bind adds the program's flags but those that mtc handles itself.
func (p *passedFlags) bind(fs *pflag.FlagSet, list []program.Flag, but ...string) {
	for _, f := range list {
		skip := false
		for _, name := range but {
			skip = skip || f.Name == name
		}
		if skip {
			continue
		}
		p.list = append(p.list, f)
		fs.StringArray(f.Name, nil, f.Doc)
		flag := fs.Lookup(f.Name)
		flag.Value = &passedValue{list: flag.Value.(pflag.SliceValue), Value: flag.Value, kind: f.Arg}
		flag.DefValue = "" // the program's; its text says it
		if f.Optional || f.Arg == "" {
			flag.NoOptDefVal = optional
		}
	}
}

// optional stands for a value that was left out.
const optional = "\x00"

// passedValue keeps the texts of a flag; the program checks them.
type passedValue struct {
	pflag.Value
	list pflag.SliceValue
	kind string
}

func (v *passedValue) Type() string   { return v.kind }
func (v *passedValue) String() string { return "" }

// args are the flags that were given, as the program takes them.
func (p *passedFlags) args(fs *pflag.FlagSet) []string {
	var out []string
	for _, f := range p.list {
		flag := fs.Lookup(f.Name)
		if !flag.Changed {
			continue
		}
		values := flag.Value.(*passedValue).list.GetSlice()
		if !f.Many {
			values = values[len(values)-1:]
		}
		for _, v := range values {
			if v == optional {
				out = append(out, "--"+f.Name)
			} else {
				out = append(out, "--"+f.Name+"="+v)
			}
		}
	}
	return out
}

// runner finds or makes the program to run.
type runner struct {
	env     *env
	builder *builder
	given   func(flag string) bool
	options compileOptions // as on the command line
	pass    []string       // flags for the program
}

// prepare returns the build folder to run, compiled if need be.
func (r *runner) prepare(ctx context.Context, args []string) (dir string, err error) {
	target, isFile, err := r.target(args)
	if err != nil {
		return "", err
	}
	dir = target
	if isFile {
		dir = defaultBuildDir(target)
	}
	record, err := readRecord(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		record = nil
	case err != nil:
		return "", inputErrorf("%v", err).hint("`mtc compile` writes it again")
	}
	if record == nil && !isFile && isRun(dir) {
		return "", inputErrorf("%s is the folder of a run, not of a build", dir).
			hint("`%s --resume --out %s` goes on with it, by the program that it keeps", fault.Shell(filepath.Join(dir, program.FileName())), fault.Shell(dir))
	}
	if record == nil && !isFile {
		return "", inputErrorf("%s is not a build: it has no %s", dir, recordFile).hint("`mtc compile FILE.mt -o %s` makes one", fault.Shell(dir))
	}
	path, reason := target, "there is no build of it"
	if isFile && record != nil && !record.madeFrom(dir, path) {
		reason = "the build there is of " + record.resolve(dir, record.Source)
		record = nil
	}
	options := r.split(record, isFile)
	if !isFile {
		path = record.resolve(dir, record.Source)
		if _, err := os.Stat(path); err != nil {
			asked := record.asked()
			if record.Program != "" && exists(filepath.Join(dir, record.Program)) && sameOptions(record.Options, asked.over(options, r.given)) {
				fmt.Fprintf(r.env.err, "note: %s was made from %s, which is not there (%v): it runs as it was built\n", dir, path, reasonOf(err))
				return dir, nil
			}
			return "", inputErrorf("%s was made from %s, which cannot be read: %v", dir, path, reasonOf(err)).
				hint("where that file has another name now, `mtc run` takes it: `mtc run FILE.mt`")
		}
		asked := record.asked()
		if options = asked.over(options, r.given); !sameOptions(asked, options) {
			r.builder.asked = &asked
		}
	}
	if record != nil {
		reason = record.stale(dir, options)
	}
	if reason == "" {
		return dir, nil
	}
	r.env.noteUnused(&options, r.given)
	r.env.noteOneMemory(&options)
	fmt.Fprintf(r.env.err, "compiling %s into %s: %s\n", path, dir, reason)
	r.builder.dir, r.builder.given = dir, r.given
	r.builder.check = func(p *plan.Plan) error {
		err := program.Check(p, trainArgs(filepath.Dir(path), r.pass), r.env.err)
		if msg, help, ok := program.Usage(err); ok {
			return &cliError{code: exitUsage, msg: msg, help: help}
		}
		return err
	}
	return dir, r.builder.build(ctx, r.env, path, options)
}

// target is the .mt or build folder to run.
func (r *runner) target(args []string) (path string, isFile bool, err error) {
	if len(args) == 1 {
		info, err := os.Stat(args[0])
		if errors.Is(err, fs.ErrNotExist) && filepath.Ext(args[0]) == ".mt" {
			return "", false, cannotRead(args[0], err)
		}
		if err != nil {
			return "", false, inputErrorf("%s cannot be read: %v", args[0], reasonOf(err)).hint("name a build folder or a .mt")
		}
		return plainArg(args[0]), !info.IsDir(), nil
	}
	if dir := newestBuild("build"); dir != "" {
		return dir, false, nil
	}
	path, err = modelFile(nil)
	return path, true, err
}

func reasonOf(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// newestBuild is the folder below dir with the newest record; "" when there is none.
func newestBuild(dir string) string {
	found, err := filepath.Glob(filepath.Join(dir, "*", recordFile))
	if err != nil {
		return ""
	}
	best := ""
	var newest int64
	for _, path := range found {
		info, err := os.Stat(path)
		if err == nil && (best == "" || info.ModTime().UnixNano() > newest) {
			best, newest = filepath.Dir(path), info.ModTime().UnixNano()
		}
	}
	return best
}

// split gives the settings that a run may change to the program and the others to the
// compiler. A value that the program cannot read, such as an expression, is compiled in, and so is
// the threshold of clipping with a .mt: whether its program clips is not known before.
func (r *runner) split(record *buildRecord, isFile bool) compileOptions {
	o := r.options
	o.Set = nil
	var sets []string
	for _, s := range r.options.Set {
		clip := record != nil && record.Clip
		key, _, _ := strings.Cut(s, "=")
		if program.Settable(s, clip) && !(isFile && strings.TrimSpace(key) == "train.clip") {
			sets = append(sets, "--set="+s)
		} else {
			o.Set = append(o.Set, s)
		}
	}
	r.pass = append(sets, r.pass...)
	return o
}

// exec becomes the program.
func (r *runner) exec(dir string, args []string) error {
	record, err := readRecord(dir)
	if err != nil {
		return inputErrorf("%v", err)
	}
	root := filepath.Dir(record.resolve(dir, record.Source))
	line := append([]string{"train"}, trainArgs(root, args)...)
	return execProgram(r.env, filepath.Join(dir, record.Program), line)
}

// trainArgs are the flags of the program's train command for a .mt in the folder root.
func trainArgs(root string, args []string) []string {
	return append([]string{"--root=" + root}, args...)
}

// execProgram runs a program in place of mtc, so that signals reach it.
func execProgram(e *env, path string, args []string) error {
	if !strings.ContainsRune(path, filepath.Separator) {
		path = "." + string(filepath.Separator) + path
	}
	errs := e.err
	if f, ok := errs.(*fold.Writer); ok {
		errs = f.W // the program folds its own
	}
	if e.results.w == os.Stdout && errs == os.Stderr {
		if err := replaceProcess(path, append([]string{path}, args...)); err != nil {
			return cannotRun(path, err)
		}
	}
	return runChild(e, path, args)
}
