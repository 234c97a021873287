package compiler

import (
	"errors"
	"fmt"
	"slices"

	"github.com/megatrain/mtc/compiler/memplan"
	"github.com/megatrain/mtc/compiler/schedule"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/device"
)

// tooLarge reports a plan that does not fit the device memory given: what is short, by how
// much, and the smallest change of options that fits.
func tooLarge(s *state, short *schedule.ShortError) {
	d := s.diags.Errorf("MT0415", source.Span{}, "the plan needs %s of device memory, %s more than `--device-memory` allows",
		schedule.Bytes(short.Need), schedule.Bytes(short.Need-short.Have))
	d.Note("%s may be used, placement is %s", schedule.Bytes(short.Have), short.Placement)
	for _, line := range deviceParts(s) {
		d.Note("%s", line)
	}
	if s.fits == nil {
		return
	}
	if flags, ok := s.nearestFit(); ok {
		d.Hint("with %s it fits", flags)
		return
	}
	d.Hint("nothing makes it fit: take a smaller model, a shorter `seq`, or more memory")
}

// deviceParts lists what takes the device memory of the smallest plan of the placement.
func deviceParts(s *state) []string {
	o := planOptions(s)
	if o.DeviceMemory = 0; o.Placement == schedule.Auto {
		o.Placement = schedule.Stream
	}
	p, err := schedule.Build(s.res.Program, o)
	if err != nil {
		return nil
	}
	var out []string
	for _, a := range p.Arenas {
		if a.Memory == device.DeviceMemory && a.Bytes > 0 {
			out = append(out, fmt.Sprintf("%s: %s", a.Name, schedule.Bytes(a.Bytes)))
		}
	}
	if n := memplan.Reserve(p.Target); n > 0 {
		out = append(out, fmt.Sprintf("kept for the device's libraries: %s", schedule.Bytes(n)))
	}
	return out
}

// nearestFit tries changes of the options, those that cost the least speed first, each on top
// of the ones before, and returns the flags of the first combination that fits.
func (s *state) nearestFit() (flags string, ok bool) {
	o := s.opts
	add := func(format string, args ...any) {
		if flags != "" {
			flags += " "
		}
		flags += fmt.Sprintf(format, args...)
	}
	quoted := func() string { return "`" + flags + "`" }
	if or(o.Placement, schedule.Resident) == schedule.Resident {
		add("--placement stream")
		if o.Placement = schedule.Stream; s.fits(o) {
			return quoted(), true
		}
	}
	if o.Recompute != "all" {
		add("--recompute all")
		if o.Recompute = "all"; s.fits(o) {
			return quoted(), true
		}
	}
	o.MicroBatch = s.res.Program.Rows
	before := flags
	for _, deep := range []bool{true, false} {
		flags = before
		if !deep {
			if or(o.Slots, 2) == 1 && or(o.GradSlots, 2) == 1 {
				break
			}
			add("--slots 1 --grad-slots 1")
			o.Slots, o.GradSlots = 1, 1
			before = flags
		}
		for _, rows := range smallerRows(s.res.Model.Batch, s.res.Program.Rows) {
			flags = before
			add("--micro-batch %d", rows)
			if o.MicroBatch = rows; s.fits(o) {
				return quoted(), true
			}
		}
	}
	// The inputs of layers exist for one group of micro-batches at a time.
	for g := or(o.Groups, 1) * 2; g <= s.res.Model.Batch/o.MicroBatch; g *= 2 {
		before := flags
		add("--groups %d", g)
		if o.Groups = g; s.fits(o) {
			return quoted(), true
		}
		flags = before
	}
	return "", false
}

// smallerRows lists the divisors of a batch below some rows, the largest first.
func smallerRows(batch, rows int64) []int64 {
	var out []int64
	for r := int64(1); r < rows && r <= batch; r++ {
		if batch%r == 0 {
			out = append(out, r)
		}
	}
	slices.Reverse(out)
	return out
}

// asShort finds a ShortError.
func asShort(err error) (*schedule.ShortError, bool) {
	var short *schedule.ShortError
	return short, errors.As(err, &short)
}
