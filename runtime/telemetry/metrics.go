// Package telemetry is what a run says about itself: a metrics file of JSON lines, one line a
// step for people, and a table of settings before the first one. It formats and writes; it
// measures nothing.
package telemetry

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"github.com/megatrain/mtc/runtime/fault"
)

// Step is what is known after a training step.
type Step struct {
	Step     int64 // steps done, this one included
	Loss     float64
	LR       float64
	GradNorm float64
	Tokens   int64   // target tokens trained on so far, over all resumed parts of the run
	Count    int64   // target tokens of this step
	Seconds  float64 // wall time of this step
	Skipped  bool    // the update was skipped for a non-finite norm or loss
	Router   float64 // what routers add to the loss, which Loss is without; 0: nothing
}

// Eval is the result of an evaluation after a step.
type Eval struct {
	Step    int64
	Loss    float64 // mean over Tokens, in nats
	Tokens  int64   // targets evaluated
	Seconds float64
}

// Start is how long a run took until its first step, where that is worth a line.
type Start struct {
	Step    int64 // steps done before
	Seconds float64
	Parts   []Part
}

// Part is a named part of a start.
type Part struct {
	Name    string
	Seconds float64
}

// TokensPerSecond is the speed of the step.
func (s Step) TokensPerSecond() float64 {
	if s.Seconds <= 0 {
		return 0
	}
	return float64(s.Count) / s.Seconds
}

// Metrics writes a metrics file: JSON lines such as
//
//	{"step":1,"loss":5.61,"lr":0.0003,"grad_norm":2.1,"tokens":8192,"tokens_per_s":10240,"ms":800}
//	{"step":100,"eval_loss":2.41,"tokens":65536,"ms":512}
//	{"step":0,"start_s":11.4,"init_s":9.1,"kernels_s":2.0}
//
// "tokens" of a step line are all target tokens so far, of an evaluation line those it looked
// at. A value that is not finite is null, and its line has "non_finite":true; a step whose
// update was skipped has "skipped":true. Every line is written whole and at once, so that a
// reader can follow the file and a crash loses at most the last line. A file that is removed or
// renamed meanwhile begins anew.
type Metrics struct {
	f   *os.File
	buf []byte
}

// OpenMetrics opens a metrics file for the steps after `done`: lines of later steps, which a
// resumed run repeats, and a torn last line are cut off; with owed, an evaluation of step `done` too.
// A file that is not metrics is left as it is, with an error. The folder is made if need be.
func OpenMetrics(path string, done int64, owed bool) (*Metrics, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, metricsFault(path, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, metricsFault(path, err)
	}
	keep := int64(0)
	if !special(f) {
		keep, err = keptBytes(f, done, owed)
	}
	if err == nil {
		err = f.Truncate(keep)
	}
	if err == nil {
		_, err = f.Seek(keep, io.SeekStart)
	}
	if err != nil && !special(f) {
		f.Close()
		return nil, metricsFault(path, err)
	}
	return &Metrics{f: f}, nil
}

// special says that a file is a pipe or a device, which has no length to cut.
func special(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && !info.Mode().IsRegular()
}

// lineStart begins every line of metrics, also a torn one.
const lineStart = `{"step":`

var errNotMetrics = errors.New("it has a line that is not metrics, and is left as it is")

// keptBytes is the length of the whole lines up to the first one of a step after done, or with owed
// to an evaluation of step done.
func keptBytes(f *os.File, done int64, owed bool) (int64, error) {
	r := bufio.NewReader(f)
	kept := int64(0)
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			if !bytes.HasPrefix(line, []byte(lineStart)) && !bytes.HasPrefix([]byte(lineStart), line) {
				return 0, errNotMetrics
			}
			return kept, nil
		}
		if err != nil {
			return 0, err
		}
		var head struct {
			Step *int64          `json:"step"`
			Eval json.RawMessage `json:"eval_loss"` // null where it is not finite
		}
		if json.Unmarshal(bytes.TrimSpace(line), &head) != nil || head.Step == nil {
			return 0, errNotMetrics
		}
		if *head.Step > done || owed && *head.Step == done && head.Eval != nil {
			return kept, nil
		}
		kept += int64(len(line))
	}
}

// Step appends a step line.
func (m *Metrics) Step(s Step) error {
	l := m.line()
	l.integer("step", s.Step)
	l.number("loss", s.Loss)
	l.number("lr", s.LR)
	l.number("grad_norm", s.GradNorm)
	if s.Router != 0 {
		l.number("router_loss", s.Router)
	}
	l.integer("tokens", s.Tokens)
	l.number("tokens_per_s", round(s.TokensPerSecond(), 1))
	l.number("ms", round(s.Seconds*1e3, 3))
	if s.Skipped {
		l.flag("skipped")
	}
	return m.write(l)
}

// Eval appends an evaluation line.
func (m *Metrics) Eval(e Eval) error {
	l := m.line()
	l.integer("step", e.Step)
	l.number("eval_loss", e.Loss)
	l.integer("tokens", e.Tokens)
	l.number("ms", round(e.Seconds*1e3, 3))
	return m.write(l)
}

// Start appends a line about the start of a run.
func (m *Metrics) Start(s Start) error {
	l := m.line()
	l.integer("step", s.Step)
	l.number("start_s", round(s.Seconds, 3))
	for _, p := range s.Parts {
		l.number(p.Name+"_s", round(p.Seconds, 3))
	}
	return m.write(l)
}

// Close syncs and closes the file.
func (m *Metrics) Close() error {
	err := m.f.Sync()
	if special(m.f) {
		err = nil // a pipe or device cannot be synced
	}
	if cerr := m.f.Close(); err == nil {
		err = cerr
	}
	return err
}

func (m *Metrics) write(l *line) error {
	if l.nonFinite {
		l.flag("non_finite")
	}
	m.buf = append(l.b, '}', '\n')
	if _, err := os.Lstat(m.f.Name()); errors.Is(err, fs.ErrNotExist) { // removed, or renamed: it begins anew
		if f, err := os.Create(m.f.Name()); err == nil {
			m.f.Close()
			m.f = f
		}
	}
	if _, err := m.f.Write(m.buf); err != nil {
		return metricsFault(m.f.Name(), err)
	}
	return nil
}

// line builds a JSON object without reflection or maps: keys in the order given.
type line struct {
	b         []byte
	nonFinite bool
}

func (m *Metrics) line() *line { return &line{b: append(m.buf[:0], '{')} }

func (l *line) key(k string) {
	if len(l.b) > 1 {
		l.b = append(l.b, ',')
	}
	l.b = append(append(append(l.b, '"'), k...), '"', ':')
}

func (l *line) integer(k string, v int64) {
	l.key(k)
	l.b = strconv.AppendInt(l.b, v, 10)
}

// number writes the shortest digits that read back as v, so that resumed and uninterrupted
// runs can be compared by their metrics.
func (l *line) number(k string, v float64) {
	l.key(k)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		l.nonFinite = true
		l.b = append(l.b, "null"...)
		return
	}
	text, _ := json.Marshal(v) // a finite float64 always marshals
	l.b = append(l.b, text...)
}

func (l *line) flag(k string) {
	l.key(k)
	l.b = append(l.b, "true"...)
}

func round(v float64, digits int) float64 {
	p := math.Pow10(digits)
	return math.Round(v*p) / p
}

func metricsFault(path string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fault.New("MT0627", path, "the metrics file cannot be used").Wrap(err).Help("give another path with --metrics")
}
