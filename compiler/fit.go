package compiler

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/megatrain/mtc/compiler/memplan"
	"github.com/megatrain/mtc/compiler/schedule"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// tooLarge reports a plan that does not fit the device memory given: what is short, by how
// much, and the smallest change of options that fits.
func tooLarge(s *state, short *schedule.ShortError) {
	d := s.diags.Errorf("MT0415", source.Span{}, "the plan needs %s of device memory, %s more than `--device-memory` allows",
		schedule.Bytes(short.Need), schedule.Bytes(short.Need-short.Have))
	d.Note("%s may be used, placement is %s", schedule.Bytes(short.Have), short.Placement)
	for _, line := range deviceParts(short.Plan) {
		d.Note("%s", line)
	}
	if s.trial == nil {
		return
	}
	if flags, ok := s.nearestFit(len(short.Plan.Tasks)); ok {
		d.Hint("with %s it fits", flags)
		return
	}
	d.Hint("nothing makes it fit: take a smaller model, a shorter `seq`, or more memory")
}

// deviceParts lists what takes the device memory of a plan that is too large.
func deviceParts(p *plan.Plan) []string {
	var out []string
	for _, a := range p.Arenas {
		if a.Memory == device.DeviceMemory && a.Bytes > 0 {
			out = append(out, fmt.Sprintf("%s: %s", a.Name, schedule.Bytes(a.Bytes)))
		}
	}
	if n := memplan.Reserve(p); n > 0 {
		out = append(out, fmt.Sprintf("kept for the device's libraries and its kernels: %s", schedule.Bytes(n)))
	}
	return out
}

// change is options that take less device memory, and the flags that say so.
type change struct {
	flags string
	o     Options
}

// changes lists changes of the options, those that cost the least speed first, each on top of
// the ones before; each takes no more device memory than the one before it, but for the
// rows that slots start with again.
func (s *state) changes() []change {
	var out []change
	o, flags := s.opts, ""
	with := func(format string, args ...any) string {
		return strings.TrimLeft(flags+" "+fmt.Sprintf(format, args...), " ")
	}
	if or(o.Placement, schedule.Resident) == schedule.Resident {
		o.Placement, flags = schedule.Stream, with("--placement stream")
		out = append(out, change{flags, o})
	}
	// What was pinned to the device.
	if o.Resident != "" && o.Resident != "auto" && o.Resident != "0" {
		o.Resident, flags = "0", with("--resident 0")
		out = append(out, change{flags, o})
	}
	if g := deviceGrads(s); g.n != 0 {
		o.GradHome, flags = "host", with("--grad-home host")
		out = append(out, change{flags, o})
	}
	if o.DeviceWeights != 0 {
		o.DeviceWeights, flags = 0, with("--device-weights 0")
		out = append(out, change{flags, o})
	}
	if o.Recompute != "all" {
		o.Recompute, flags = "all", with("--recompute all")
		out = append(out, change{flags, o})
	}
	if o.SaveInputs != "" && o.SaveInputs != "auto" && o.SaveInputs != "all" {
		o.SaveInputs, flags = "auto", with("--save-inputs auto")
		out = append(out, change{flags, o})
	}
	batch, units := s.res.Model.Batch, int64(len(s.res.Model.Units))
	o.MicroBatch = s.res.Program.Rows
	least := change{flags, o}
	for _, deep := range []bool{true, false} {
		if !deep {
			if or(o.Slots, 2) == 1 && or(o.GradSlots, 2) == 1 {
				break
			}
			flags = with("--slots 1 --grad-slots 1")
			o.Slots, o.GradSlots = 1, 1
			o.MicroBatch = s.res.Program.Rows
			least = change{flags, o}
		}
		for _, rows := range smallerRows(batch, s.res.Program.Rows) {
			if batch/rows > maxVisits/units {
				break // too long a schedule
			}
			o.MicroBatch = rows
			least = change{with("--micro-batch %d", rows), o}
			out = append(out, least)
		}
	}
	// The inputs of layers exist for one group of micro-batches at a time.
	for g := or(o.Groups, 1) * 2; g <= batch/least.o.MicroBatch; g *= 2 {
		o, flags = least.o, least.flags
		o.Groups = g
		out = append(out, change{with("--groups %d", g), o})
	}
	return out
}

// searchTasks bounds the search for a change that fits: the tasks of the plans made for it,
// taken to be as long as the one that does not fit. It is a second or two.
const searchTasks = 300_000

// nearestFit is the first change that fits, as far as searchTasks lets it look.
func (s *state) nearestFit(tasks int) (flags string, ok bool) {
	c, t := s.firstFit(s.changes(), max(2, searchTasks/max(tasks, 1)))
	if t == nil {
		return "", false
	}
	return "`" + c.flags + "`", true
}

// firstFit compiles with changes until one fits, in order; with fewer tries than changes, for
// the most thorough one first: where that does not fit, none does.
func (s *state) firstFit(all []change, tries int) (change, *state) {
	if len(all) == 0 {
		return change{}, nil
	}
	if tries >= len(all) {
		for _, c := range all {
			if t := s.trial(c.o); t != nil {
				return c, t
			}
		}
		return change{}, nil
	}
	lo, hi := 0, len(all)-1
	found := s.trial(all[hi].o)
	if found == nil {
		return change{}, nil
	}
	for tries--; tries > 0 && lo < hi; tries-- {
		mid := (lo + hi) / 2
		if t := s.trial(all[mid].o); t != nil {
			hi, found = mid, t
		} else {
			lo = mid + 1
		}
	}
	return all[hi], found
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
