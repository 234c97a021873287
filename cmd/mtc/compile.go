package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"github.com/megatrain/mtc/codegen"
	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/compiler/schedule"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/diag/suggest"
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/program"
	"github.com/megatrain/mtc/runtime/telemetry"
)

func newCompileCmd(e *env) *cobra.Command {
	var o compileOptions
	var b builder
	var dump string
	cmd := &cobra.Command{
		Use:   "compile [FILE.mt]",
		Short: "turn a model into a schedule, Go code and a program",
		Long: "Writes a folder with schedule.json, readable Go and the program built from it. Without a\n" +
			"file it takes the only .mt of the working folder.",
		Example: "  mtc compile nano.mt\n  mtc compile gpt2.mt --preset medium --placement stream -o build/gpt2-medium",
		Args:    argRange(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.decide(cmd.Flags().Changed)
			path, err := modelFile(args)
			if err != nil {
				return err
			}
			if dump != "" {
				return dumpAfter(cmd.Context(), e, &o, path, dump)
			}
			if cmd.Flags().Changed("output") && b.dir == "" {
				return usageErrorf("`--output` is empty").hint("write `-o DIR`, or leave it out for %s", defaultBuildDir(path))
			}
			if b.dir == "" {
				b.dir = defaultBuildDir(path)
			}
			e.noteUnused(&o, cmd.Flags().Changed)
			e.noteOneMemory(&o)
			return b.build(cmd.Context(), e, path, o)
		},
	}
	o.bind(cmd.Flags())
	o.bindMachine(cmd.Flags())
	cmd.Flags().StringVarP(&b.dir, "output", "o", "", "`DIR` to write (default build/NAME)")
	cmd.Flags().StringVar(&dump, "dump-after", "", "print what a `PASS` made, and build nothing")
	cmd.Flags().BoolVar(&b.sourcesOnly, "no-build", false, "write the sources, but do not build the program")
	b.bind(cmd.Flags())
	return cmd
}

// noteUnused says which flags have no effect.
func (e *env) noteUnused(o *compileOptions, given func(flag string) bool) {
	if names := o.unused(given); names != "" {
		fmt.Fprintf(e.err, "note: %s: without effect where the placement is resident; `--placement stream` has slots\n", names)
	}
	if o.Recompute == "none" && given("recompute") && given("input-every") && o.InputEvery > 1 {
		fmt.Fprint(e.err, "note: `--input-every`: without effect where nothing is recomputed\n")
	}
}

// noteOneMemory says which of two caps counts where the memory of the device is the host's.
func (e *env) noteOneMemory(o *compileOptions) {
	if o.Target != "cuda" && o.Planned && o.Memory > 0 && o.HostMemory > 0 && o.Memory != o.HostMemory {
		fmt.Fprintf(e.err, "note: a CPU has one memory, which holds all of a run: the smaller of `--device-memory` and `--host-memory` counts, %s\n",
			telemetry.Bytes(min(o.Memory, o.HostMemory)))
	}
}

// modelFile is the .mt given, or the only one of the working folder.
func modelFile(args []string) (string, error) {
	if len(args) > 0 {
		if args[0] == "-" {
			return "", usageErrorf("a build is made from a file, not from standard input").
				hint("write the text to a .mt; `mtc check -` reads standard input")
		}
		return args[0], isModelFile(args[0])
	}
	return onlyModelFile()
}

