package export

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/megatrain/mtc/runtime/telemetry"
)

// csvHeader are the columns. A line of a step has no eval_loss, one of an evaluation nothing
// of a step; values that are not finite are NaN, +Inf and -Inf.
const csvHeader = "step,loss,eval_loss,lr,grad_norm,tokens,tokens_per_s,ms,skipped\n"

// CSV writes a table: a line for every step and every evaluation.
type CSV struct{ f *os.File }

// OpenCSV opens a table for the steps after done: later lines, which a resumed run repeats,
// and a torn last line are cut off. A file that is no such table is left alone, with an error.
func OpenCSV(path string, done int64) (*CSV, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	c := &CSV{f}
	if err := c.resume(done); err != nil {
		f.Close()
		return nil, err
	}
	return c, nil
}

func (c *CSV) resume(done int64) error {
	info, err := c.f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() { // a pipe or a device has no lines to keep
		return c.line(csvHeader)
	}
	r := bufio.NewReader(c.f)
	head, err := r.ReadString('\n')
	if err == io.EOF && len(head) < len(csvHeader) && csvHeader[:len(head)] == head {
		if err := c.cut(0); err != nil {
			return err
		}
		return c.line(csvHeader)
	}
	if head != csvHeader {
		return fmt.Errorf("%s is there, and is no table of a run", c.f.Name())
	}
	kept := int64(len(head))
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return c.cut(kept)
		}
		if err != nil {
			return err
		}
		first, _, _ := bytes.Cut(line, []byte(","))
		step, err := strconv.ParseInt(string(first), 10, 64)
		if err != nil {
			return fmt.Errorf("%s has a line without a step, and is left alone", c.f.Name())
		}
		if step > done {
			return c.cut(kept)
		}
		kept += int64(len(line))
	}
}

func (c *CSV) cut(at int64) error {
	if err := c.f.Truncate(at); err != nil {
		return err
	}
	_, err := c.f.Seek(at, io.SeekStart)
	return err
}

func (c *CSV) line(text string) error {
	_, err := c.f.WriteString(text)
	return err
}

// Step writes the line of a step.
func (c *CSV) Step(s telemetry.Step) error {
	return c.line(fmt.Sprintf("%d,%s,,%s,%s,%d,%s,%s,%t\n", s.Step, num(s.Loss), num(s.LR), num(s.GradNorm), s.Tokens,
		num(s.TokensPerSecond()), num(1000*s.Seconds), s.Skipped))
}

// Eval writes the line of an evaluation.
func (c *CSV) Eval(e telemetry.Eval) error {
	return c.line(fmt.Sprintf("%d,,%s,,,,,%s,\n", e.Step, num(e.Loss), num(1000*e.Seconds)))
}

// Close ends the file.
func (c *CSV) Close() error { return c.f.Close() }

// num is the shortest text of six digits.
func num(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }
