package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/megatrain/mtc/runtime/hostmem"
)

// What else runs on the processors while they are measured makes every rate too low, and a plan by such rates
// wrong. So the time that others took of them is counted, and the time for which a control group held this
// process back.

// loaded is from which part of its processors on what others took is told.
const loaded = 0.1

// usage is what was used of the processors that this process may run on, since the machine began.
type usage struct {
	at             time.Time
	busy, own      time.Duration // of all processes, what a hypervisor gave to others included; of this one
	throttled      time.Duration
	processors     int
	known, limited bool
}

// tick is the unit of /proc/stat, which is this on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// usageNow reads the usage below a root; known is false on systems that do not tell.
func usageNow(root string) usage {
	u := usage{at: time.Now(), own: processorTime()}
	allowed := allowedProcessors(root)
	text, _ := os.ReadFile(filepath.Join(root, "proc/stat"))
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 9 || !strings.HasPrefix(f[0], "cpu") || f[0] == "cpu" {
			continue
		}
		if n, err := strconv.Atoi(f[0][3:]); err != nil || allowed != nil && !slices.Contains(allowed, n) {
			continue
		}
		u.processors++
		for i, x := range f[1:9] { // user, nice, system, idle, iowait, irq, softirq, steal
			if n, err := strconv.ParseInt(x, 10, 64); err == nil && i != 3 && i != 4 {
				u.busy += time.Duration(n) * tick
			}
		}
	}
	u.known = u.processors > 0
	u.throttled, u.limited = throttled(root)
	return u
}

// allowedProcessors are those that this process may run on; nil where that is not told.
func allowedProcessors(root string) []int {
	text, _ := os.ReadFile(filepath.Join(root, "proc/self/status"))
	for line := range strings.Lines(string(text)) {
		if list, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
			return Processors(list)
		}
	}
	return nil
}

// Processors are the numbers of a list of ranges, "0-3,8"; what is none is passed over.
func Processors(list string) []int {
	out := []int{}
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		first, last, span := strings.Cut(strings.TrimSpace(part), "-")
		if !span {
			last = first
		}
		a, err1 := strconv.Atoi(first)
		b, err2 := strconv.Atoi(last)
		for i := a; err1 == nil && err2 == nil && i <= b && i < 1<<14; i++ {
			out = append(out, i)
		}
	}
	return out
}

// throttled is for how long the control groups on the way to the root held their processes back, the most of
// them.
func throttled(root string) (most time.Duration, ok bool) {
	for _, g := range hostmem.Groups(root, "cpu") {
		stat, _ := os.ReadFile(filepath.Join(g.Dir, "cpu.stat"))
		for l := range strings.Lines(string(stat)) {
			f := strings.Fields(l)
			if len(f) != 2 {
				continue
			}
			n, err := strconv.ParseInt(f[1], 10, 64)
			switch {
			case err != nil:
			case f[0] == "throttled_usec":
				most, ok = max(most, time.Duration(n)*time.Microsecond), true
			case f[0] == "throttled_time":
				most, ok = max(most, time.Duration(n)), true
			}
		}
	}
	return most, ok
}

// load says what disturbed a measurement between two readings, with so many threads; "" where nothing to
// speak of did.
func load(from, to usage, threads int) string {
	passed := to.at.Sub(from.at)
	if passed <= 0 || !from.known || !to.known {
		return ""
	}
	var out []string
	others := (to.busy - from.busy - (to.own - from.own)).Seconds() / passed.Seconds()
	spare := max(0, to.processors-threads)
	if others > float64(spare)+loaded*float64(min(threads, to.processors)) {
		out = append(out, fmt.Sprintf("other processes took %.1f of %d processors", others, to.processors))
	}
	if part := (to.throttled - from.throttled).Seconds() / passed.Seconds(); to.limited && part > loaded/2 {
		out = append(out, fmt.Sprintf("a control group held it back for %.0f %% of the time", 100*part))
	}
	return strings.Join(out, ", and ")
}

// loadNow begins to count, for the machine that this runs on.
func loadNow() func() string {
	from := usageNow("/")
	return func() string { return load(from, usageNow("/"), runtime.GOMAXPROCS(0)) }
}
