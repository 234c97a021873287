// Command et compares routers of a mixture of experts: it trains each arm of a manifest with each
// seed, all on the same data in the same order, and writes a table with paired confidence
// intervals and figures. Runs that are done are kept in OUT/results.jsonl, so that it goes on
// where it was stopped and can be spread over several sittings. The programs are in OUT/build;
// with --build it only makes them, so that they can be taken to a machine without a compiler. Several
// of these commands can share a folder: each takes the runs that no other has begun.
//
//	go run ./tools/experiments/et --mtc bin/mtc --data CORPUS --out runs/et [--target cuda] [--steps N] [--arms A;B] [--minutes M]
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// manifest says what to compare.
type manifest struct {
	Model    string
	With     []string // parameters of the model in every arm
	Steps    int64
	Seeds    []int64
	Baseline string // arm that the others are compared with
	Set      []string
	Arms     []arm
	// Parameters that a token passes in products, embeddings left out: those of a routed expert of
	// all layers together, and all of them where a token takes one expert.
	Expert, Products float64
}

type arm struct {
	Name, Router string
	Model        []string // parameters of the model, beside those of the manifest
	Set          []string // fields of the train block, beside those of the manifest
}

// options are what the command line says.
type options struct {
	manifest, mtc, data, eval, out, target, set, arms, report, devices string

	steps   int64
	minutes float64
	build   bool
	table   bool
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	var o options
	flag.StringVar(&o.manifest, "manifest", "tools/experiments/et/manifest.json", "what to compare")
	flag.StringVar(&o.mtc, "mtc", "bin/mtc", "the mtc to compile with")
	flag.StringVar(&o.data, "data", "", "folder of `mtc data pack`, or files, to train on")
	flag.StringVar(&o.eval, "eval", "", "the same to evaluate on; without: a twentieth of the data is held out")
	flag.StringVar(&o.out, "out", "runs/et", "folder of the runs and results")
	flag.StringVar(&o.target, "target", "cpu", "cpu or cuda")
	flag.Int64Var(&o.steps, "steps", 0, "steps of a run; 0: those of the manifest")
	flag.StringVar(&o.set, "set", "", "more values of the model, with commas: D=128,V=256")
	flag.StringVar(&o.arms, "arms", "", "names of arms, with semicolons; all by default")
	flag.StringVar(&o.devices, "devices", "0", "GPUs to use at once, with commas: a run takes one")
	flag.Float64Var(&o.minutes, "minutes", 0, "begin no run after so many minutes; 0: all")
	flag.BoolVar(&o.build, "build", false, "only make the programs")
	flag.BoolVar(&o.table, "table", false, "only write the table and figures of what is done")
	flag.StringVar(&o.report, "report", "", "write the table and figures to this .md; default OUT/et.md")
	flag.Parse()
	text, err := os.ReadFile(o.manifest)
	if err != nil {
		return err
	}
	var m manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("%s: %w", o.manifest, err)
	}
	if o.steps == 0 {
		o.steps = m.Steps
	}
	if o.table {
		done, err := read(o.out)
		if err != nil {
			return err
		}
		return write(o.out, o.report, &m, done)
	}
	if o.data == "" && !o.build {
		return errors.New("--data is missing")
	}
	if err := os.MkdirAll(o.out, 0o777); err != nil {
		return err
	}
	if o.arms != "" {
		m.Arms = slices.DeleteFunc(m.Arms, func(a arm) bool { return !slices.Contains(strings.Split(o.arms, ";"), a.Name) })
	}
	for _, a := range m.Arms {
		if err := program(&o, &m, a); err != nil {
			return err
		}
	}
	if o.build {
		return nil
	}
	done, err := read(o.out)
	if err != nil {
		return err
	}
	if err := all(&o, &m, done); err != nil {
		return err
	}
	if done, err = read(o.out); err != nil {
		return err
	}
	return write(o.out, o.report, &m, done)
}

// all does the runs that are not done yet, one a device at a time, all arms of a seed before the
// next seed: so whatever the time allows is paired.
func all(o *options, m *manifest, done []result) error {
	type job struct {
		arm  arm
		seed int64
	}
	var todo []job
	for _, seed := range m.Seeds {
		for _, a := range m.Arms {
			if !has(done, a.Name, seed, o.steps) {
				todo = append(todo, job{a, seed})
			}
		}
	}
	var (
		began = time.Now()
		mu    sync.Mutex
		wg    sync.WaitGroup
		errs  []error
	)
	next := func() (j job, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		for len(todo) > 0 && len(errs) == 0 && (o.minutes == 0 || time.Since(began).Minutes() < o.minutes) {
			j, todo = todo[0], todo[1:]
			if claim(o, j.arm.Name, j.seed) {
				return j, true
			}
		}
		return j, false
	}
	for device := range strings.SplitSeq(o.devices, ",") {
		wg.Go(func() {
			for j, ok := next(); ok; j, ok = next() {
				r, err := train(o, m, j.arm, j.seed, device)
				mu.Lock()
				if err == nil {
					err = keep(o.out, r)
				}
				if err != nil {
					errs = append(errs, fmt.Errorf("%s, seed %d: %w", j.arm.Name, j.seed, err))
				} else {
					fmt.Printf("%-20s seed %d: eval %.4f, train %.4f, %.3f experts a token, %.0f s, %.0f tokens/s\n", r.Arm, r.Seed, r.Eval, r.Train, r.Fan, r.Seconds, r.Rate)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(todo) > 0 {
		fmt.Printf("%d runs are left\n", len(todo))
	}
	return errors.Join(errs...)
}
