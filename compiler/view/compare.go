package view

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/compiler/memplan"
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// Comparison is a measured step beside the prediction of it. Times are seconds a step, and all measured ones are of
// one step, the one of median length: what the kinds of a lane take adds up to what the lane is busy,
// and of the compute lane with the waiting to the step.
type Comparison struct {
	Machine string  `json:"machine"`                // of the prediction
	Load    string  `json:"machine_load,omitempty"` // what else used it while its profile was measured
	Device  string  `json:"device"`                 // of the measurement
	Steps   int     `json:"steps"`                  // that were measured
	Shown   int64   `json:"shown"`                  // number of the one whose times these are
	Step    Pair    `json:"step"`
	Waiting Pair    `json:"waiting"` // of the compute lane, for anything
	Memory  []Used  `json:"memory"`  // in bytes; empty where the run did not say
	Lanes   []Laned `json:"lanes"`
	Kinds   []Kinds `json:"kinds"`
	Worst   []Kinds `json:"worst"`
	// Timing is what measuring cost: the median wall time of steps with it, over that without,
	// less 1; null where it cannot be told.
	Timing *float64 `json:"timing"`
}

// Pair is two values of one thing.
type Pair struct {
	Predicted float64 `json:"predicted"`
	Measured  float64 `json:"measured"`
}

// Off is how far the measured value is from the prediction, as a share of it.
func (p Pair) Off() float64 { return p.Measured/p.Predicted - 1 }

// Used is the memory that a run takes, with what libraries and the process itself need.
type Used struct {
	Memory string `json:"memory"` // "device" or "host"
	Bytes  Pair   `json:"bytes"`
}

// used holds the memory that a run had in use against the plan's.
func used(s *Step, m *Measurement) []Used {
	dev, host := memplan.Need(s.Plan)
	if s.Machine != nil {
		host += memplan.Threads(s.Plan, int64(s.Machine.Cores.Value))
	}
	if !m.Saved {
		host -= memplan.Unsaved(s.Plan)
	}
	out := []Used{}
	for _, u := range []Used{
		{"device", Pair{float64(dev), float64(m.DeviceBytes)}}, {"host", Pair{float64(host), float64(m.HostBytes)}},
	} {
		if u.Bytes.Predicted > 0 && u.Bytes.Measured > 0 {
			out = append(out, u)
		}
	}
	return out
}

// Laned is a lane.
type Laned struct {
	Lane    string `json:"lane"`
	Busy    Pair   `json:"busy"`
	Exposed Pair   `json:"exposed"`
}

// Kinds is the tasks of a kind on a lane. Rates are what was reached while they ran.
type Kinds struct {
	Kind  string `json:"kind"`
	Lane  string `json:"lane"`
	Tasks int    `json:"tasks"`
	Time  Pair   `json:"time"`
	FLOPs Pair   `json:"flops_per_second"`
	Bytes Pair   `json:"bytes_per_second"`
	// Bound is what bounds its costliest task, by the prediction.
	Bound cost.Bound `json:"bound"`
	Cause string     `json:"cause,omitempty"`
}

// Compare holds a measured step against the prediction of the same schedule.
func Compare(predicted, measured *Step) *Comparison {
	m := measured.Measured
	c := &Comparison{
		Machine: predicted.Line.Machine, Device: m.Device, Steps: len(m.Steps), Shown: m.Step,
		Step:   Pair{predicted.Line.Seconds, measured.Line.Seconds},
		Memory: used(predicted, m),
		Lanes:  []Laned{}, Kinds: []Kinds{}, Worst: []Kinds{},
	}
	if predicted.Machine != nil {
		c.Load = predicted.Machine.Load
	}
	for l := range device.NumLanes {
		a, b := predicted.Line.Lanes[l], measured.Line.Lanes[l]
		if a.Tasks+b.Tasks > 0 || a.Busy+b.Busy > 0 {
			c.Lanes = append(c.Lanes, Laned{l.String(), Pair{a.Busy, b.Busy}, Pair{a.Exposed, b.Exposed}})
		}
		if l == device.Compute {
			c.Waiting = Pair{predicted.Line.Seconds - a.Busy, measured.Line.Seconds - b.Busy}
		}
	}
	type work struct{ flops, bytes, most float64 }
	var works []work
	index := map[[2]string]int{}
	took, takes := predicted.kinds(), measured.kinds()
	for i := range predicted.Len() {
		task := predicted.Task(i)
		key := kindOn(task)
		k, ok := index[key]
		if !ok {
			k = len(c.Kinds)
			index[key] = k
			c.Kinds = append(c.Kinds, Kinds{Kind: key[0], Lane: key[1], Time: Pair{took[key], takes[key]}})
			works = append(works, work{})
		}
		x := &c.Kinds[k]
		x.Tasks++
		bytes := task.Moved
		if task.Bytes > 0 {
			bytes = task.Bytes
		}
		if s := predicted.Seconds(i); s > works[k].most { // the bound of the costliest
			works[k].most, x.Bound = s, predicted.bound(i)
		}
		works[k].flops += float64(task.FLOPs)
		works[k].bytes += float64(bytes)
	}
	for k := range c.Kinds {
		x := &c.Kinds[k]
		x.FLOPs = Pair{rate(works[k].flops, x.Time.Predicted), rate(works[k].flops, x.Time.Measured)}
		x.Bytes = Pair{rate(works[k].bytes, x.Time.Predicted), rate(works[k].bytes, x.Time.Measured)}
	}
	slices.SortStableFunc(c.Kinds, func(a, b Kinds) int {
		return cmp.Or(descending(a.Time.Measured, b.Time.Measured), cmp.Compare(a.Kind, b.Kind))
	})
	worst := slices.Clone(c.Kinds)
	slices.SortStableFunc(worst, func(a, b Kinds) int {
		return descending(math.Abs(a.Time.Measured-a.Time.Predicted), math.Abs(b.Time.Measured-b.Time.Predicted))
	})
	for _, w := range worst[:min(3, len(worst))] {
		w.Cause = cause(&w, predicted, measured)
		c.Worst = append(c.Worst, w)
	}
	var timed []float64
	for _, s := range m.Steps {
		if s.Seconds > 0 {
			timed = append(timed, s.Seconds)
		}
	}
	if a, b := Median(timed), Median(m.Untimed); len(timed) >= 3 && len(m.Untimed) >= 3 && b > 0 {
		x := a/b - 1
		c.Timing = &x
	}
	return c
}

// kindOn is a task's kind and lane.
func kindOn(task *plan.Task) [2]string { return [2]string{Kind(task), task.Lane.String()} }

// kinds adds up what tasks take within the step, by kind and lane, as lanes are added up.
func (t *Step) kinds() map[[2]string]float64 {
	out := map[[2]string]float64{}
	for i := range t.Line.Runs {
		r := &t.Line.Runs[i]
		if from, to := max(r.Start, 0), min(r.End, t.Line.Seconds); to > from {
			out[kindOn(&t.Plan.Tasks[r.Task])] += to - from
		}
	}
	return out
}

func rate(amount, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return amount / seconds
}

// cause guesses why a kind of task takes another time than predicted.
func cause(k *Kinds, predicted, measured *Step) string {
	off := k.Time.Off()
	each := k.Time.Measured / float64(max(1, k.Tasks))
	switch {
	case k.Time.Predicted <= 0:
		return "no time was predicted for it"
	case math.Abs(off) < 0.1:
		return "within a tenth of the prediction: it stands here because it takes so much of the step"
	case predicted.Machine != nil && predicted.Machine.Name == Nominal().Name:
		return "the prediction is for a nominal machine; `mtc bench` measures this one"
	case off < 0:
		return "faster than the profile says: the profile was measured under load, or on a slower machine"
	case each < 50e-6:
		return fmt.Sprintf("its tasks are short (%s each), and starting one costs more than the profile says", Seconds(each))
	}
	if submits(k, predicted, measured) {
		return "most of it is the step's first task, which shares the cores with the submission of the step"
	}
	switch k.Lane {
	case "h2d", "d2h":
		if overlapOf(measured, k.Lane, "host") > 0.3 {
			return "copies and the host's updates run at once and share host memory more than the profile says"
		}
		if overlapOf(measured, k.Lane, "h2d") > 0.3 && k.Lane == "d2h" || overlapOf(measured, k.Lane, "d2h") > 0.3 && k.Lane == "h2d" {
			return "copies go both ways at once, and the link gives less than the profile says"
		}
		return "the link is slower than in the profile: memory that is not locked, another slot, or another process on it"
	case "host":
		if overlapOf(measured, "host", "compute") > 0.3 && measured.Plan.Target == "cpu" {
			return "updates and computation want the same cores at once"
		}
		return "host memory or cores are shared with something else, or are fewer than in the profile"
	}
	if measured.Plan.Target == "cpu" && (overlapOf(measured, "compute", "host") > 0.1 || overlapOf(measured, "compute", "h2d") > 0.1) {
		return "copies and updates take cores from the computation"
	}
	switch k.Bound {
	case cost.ByProducts:
		return "matrix products of these shapes run slower than the profile's: other processes, a lower clock, or shapes it has no point near"
	case cost.ByAttention:
		return "attention at these lengths runs slower than the profile's points"
	case cost.ByMemory:
		return "it is bound by memory, and reaches less of it than the profile says"
	case cost.ByLaunches:
		return "its kernels are short, and starting one costs more than the profile says"
	}
	return "slower than the profile says"
}

// submits says whether most of what a kind takes longer is the first task of the compute lane, on a CPU, where the
// submission of a step takes one of the cores that it wants.
func submits(k *Kinds, predicted, measured *Step) bool {
	if measured.Plan.Target != "cpu" || k.Lane != device.Compute.String() {
		return false
	}
	for i := range predicted.Len() {
		if task := predicted.Task(i); task.Lane == device.Compute {
			return Kind(task) == k.Kind && measured.Seconds(i)-predicted.Seconds(i) > (k.Time.Measured-k.Time.Predicted)/2
		}
	}
	return false
}

