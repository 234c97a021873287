package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// result is what one run gave.
type result struct {
	Arm     string    `json:"arm"`
	Seed    int64     `json:"seed"`
	Steps   int64     `json:"steps"`
	Eval    float64   `json:"eval"`  // evaluation loss at the end, causal
	Train   float64   `json:"train"` // mean training loss of the last twentieth
	Fan     float64   `json:"fan"`   // experts a token, mean of layers and of the run
	MaxVio  float64   `json:"max_vio"`
	CV      float64   `json:"cv"`
	None    float64   `json:"none"`              // share of tokens without a routed expert
	Curve   []float64 `json:"curve"`             // mean training loss of each tenth of the run
	Usage   []float64 `json:"usage,omitempty"`   // experts a token in each tenth, mean of the layers
	Starved []float64 `json:"starved,omitempty"` // share of the experts with less than a tenth of their share of tokens, likewise
	Dropped []float64 `json:"dropped,omitempty"` // largest share of a layer's pairs beyond its rows, likewise
	Seconds float64   `json:"seconds"`
	Rate    float64   `json:"tokens_per_s"` // of the fastest step
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

// has tells whether a run is among the results.
func has(done []result, arm string, seed, steps int64) bool {
	return slices.ContainsFunc(done, func(r result) bool { return r.Arm == arm && r.Seed == seed && r.Steps == steps })
}

// lives tells whether there is such a process.
func lives(pid int) bool {
	p, err := os.FindProcess(pid) // on Windows an error for one that has ended
	return err == nil && (runtime.GOOS == "windows" || p.Signal(syscall.Signal(0)) == nil)
}

// claim takes a run for this process, and tells whether nobody else did it or does it. What a
// process took that has ended may be taken again.
func claim(o *options, arm string, seed int64) bool {
	name := filepath.Join(o.out, fmt.Sprintf("%s-%d.claim", slug(arm), seed))
	if text, err := os.ReadFile(name); err == nil {
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err == nil && pid != os.Getpid() && lives(pid) {
			return false
		}
		os.Remove(name)
	}
	if done, err := read(o.out); err != nil || has(done, arm, seed, o.steps) {
		return false
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return false
	}
	_, err = fmt.Fprintln(f, os.Getpid())
	return errors.Join(err, f.Close()) == nil
}
