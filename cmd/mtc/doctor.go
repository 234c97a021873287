package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/cpu"

	"github.com/megatrain/mtc/codegen"
	"github.com/megatrain/mtc/runtime/hostmem"
	"github.com/megatrain/mtc/runtime/telemetry"
)

// finding is what doctor says about one part of the machine.
type finding struct {
	What    string `json:"what"`
	Found   string `json:"found"`
	OK      bool   `json:"ok"`
	Missing string `json:"missing,omitempty"` // what cannot be done without it
	Help    string `json:"help,omitempty"`
}

func newDoctorCmd(e *env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor [RUN]",
		Short: "what this machine has, and what is missing for what",
		Long: "Without RUN it looks at the machine. With the folder of a run, or one of its checkpoints, it " +
			"lists the weights that no gradient has ever reached, rows of matrices for which that holds " +
			"(tokens that never occurred), and values that are not finite.",
		Example: "  mtc doctor\n  mtc doctor runs/nano",
		Args:    argRange(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				if !exists(args[0]) {
					return inputErrorf("there is no folder `%s`", args[0]).
						hint("name the folder of a run, or one of its checkpoints; `mtc doctor` alone looks at the machine")
				}
				return doctorRun(e, args[0], asJSON)
			}
			all := examine()
			if asJSON {
				enc := json.NewEncoder(e.out)
				for _, f := range all {
					if err := enc.Encode(f); err != nil {
						return err
					}
				}
				return verdict(all)
			}
			for _, f := range all {
				lines := wrapped(f.Found, helpWidth-11)
				if !f.OK {
					lines = append(lines, wrapped("missing for: "+f.Missing, helpWidth-11)...)
				}
				if f.Help != "" {
					lines = append(lines, wrapped("help: "+f.Help, helpWidth-11)...)
				}
				for i, line := range lines {
					fmt.Fprintf(e.out, "%-10s %s\n", []string{f.What, ""}[min(i, 1)], line)
				}
			}
			return verdict(all)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one object a line")
	return cmd
}

// verdict is exit code 3 when something is missing.
func verdict(all []finding) error {
	for _, f := range all {
		if !f.OK {
			return exitStatus(exitMachine)
		}
	}
	return nil
}

// examine looks at the machine.
func examine() []finding {
	all := []finding{goTool(), runtimeSource(), processors(), vectors(), memory(), folder()}
	all = append(all, hardware("/")...)
	all = append(all, graphics("/")...)
	all = append(all, profiles())
	for i := range all {
		if all[i].OK {
			all[i].Missing = ""
		}
	}
	return all
}

func goTool() finding {
	f := finding{What: "go", Missing: "mtc compile, mtc run of a .mt (programs that are built run without it)"}
	path, err := exec.LookPath("go")
	if err != nil {
		f.Found, f.Help = "not found", "install Go 1.26 or later and put it on PATH"
		return f
	}
	text, err := exec.Command(path, "version").Output()
	if err != nil {
		f.Found, f.Help = fmt.Sprintf("%s does not run: %v", path, err), "install Go 1.26 or later"
		return f
	}
	version := goVersion.FindString(string(text))
	f.Found = fmt.Sprintf("%s at %s", version, path)
	if f.OK = atLeast(version, 1, 26); !f.OK {
		f.Help = "install Go 1.26 or later"
	}
	return f
}

var goVersion = regexp.MustCompile(`go[0-9]+(\.[0-9]+)*`)

// atLeast compares "go1.26.3" with major.minor.
func atLeast(version string, major, minor int) bool {
	parts := strings.Split(strings.TrimPrefix(version, "go"), ".")
	if len(parts) < 2 {
		return false
	}
	a, err1 := strconv.Atoi(parts[0])
	b, err2 := strconv.Atoi(parts[1])
	return err1 == nil && err2 == nil && (a > major || a == major && b >= minor)
}

func runtimeSource() finding {
	f := finding{What: "source", Missing: "mtc compile"}
	m, err := codegen.FindModule("")
	switch {
	case err != nil:
		f.Found, f.Help = err.Error(), "name a checkout of mtc with --mtc-source DIR or MTC_SOURCE"
	case m.Dir != "":
		f.Found, f.OK = "programs are built from "+m.Dir, true
	default:
		f.Found, f.OK = "programs are built from mtc "+m.Version, true
	}
	return f
}

func processors() finding {
	f := finding{What: "cores", OK: true}
	usable := runtime.GOMAXPROCS(0)
	f.Found = fmt.Sprintf("%d usable", usable)
	if n := runtime.NumCPU(); n != usable {
		f.Found += fmt.Sprintf(" of %d (limited by control group or GOMAXPROCS)", n)
	}
	return f
}

func vectors() finding {
	f := finding{What: "vectors", OK: true, Found: instructionSet()}
	switch {
	case f.Found != "":
	case runtime.GOARCH != "amd64":
		f.Found = runtime.GOARCH + ": portable code"
	default:
		f.Found, f.Help = "none: portable code", "this processor has no AVX2: training works, several times slower"
	}
	return f
}

// instructionSet is what products run with: "avx512", "avx2", or "" for portable code.
func instructionSet() string {
	x := &cpu.X86
	switch {
	case runtime.GOARCH != "amd64":
	case x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL:
		return "avx512"
	case x.HasAVX2 && x.HasFMA:
		return "avx2"
	}
	return ""
}

func memory() finding {
	f := finding{What: "memory", OK: true}
	free, ok := hostmem.Available()
	if !ok {
		f.Found = "the system does not tell"
		return f
	}
	f.Found = fmt.Sprintf("%s usable (%s)", telemetry.Bytes(free.Bytes), free.Limit)
	if total := hostmem.Total(); total > 0 {
		f.Found += fmt.Sprintf(" of %s", telemetry.Bytes(total))
	}
	f.Found += fmt.Sprintf(": trains about %s parameters at 16 bytes each, activations aside", telemetry.Group(free.Bytes/16/1e6*1e6))
	return f
}

func folder() finding {
	f := finding{What: "folder", Missing: "mtc compile, mtc run without -o or --out"}
	wd, err := os.Getwd()
	if err != nil {
		f.Found = err.Error()
		return f
	}
	tmp, err := os.CreateTemp(wd, ".mtc-doctor-*")
	if err != nil {
		f.Found, f.Help = wd+" cannot be written", "work in a folder of your own, or give -o and --out"
		return f
	}
	tmp.Close()
	f.OK = os.Remove(tmp.Name()) == nil
	f.Found = wd + " can be written"
	return f
}
