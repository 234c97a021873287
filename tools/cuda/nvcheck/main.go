//go:build cuda

// Command nvcheck compiles kernels through NVRTC, on a machine that needs no GPU:
//
//	go run -tags cuda ./tools/cuda/nvcheck [-arch sm_80,sm_90a,sm_120a] [-v] [-o DIR] [FILE.cu...]
//
// Without files it takes every runtime/**/*.cu. Each file is compiled for every architecture,
// in bf16 and in f32, and for every line "//mtc:spec S0 S1 S2 S3" in it. -v prints registers,
// shared memory and spills of each kernel; -o keeps the machine code for a disassembler.
package main

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/megatrain/mtc/runtime/device/cuda/kit"
	"github.com/megatrain/mtc/runtime/device/cuda/nvrtc"
)

func main() {
	archs := flag.String("arch", "sm_80,sm_90a,sm_120a", "architectures, comma-separated")
	verbose := flag.Bool("v", false, "print what each kernel uses")
	out := flag.String("o", "", "folder to keep the machine code in")
	modes := flag.String("mode", "bf16,f32", "precisions, comma-separated")
	flag.Parse()
	if err := run(flag.Args(), strings.Split(*archs, ","), strings.Split(*modes, ","), *verbose, *out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// job is one compilation.
type job struct {
	file, text, arch string
	f32              bool
	spec             [4]int64
}

func (j job) String() string {
	mode := "bf16"
	if j.f32 {
		mode = "f32"
	}
	s := fmt.Sprintf("%s %s %s", j.file, j.arch, mode)
	if j.spec != [4]int64{} {
		s += fmt.Sprintf(" S%v", j.spec)
	}
	return s
}

func run(files, archs, modes []string, verbose bool, out string) error {
	if len(files) == 0 {
		err := filepath.WalkDir("runtime", func(path string, d fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".cu") {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	var jobs []job
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		specs, err := kit.Specs(string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
		for _, arch := range archs {
			for _, mode := range modes {
				for _, s := range specs {
					jobs = append(jobs, job{f, string(text), arch, mode == "f32", s})
				}
			}
		}
	}
	return compile(jobs, verbose, out)
}

// compile runs the jobs on all processors and reports them in order.
func compile(jobs []job, verbose bool, out string) error {
	major, minor, err := nvrtc.Version()
	if err != nil {
		return err
	}
	start := time.Now()
	logs, errs := make([]string, len(jobs)), make([]error, len(jobs))
	next := make(chan int)
	var wg sync.WaitGroup
	for range runtime.NumCPU() {
		wg.Go(func() {
			for i := range next {
				logs[i], errs[i] = one(jobs[i], verbose, out)
			}
		})
	}
	for i := range jobs {
		next <- i
	}
	close(next)
	wg.Wait()
	failed := 0
	for i, j := range jobs {
		if errs[i] != nil {
			failed++
			fmt.Printf("FAIL %s\n%v\n", j, errs[i])
		} else if log := strings.TrimSpace(logs[i]); log != "" {
			fmt.Printf("ok   %s\n%s\n", j, log)
		} else if verbose {
			fmt.Printf("ok   %s\n", j)
		}
	}
	fmt.Printf("NVRTC %d.%d: %d compilations, %d failed, %.1f s\n", major, minor, len(jobs), failed, time.Since(start).Seconds())
	if failed > 0 {
		return fmt.Errorf("%d of %d compilations failed", failed, len(jobs))
	}
	return nil
}

func one(j job, verbose bool, out string) (string, error) {
	opts := kit.Options(j.arch, j.f32, j.spec)
	if verbose {
		opts = append(opts, "--ptxas-options=-v")
	}
	cubin, log, err := nvrtc.Compile(j.file, j.text, kit.HeaderName, kit.Header, opts)
	if err != nil || out == "" {
		return log, err
	}
	name := strings.NewReplacer("/", "_", " ", "_", "[", "", "]", "").Replace(j.String()) + ".cubin"
	if err := os.MkdirAll(out, 0o777); err != nil {
		return log, err
	}
	return log, os.WriteFile(filepath.Join(out, name), cubin, 0o666)
}
