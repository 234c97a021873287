package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/megatrain/mtc/codegen"
	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/runtime/aside"
	"github.com/megatrain/mtc/runtime/bench"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/jsontext"
)

// benchCmd is `mtc bench`.
type benchCmd struct {
	target  string
	out     string
	source  string
	program string // only build it, here
	results []string
	asJSON  bool
	quick   bool
}

func newBenchCmd(e *env) *cobra.Command {
	var b benchCmd
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "measure this machine for mtc plan",
		Long: "Measures matrix products by shape, attention, kernels bound by memory, copies, the\n" +
			"optimizer and the disk, in under two minutes, and keeps the profile: --machine this is\n" +
			"then this machine. For a GPU elsewhere, --program writes an executable whose output\n" +
			"--result reads.",
		Example: "  mtc bench\n  mtc bench --target cuda -o machine.json\n  mtc plan model.mt --machine machine.json",
		Args:    argRange(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := b.check(cmd.Flags().Changed); err != nil {
				return err
			}
			return b.run(cmd.Context(), e)
		},
	}
	fs := cmd.Flags()
	enumFlag(fs, &b.target, "target", "", "what is measured", "cpu", "cuda")
	fs.StringVarP(&b.out, "output", "o", "", "`FILE` to write the profile to as well")
	fs.StringVar(&b.source, "mtc-source", "", "`DIR` of the source of mtc that programs are built from (default: found by itself)")
	fs.StringVar(&b.program, "program", "", "only build the program that measures, as `FILE`")
	fs.StringArrayVar(&b.results, "result", nil, "make the profile from what the program printed, in `FILE`; repeat it for several precisions")
	fs.BoolVar(&b.quick, "quick", false, "few cases, in seconds: rougher")
	fs.BoolVar(&b.asJSON, "json", false, "print the profile")
	return cmd
}

// check refuses flags that contradict each other, and those without a value.
func (b *benchCmd) check(given func(flag string) bool) error {
	for _, f := range []struct{ name, value string }{{"output", b.out}, {"program", b.program}} {
		if given(f.name) && f.value == "" {
			return usageErrorf("`--%s` is empty", f.name).hint("write `--%s FILE`", f.name)
		}
	}
	for _, f := range []struct {
		name string
		not  []string
	}{{"program", []string{"result", "output", "quick", "json"}}, {"result", []string{"quick", "target", "mtc-source"}}} {
		for _, other := range f.not {
			if given(f.name) && given(other) {
				return usageErrorf("`--%s` and `--%s` cannot be given at once", f.name, other).hint("`mtc bench --help` says what each is for")
			}
		}
	}
	return nil
}

func (b *benchCmd) run(ctx context.Context, e *env) error {
	for _, f := range []struct {
		path string
		kind outKind
	}{{b.program, outProgram}, {b.out, outProfile}} {
		if f.path == "" {
			continue
		}
		if err := canWriteOut(f.path, f.kind); err != nil {
			return outError(f.path, err)
		}
	}
	in := catchInterrupts(ctx)
	defer in.stop()
	if b.program != "" {
		return b.build(in, b.program)
	}
	var results []*bench.Result
	var err error
	if len(b.results) > 0 {
		results, err = readResults(b.results)
	} else {
		if b.out == "" { // else what was measured is not lost
			if err := canKeep(b.target); err != nil {
				return err
			}
		}
		results, err = b.measure(in, e)
	}
	if err != nil {
		return err
	}
	m := profileOf(results, time.Now())
	if err := m.Check(); err != nil {
		return machineErrorf("the measurement is not whole: %v", err).hint("run `mtc bench` again on an idle machine")
	}
	text := m.JSON()
	if b.out != "" {
		if err := writeKind(b.out, outProfile, func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil {
			return outError(b.out, err)
		}
	}
	if len(b.results) == 0 {
		if err := keepProfile(m, text); err != nil && b.out == "" {
			return err
		} else if err != nil {
			fmt.Fprintf(e.err, "note: `--machine this` does not know it, `--machine %s` does: %v\n", fault.Shell(b.out), err)
		}
	}
	if b.asJSON {
		if m.Load != "" {
			fmt.Fprintf(e.err, "warning: %s while it was measured; run `mtc bench` again when the machine is idle\n", m.Load)
		}
		_, err := e.out.Write(text)
		return err
	}
	writeProfile(e.out, m)
	return nil
}

// build makes the program that measures.
func (b *benchCmd) build(in *interrupts, to string) error {
	module, err := codegen.FindModule(b.source)
	if err != nil {
		return buildFault(err)
	}
	files, err := codegen.Bench(module, b.target)
	if err != nil {
		return err
	}
	tmp, err := aside.Make(os.TempDir(), benchPrefix)
	if err != nil {
		return noScratch(os.TempDir(), err)
	}
	defer tmp.Remove()
	dir := tmp.Path
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
			return noScratch(dir, err)
		}
	}
	var binary string
	if b.target == "cuda" {
		binary, err = codegen.BuildCUDA(in.ctx, dir, codegen.BenchName, module)
	} else {
		binary, err = codegen.Build(in.ctx, dir, codegen.BenchName)
	}
	if ended := in.interrupted(); ended != nil {
		return ended
	}
	if err != nil {
		return buildFault(err)
	}
	from, err := os.Open(binary)
	if err != nil {
		return noScratch(dir, err)
	}
	defer from.Close()
	if err := writeMode(to, 0o777, func(w io.Writer) error { _, err := io.Copy(w, from); return err }); err != nil {
		return outError(to, err)
	}
	return nil
}

