// Command et compares routers of a mixture of experts: it trains each arm of a manifest with each
// seed, all on the same data in the same order, and writes a table with paired confidence
// intervals and figures. Runs that are done are kept in OUT/results.jsonl, so that it goes on
// where it was stopped and can be spread over several sittings.
//
//	go run ./tools/experiments/et --mtc bin/mtc --data CORPUS --out runs/et [--target cuda] [--steps N] [--arms A,B] [--minutes M]
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// manifest says what to compare.
type manifest struct {
	Model    string
	Seeds    []int64
	Baseline string
	Arms     []arm
}

type arm struct{ Name, Router string }

// result is what one run gave.
type result struct {
	Arm     string  `json:"arm"`
	Seed    int64   `json:"seed"`
	Steps   int64   `json:"steps"`
	Eval    float64 `json:"eval"`  // evaluation loss at the end, causal
	Train   float64 `json:"train"` // mean training loss of the last twentieth
	Fan     float64 `json:"fan"`   // experts a token, mean of layers, in the last line of moe.jsonl
	MaxVio  float64 `json:"max_vio"`
	Seconds float64 `json:"seconds"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	here := flag.String("manifest", "tools/experiments/et/manifest.json", "what to compare")
	mtc := flag.String("mtc", "bin/mtc", "the mtc to compile with")
	data := flag.String("data", "", "folder of `mtc data pack`, or files, to train on")
	eval := flag.String("eval", "", "files to evaluate on; without: a twentieth of the data is held out")
	out := flag.String("out", "runs/et", "folder of the runs and results")
	target := flag.String("target", "cpu", "cpu or cuda")
	steps := flag.Int64("steps", 0, "steps of a run; 0: those of the model")
	set := flag.String("set", "", "more values of the model, with commas: D=128,V=256")
	only := flag.String("arms", "", "names of arms, with semicolons; all by default")
	minutes := flag.Float64("minutes", 0, "begin no run after so many minutes; 0: all")
	report := flag.String("report", "", "write the table and figures to this .md; default OUT/et.md")
	flag.Parse()
	text, err := os.ReadFile(*here)
	if err != nil {
		return err
	}
	var m manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("%s: %w", *here, err)
	}
	if *data == "" {
		return errors.New("--data is missing")
	}
	if err := os.MkdirAll(*out, 0o777); err != nil {
		return err
	}
	done, err := read(*out)
	if err != nil {
		return err
	}
	began := time.Now()
	for _, seed := range m.Seeds {
		for _, a := range m.Arms {
			if *only != "" && !slices.Contains(strings.Split(*only, ";"), a.Name) {
				continue
			}
			if slices.ContainsFunc(done, func(r result) bool { return r.Arm == a.Name && r.Seed == seed && (*steps == 0 || r.Steps == *steps) }) {
				continue
			}
			if *minutes > 0 && time.Since(began).Minutes() > *minutes {
				fmt.Println("time is up")
				return write(*out, *report, &m, done)
			}
			build := filepath.Join(*out, "build", slug(a.Name))
			if _, err := os.Stat(filepath.Join(build, "schedule.json")); err != nil {
				args := []string{"compile", filepath.Join(filepath.Dir(*here), m.Model), "--target", *target, "--set", "router=" + a.Router, "-o", build}
				if *set != "" {
					for s := range strings.SplitSeq(*set, ",") {
						args = append(args, "--set", s)
					}
				}
				if err := command(*mtc, args...); err != nil {
					return err
				}
			}
			r, err := train(*mtc, build, *out, a, seed, *data, *eval, *steps)
			if err != nil {
				return fmt.Errorf("%s, seed %d: %w", a.Name, seed, err)
			}
			done = append(done, r)
			if err := keep(*out, r); err != nil {
				return err
			}
			fmt.Printf("%-20s seed %d: eval %.4f, train %.4f, %.2f experts a token, %.0f s\n", a.Name, seed, r.Eval, r.Train, r.Fan, r.Seconds)
		}
	}
	return write(*out, *report, &m, done)
}

func slug(name string) string { return strings.NewReplacer(" ", "-", ",", "").Replace(name) }

func command(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	text, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, text)
	}
	return nil
}

// train runs one arm with one seed and reads what it left.
func train(mtc, build, out string, a arm, seed int64, data, eval string, steps int64) (result, error) {
	dir := filepath.Join(out, fmt.Sprintf("%s-%d", slug(a.Name), seed))
	if err := os.RemoveAll(dir); err != nil {
		return result{}, err
	}
	args := []string{"run", build, "--data", data, "--seed", fmt.Sprint(seed), "--out", dir, "--no-save", "--no-best"}
	if eval != "" {
		args = append(args, "--eval-data", eval)
	} else {
		args = append(args, "--holdout", "0.05")
	}
	if steps > 0 {
		args = append(args, "--steps", fmt.Sprint(steps))
	}
	began := time.Now()
	if err := command(mtc, args...); err != nil {
		return result{}, err
	}
	r := result{Arm: a.Name, Seed: seed, Seconds: time.Since(began).Seconds()}
	var losses []float64
	if err := lines(filepath.Join(dir, "metrics.jsonl"), func(l map[string]any) {
		if x, ok := l["eval_loss"].(float64); ok {
			r.Eval = x
		} else if x, ok := l["loss"].(float64); ok {
			losses = append(losses, x)
		}
	}); err != nil {
		return r, err
	}
	if len(losses) == 0 || r.Eval == 0 {
		return r, errors.New("the run has no losses")
	}
	r.Steps = int64(len(losses))
	last := losses[len(losses)-max(1, len(losses)/20):]
	for _, x := range last {
		r.Train += x / float64(len(last))
	}
	err := lines(filepath.Join(dir, "moe.jsonl"), func(l map[string]any) {
		layers, _ := l["layers"].([]any)
		r.Fan, r.MaxVio = 0, 0
		for _, x := range layers {
			layer, _ := x.(map[string]any)
			mean, _ := layer["mean"].(float64)
			vio, _ := layer["max_vio"].(float64)
			r.Fan += mean / float64(len(layers))
			r.MaxVio = max(r.MaxVio, vio)
		}
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // the dense arm
	}
	return r, err
}

// lines calls f for each line of a file of JSON.
func lines(path string, f func(map[string]any)) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	s := bufio.NewScanner(file)
	s.Buffer(nil, 1<<24)
	for s.Scan() {
		var l map[string]any
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		f(l)
	}
	return s.Err()
}

// read reads the runs done so far.
func read(out string) (done []result, err error) {
	err = lines(filepath.Join(out, "results.jsonl"), func(l map[string]any) {
		text, _ := json.Marshal(l)
		var r result
		if json.Unmarshal(text, &r) == nil {
			done = append(done, r)
		}
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return done, err
}

// keep adds a run to those done.
func keep(out string, r result) error {
	f, err := os.OpenFile(filepath.Join(out, "results.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	text, err := json.Marshal(r)
	if err == nil {
		_, err = f.Write(append(text, '\n'))
	}
	return errors.Join(err, f.Close())
}