// defaultBuildDir is build/NAME for NAME.mt.
func defaultBuildDir(path string) string {
	return filepath.Join("build", strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
}

// dumpAfter prints one stage of the compiler.
func dumpAfter(ctx context.Context, e *env, o *compileOptions, path, pass string) error {
	var names []string
	known := false
	for _, p := range compiler.Passes() {
		names = append(names, p.Name)
		known = known || p.Name == pass
	}
	if !known {
		return usageErrorf("there is no pass `%s`", pass).hint("%s", suggest.HintOr(pass, names))
	}
	var l diag.List
	o.tell = e.err
	res, err := o.compile(ctx, path, pass, &l)
	// A stage that was made is worth seeing even when a later pass found something.
	fmt.Fprint(e.out, res.Dump)
	if err == nil {
		e.warn(&l)
	}
	return err
}

// warn prints findings that are no errors.
func (e *env) warn(l *diag.List) {
	if l.Len() > 0 {
		e.report(l)
	}
}

// builder turns a model into a build folder.
type builder struct {
	dir         string
	source      string // of mtc's runtime, "": found
	sourcesOnly bool
	quiet       bool
	asked       *compileOptions          // where those of one run are laid over them
	check       func(p *plan.Plan) error // before the program is built; nil: none
	// given is which flags a run was started with: what it is to run here has to fit here. nil:
	// the program may be for another machine.
	given func(flag string) bool
}

// build compiles path into the folder and says what came of it.
func (b *builder) build(ctx context.Context, e *env, path string, o compileOptions) error {
	var l diag.List
	o.tell = e.err
	res, err := o.compile(ctx, path, "", &l)
	if err != nil {
		return err
	}
	e.warn(&l)
	if b.given != nil && !o.Planned {
		if res, err = b.fitHere(ctx, e, path, o, res); err != nil {
			return err
		}
	}
	module, err := codegen.FindModule(b.source)
	if err != nil && !b.sourcesOnly {
		return buildFault(err)
	}
	files, err := codegen.Generate(codegen.Input{Program: res.Program, Plan: res.Plan, Module: module})
	if err != nil {
		return err
	}
	files["schedule.json"] = schedule.JSON(res.Plan, cost.WorkOf(res.Program), o.plannedFor())
	if b.check != nil {
		if err := b.check(res.Plan); err != nil {
			return err
		}
	}
	s, err := stageIn(ctx, b.dir)
	if err != nil {
		return err
	}
	defer s.end()
	for name, text := range files {
		if err := s.write(name, text); err != nil {
			return err
		}
	}
	executable := ""
	if !b.sourcesOnly {
		var binary string
		if res.Plan.Target == "cuda" {
			binary, err = codegen.BuildCUDA(s.ctx, s.dir, res.Plan.Model, module)
		} else {
			binary, err = codegen.Build(s.ctx, s.dir, res.Plan.Model)
		}
		if err != nil {
			if interrupted := s.interrupted(); interrupted != nil {
				return interrupted
			}
			return buildFault(err)
		}
		executable = filepath.Base(binary)
	}
	record := newRecord(b.dir, path, o, res, executable)
	record.Asked = b.asked
	if err := record.write(s.dir); err != nil {
		return cannotWrite(b.dir, err)
	}
	if err := s.publish(); err != nil {
		return err
	}
	if !b.quiet {
		b.summary(e, res, files, executable)
	}
	return nil
}

func cannotWrite(dir string, err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return machineErrorf("%s cannot be written: %v", dir, err).hint("give another folder with `-o DIR`")
}

// buildFault words an error of codegen.
func buildFault(err error) error {
	ce := inputErrorf("%v", err)
	var be *codegen.BuildError
	var me *codegen.ModuleError
	switch {
	case errors.As(err, &be):
		ce.code = exitInternal
		if be.Machine {
			ce.code = exitMachine
		}
		if be.Hint != "" {
			ce = ce.hint("%s", be.Hint)
		}
	case errors.As(err, &me):
		ce.code = exitMachine
		ce = ce.hint("%s", me.Help())
	}
	return ce
}

// summary says what was made and what to do with it.
func (b *builder) summary(e *env, res *compiler.Result, files map[string][]byte, executable string) {
	p := res.Plan
	writeHead(e.out, fmt.Sprintf("%s: %s parameters in %d units", p.Model, telemetry.Group(p.NumParams), len(p.Units)))
	row := func(name, format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		if name == "" || name == "wrote" || name == "program" { // names of files stay whole
			fmt.Fprintf(e.out, "  %-10s %s\n", name, text)
			return
		}
		for _, line := range wrapped(text, 66) {
			fmt.Fprintf(e.out, "  %-10s %s\n", name, line)
			name = ""
		}
	}
	if p.LoRA.On() {
		row("adapters", "%s", program.AdaptersText(p))
	}
	row("placement", "%s", program.PlacementText(p))
	row("step", "%s", program.StepText(p))
	var memory [2]int64
	for _, a := range p.Arenas {
		memory[a.Memory] += a.Bytes
	}
	row("memory", "%s device, %s host", telemetry.Bytes(memory[device.DeviceMemory]), telemetry.Bytes(memory[device.HostMemory]))
	if res.Chosen != "" {
		row("chosen", "%s", "to fit: "+res.Chosen)
	}
	var lists []string
	for l := range plan.NumLists {
		if n := p.Lists[l].End - p.Lists[l].Start; n > 0 {
			lists = append(lists, fmt.Sprintf("%s %d", l, n))
		}
	}
	row("tasks", "%s", strings.Join(lists, ", "))
	var names []string
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	row("wrote", "%s", filepath.ToSlash(b.dir)+"/")
	for _, line := range columns(names, 66) {
		row("", "%s", line)
	}
	if executable == "" {
		fmt.Fprintf(e.out, "next: `go build` in %s\n", fault.Shell(b.dir))
		return
	}
	row("program", "%s", filepath.ToSlash(filepath.Join(b.dir, executable)))
	data := ""
	if len(p.Train.Data) == 0 {
		data = " --data FILES"
	}
	fmt.Fprintf(e.out, "next: mtc run %s%s\n", fault.Shell(filepath.ToSlash(b.dir)), data)
}

// columns joins words to lines of at most width columns.
func columns(words []string, width int) []string {
	var lines []string
	for _, w := range words {
		if n := len(lines); n > 0 && len(lines[n-1])+2+len(w) <= width {
			lines[n-1] += ", " + w
		} else {
			lines = append(lines, w)
		}
	}
	return lines
}