// overlapOf is the share of a lane's busy time in which another lane is busy too.
func overlapOf(t *Step, lane, other string) float64 {
	var a, b []span
	for i := range t.Line.Runs {
		r := &t.Line.Runs[i]
		from, to := max(r.Start, 0), min(r.End, t.Line.Seconds)
		if to <= from {
			continue
		}
		switch r.Lane.String() {
		case lane:
			a = append(a, span{from, to})
		case other:
			b = append(b, span{from, to})
		}
	}
	busy := 0.0
	for _, x := range a {
		busy += x.to - x.from
	}
	if busy == 0 {
		return 0
	}
	return shared(a, b) / busy
}

// Write prints the comparison.
func (c *Comparison) Write(w io.Writer) {
	if c.Load != "" {
		for _, line := range fold("warning: "+c.Load+" while "+c.Machine+" was measured: predictions by it are too slow", Width) {
			fmt.Fprintln(w, line)
		}
		fmt.Fprintln(w)
	}
	const format = "%-11s %-7s %5s %9s %9s %7s %12s %12s"
	fmt.Fprintf(w, format+"\n", "", "lane", "tasks", "predicted", "measured", "off", "reached", "profile")
	row := func(name, lane, tasks string, p Pair, reached, profile string) {
		fmt.Fprintln(w, trimRight(fmt.Sprintf(format, name, lane, tasks, Seconds(p.Predicted), Seconds(p.Measured), off(p), reached, profile)))
	}
	row("step", "", "", c.Step, "", "")
	row("waiting", "compute", "", c.Waiting, "", "")
	for _, k := range c.Kinds {
		r, unit := k.rate()
		reached, profile := "", ""
		if r.Measured > 0 && r.Predicted > 0 {
			reached, profile = Rate(r.Measured, unit), Rate(r.Predicted, unit)
		}
		row(k.Kind, k.Lane, fmt.Sprint(k.Tasks), k.Time, reached, profile)
	}
	if c.Steps > 1 {
		fmt.Fprintf(w, "measured in step %d, the one of median length of %d\n", c.Shown, c.Steps)
	}
	fmt.Fprintf(w, "\n%-12s %32s %32s\n", "", "busy", "exposed")
	fmt.Fprintf(w, "%-12s %10s %10s %10s %10s %10s %10s\n", "lane", "predicted", "measured", "off", "predicted", "measured", "off")
	for _, l := range c.Lanes {
		fmt.Fprintf(w, "%-12s %10s %10s %10s %10s %10s %10s\n", l.Lane, Seconds(l.Busy.Predicted), Seconds(l.Busy.Measured), off(l.Busy),
			Seconds(l.Exposed.Predicted), Seconds(l.Exposed.Measured), off(l.Exposed))
	}
	if len(c.Memory) > 0 {
		fmt.Fprintf(w, "\n%-12s %10s %10s %10s\n", "memory", "predicted", "measured", "off")
		for _, u := range c.Memory {
			fmt.Fprintf(w, "%-12s %10s %10s %10s\n", u.Memory, bytesText(int64(u.Bytes.Predicted)), bytesText(int64(u.Bytes.Measured)), off(u.Bytes))
		}
	}
	fmt.Fprintln(w, "\nfarthest from the prediction:")
	for i, k := range c.Worst {
		fmt.Fprintf(w, "%d. %s on %s: %s instead of %s, %s", i+1, k.Kind, k.Lane, Seconds(k.Time.Measured), Seconds(k.Time.Predicted), off(k.Time))
		if r, unit := k.rate(); r.Measured > 0 {
			fmt.Fprintf(w, ";\n   %s, the profile says %s", Rate(r.Measured, unit), Rate(r.Predicted, unit))
		}
		fmt.Fprintln(w)
		for _, line := range fold(k.Cause, Width-3) {
			fmt.Fprintf(w, "   %s\n", line)
		}
	}
	if c.Timing != nil {
		fmt.Fprintf(w, "\nsteps that were timed took %s of the time of others\n", Percent(1+*c.Timing))
	}
}

func off(p Pair) string {
	if p.Predicted <= 0 {
		return "-"
	}
	return Change(p.Predicted, p.Measured)
}

// rate is what says most about a kind: FLOPs of what products or attention bound, else bytes.
func (k *Kinds) rate() (Pair, string) {
	if (k.Bound == cost.ByProducts || k.Bound == cost.ByAttention) && k.FLOPs.Measured > 0 {
		return k.FLOPs, "FLOP/s"
	}
	return k.Bytes, "B/s"
}

func trimRight(s string) string {
	for len(s) > 0 && s[len(s)-1] == ' ' {
		s = s[:len(s)-1]
	}
	return s
}
