package compiler

import (
	"fmt"
	"strings"

	"github.com/megatrain/mtc/compiler/schedule"
)

// openFit changes what the options leave open until the plan fits the device memory given:
// the micro-batch, what is recomputed, the groups. It takes over the first plan that does and
// is false when none does.
func (s *state) openFit(short *schedule.ShortError) bool {
	if s.trial == nil {
		return false
	}
	tries := max(2, searchTasks/max(len(short.Plan.Tasks), 1))
	for _, list := range s.openChanges() {
		if c, t := s.firstFit(list, tries); t != nil {
			s.adopt(t, c)
			return true
		}
	}
	return false
}

// adopt takes over a trial and notes what it changed.
func (s *state) adopt(t *state, c change) {
	s.opts, s.front, s.lowering, s.res.Model, s.res.Program, s.res.Plan = t.opts, t.front, t.lowering, t.res.Model, t.res.Program, t.res.Plan
	s.res.Plan.Foreign, s.res.Plan.Family = s.foreign, s.family
	s.res.Chosen = strings.TrimSpace(c.flags)
}

// openChanges lists changes of open options, each list on top of the plan that does not fit and
// growing in what it costs: with state on the device activations are those of one micro-batch,
// so smaller ones come before recomputing; a stream keeps a whole step's, so recomputing them
// comes first.
func (s *state) openChanges() [][]change {
	o := s.opts
	var out [][]change
	placement := or(o.Placement, schedule.Resident)
	if placement != schedule.Stream && 12*s.res.Model.NumParams() < o.DeviceMemory {
		o.Placement = schedule.Resident
		out = append(out, s.smaller(o, ""))
		if again, flags, ok := s.recomputing(o); ok {
			out = append(out, append([]change{{flags, again}}, s.smaller(again, flags)...))
		}
	}
	if placement == schedule.Resident {
		return out
	}
	o.Placement = schedule.Stream
	last := []change{}
	if again, flags, ok := s.recomputing(o); ok {
		o = again
		last = append(last, change{flags, o})
	}
	flags := ""
	if len(last) > 0 {
		flags = last[0].flags
	}
	last = append(last, s.smaller(o, flags)...)
	if s.opts.Groups == 0 && order(s) == "" && len(last) > 0 {
		// The inputs of layers exist for one group of micro-batches at a time.
		least := last[len(last)-1]
		for g := int64(2); g <= s.res.Model.Batch/or(least.o.MicroBatch, s.res.Program.Rows); g *= 2 {
			c := change{fmt.Sprintf("%s --groups %d", least.flags, g), least.o}
			c.o.Groups = g
			last = append(last, c)
		}
	}
	return append(out, last)
}

// recomputing is options with everything recomputed, where that is open.
func (s *state) recomputing(o Options) (Options, string, bool) {
	if o.Recompute != "" && o.Recompute != "auto" {
		return o, "", false
	}
	o.Recompute = "all"
	return o, "--recompute all", true
}

// leastTokens is the smallest micro-batch that is chosen by itself, in tokens: below it the
// matrix products of a GPU lose half of their speed.
const leastTokens = 1024

// smaller lists options with fewer rows in a micro-batch, where that is open.
func (s *state) smaller(o Options, flags string) []change {
	if s.opts.MicroBatch != 0 {
		return nil
	}
	var out []change
	m := s.res.Model
	for _, rows := range smallerRows(m.Batch, s.res.Program.Rows) {
		if m.Batch/rows > maxVisits/int64(len(m.Units)) || rows*m.Seq < leastTokens && 8*rows < s.res.Program.Rows {
			break
		}
		o.MicroBatch = rows
		out = append(out, change{strings.TrimSpace(fmt.Sprintf("%s --micro-batch %d", flags, rows)), o})
	}
	return out
}