// measure builds and runs the program, once for each precision of the target.
func (b *benchCmd) measure(in *interrupts, e *env) ([]*bench.Result, error) {
	fmt.Fprintln(e.err, "building the program that measures")
	tmp, err := aside.Make(os.TempDir(), benchPrefix)
	if err != nil {
		return nil, noScratch(os.TempDir(), err)
	}
	defer tmp.Remove()
	program := filepath.Join(tmp.Path, codegen.BenchName)
	if err := b.build(in, program); err != nil {
		return nil, err
	}
	runs := [][]string{{"-disk", "."}}
	if b.target == "cuda" {
		runs = [][]string{{"-bf16", "-disk", "."}, {"-quick"}}
	}
	var out []*bench.Result
	for _, args := range runs {
		if b.quick {
			args = append(args, "-quick")
		}
		var text bytes.Buffer
		cmd := in.command(program, args...)
		cmd.Stdout, cmd.Stderr = &text, e.err
		if err := cmd.Run(); err != nil {
			if ended := in.interrupted(); ended != nil {
				return nil, ended
			}
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				return nil, machineErrorf("this machine could not be measured for %s", b.target).
					hint("`mtc doctor` says what is missing")
			}
			return nil, machineErrorf("the program that measures does not run: %v", err)
		}
		r := &bench.Result{}
		if err := jsontext.Read(text.Bytes(), r, jsontext.Whole); err != nil {
			return nil, fmt.Errorf("the output of the program that measures: %w", err)
		}
		out = append(out, r)
	}
	return out, nil
}

// noScratch is the error for a folder of temporary files that cannot be used.
func noScratch(dir string, err error) error {
	return machineErrorf("%s cannot be used for temporary files: %v", dir, reasonOf(err)).hint("set TMPDIR to a folder that can be written")
}

// benchPrefix begins the names of the folders that programs which measure are built in.
const benchPrefix = "mtc-bench-"

// keptFile is the file that holds this machine's profile; its folder is made.
func keptFile(target string) (string, error) {
	path, err := cost.CacheFile(target)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o777)
	}
	if err != nil {
		return "", machineErrorf("the profile cannot be kept: %v", err).hint("set HOME, or write it to a file with `-o FILE`")
	}
	return path, nil
}

// canKeep says, before minutes are spent on it, whether what is measured can be kept.
func canKeep(target string) error {
	path, err := keptFile(target)
	if err != nil {
		return err
	}
	any := outKind{is: func(string) bool { return true }} // also one that is damaged
	if err := canWriteOut(path, any); err != nil {
		return machineErrorf("the profile cannot be kept in %s: %v", path, reasonOf(err)).hint("write it to another file with `-o FILE`")
	}
	return nil
}

// keepProfile makes m the profile of this machine.
func keepProfile(m *cost.Machine, text []byte) error {
	path, err := keptFile(m.Target)
	if err != nil {
		return err
	}
	if err := writeOut(path, func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil {
		return outError(path, err)
	}
	return nil
}
