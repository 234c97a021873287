package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// stretches is the number of parts of a run that results have means of.
const stretches = 10

func slug(name string) string { return strings.NewReplacer(" ", "-", ",", "").Replace(name) }

func command(cmd *exec.Cmd) error {
	text, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, text)
	}
	return nil
}

// path is where an arm's program lies. Arms with the same router and model share one.
func path(o *options, a arm) string {
	return filepath.Join(o.out, "build", slug(strings.Map(func(r rune) rune {
		if strings.ContainsRune("()=/.*", r) {
			return '-'
		}
		return r
	}, strings.Join(append([]string{a.Router}, a.Model...), " "))), "et")
}

// program compiles an arm's program, unless it is there.
func program(o *options, m *manifest, a arm) error {
	exe := path(o, a)
	if _, err := os.Stat(exe); err == nil {
		return nil
	}
	args := []string{"compile", filepath.Join(filepath.Dir(o.manifest), m.Model), "--target", o.target, "--set", "router=" + a.Router, "-o", filepath.Dir(exe)}
	for _, s := range append(m.With[:len(m.With):len(m.With)], a.Model...) {
		args = append(args, "--set", s)
	}
	if o.set != "" {
		for s := range strings.SplitSeq(o.set, ",") {
			args = append(args, "--set", s)
		}
	}
	return command(exec.Command(o.mtc, args...))
}

func mean(x []float64) (m float64) {
	for _, v := range x {
		m += v / float64(len(x))
	}
	return m
}

// train runs one arm with one seed on one device and reads what it left.
func train(o *options, m *manifest, a arm, seed int64, device string) (result, error) {
	dir := filepath.Join(o.out, fmt.Sprintf("%s-%d", slug(a.Name), seed))
	if err := os.RemoveAll(dir); err != nil {
		return result{}, err
	}
	args := []string{"train", "--data", o.data, "--seed", fmt.Sprint(seed), "--out", dir, "--no-save", "--steps", fmt.Sprint(o.steps)}
	for _, s := range append(m.Set[:len(m.Set):len(m.Set)], a.Set...) {
		args = append(args, "--set", s)
	}
	if o.eval != "" {
		args = append(args, "--eval-data", o.eval)
	} else {
		args = append(args, "--holdout", "0.05")
	}
	cmd := exec.Command(path(o, a), args...)
	cmd.Env = append(os.Environ(), "CUDA_VISIBLE_DEVICES="+device)
	began := time.Now()
	if err := command(cmd); err != nil {
		return result{}, err
	}
	r := result{Arm: a.Name, Seed: seed, Seconds: time.Since(began).Seconds()}
	var losses []float64
	if err := lines(filepath.Join(dir, "metrics.jsonl"), func(l map[string]any) {
		if x, ok := l["eval_loss"].(float64); ok {
			r.Eval = x
		} else if x, ok := l["loss"].(float64); ok {
			losses = append(losses, x)
			if rate, ok := l["tokens_per_s"].(float64); ok {
				r.Rate = max(r.Rate, rate)
			}
		}
	}); err != nil {
		return r, err
	}
	if len(losses) == 0 || r.Eval == 0 {
		return r, errors.New("the run has no losses")
	}
	r.Steps = int64(len(losses))
	r.Train = mean(losses[len(losses)-max(1, len(losses)/20):])
	for i := range stretches {
		if part := losses[len(losses)*i/stretches : len(losses)*(i+1)/stretches]; len(part) > 0 {
			r.Curve = append(r.Curve, mean(part))
		}
	}
	return r, routing(dir, &r)
}

// routing reads what the routers did: usage as the mean over the run, balance as in the last line.
func routing(dir string, r *result) error {
	var n, before float64
	var pairs, starved, dropped, steps [stretches]float64
	err := lines(filepath.Join(dir, "moe.jsonl"), func(l map[string]any) {
		layers, _ := l["layers"].([]any)
		step, _ := l["step"].(float64)
		fan, few, most := 0.0, 0.0, 0.0
		r.MaxVio, r.CV, r.None = 0, 0, 0
		for _, x := range layers {
			layer, _ := x.(map[string]any)
			number := func(key string) float64 { v, _ := layer[key].(float64); return v }
			fan += number("mean") / float64(len(layers))
			if usage, _ := layer["usage"].([]any); len(usage) > 0 {
				few += number("starved") / float64(len(layers)*len(usage))
			}
			most = max(most, number("dropped"))
			r.CV += number("cv") / float64(len(layers))
			r.None += number("none") / float64(len(layers))
			r.MaxVio = max(r.MaxVio, number("max_vio"))
		}
		// A line is about the steps since the one before.
		r.Fan += fan * (step - before)
		at := min(int((step-1)*stretches/float64(r.Steps)), stretches-1)
		pairs[at] += fan * (step - before)
		starved[at] += few * (step - before)
		dropped[at] = max(dropped[at], most)
		steps[at] += step - before
		n, before = n+step-before, step
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the dense arm
	}
	if n > 0 {
		r.Fan /= n
	}
	for i := range stretches {
		if steps[i] > 0 {
			r.Usage = append(r.Usage, pairs[i]/steps[i])
			r.Starved = append(r.Starved, starved[i]/steps[i])
			r.Dropped = append(r.Dropped, dropped[i])
		}
	}
	return err
}
