package schedule

// Machine is what a schedule is drawn for: rates in FLOP/s and bytes/s. It is nominal: the
// picture shows which lane waits for which, not how long a step takes on a machine at hand.
type Machine struct {
	FLOPs, Device, Link, Host float64
}

// Nominal machines by target.
var (
	nominalCPU  = Machine{FLOPs: 100e9, Device: 20e9, Link: 10e9, Host: 20e9}
	nominalCUDA = Machine{FLOPs: 400e12, Device: 3e12, Link: 50e9, Host: 100e9}
)

// Nominal is the nominal machine of a target.
func Nominal(target string) Machine {
	if target == "cuda" {
		return nominalCUDA
	}
	return nominalCPU
}

// seconds is how long a task takes on the machine.
func (m Machine) seconds(t *FileTask) float64 {
	switch t.Lane {
	case "compute":
		return max(float64(t.FLOPs)/m.FLOPs, float64(t.Bytes)/m.Device)
	case "host":
		return float64(t.Bytes) / m.Host
	}
	return float64(t.Bytes) / m.Link
}

// Run is when a task runs, in seconds.
type Run struct {
	Task       int
	Start, End float64
}

// Period is a stretch of a simulation: what ran in it, some of it from before or beyond.
type Period struct {
	Runs       []Run
	Start, End float64
}

// Simulate runs a list on the machine, lane by lane in order with its waits, and returns the
// runs. A list starts when the results of the one before are there. Steady stands for the
// long run: its period reaches from the end of one step's compute tasks to the end of the
// next one's, with whatever the step before left over.
func (f *File) Simulate(list string, m Machine) Period {
	lists := []string{list}
	switch list {
	case "steady":
		lists = []string{"first", "steady", "steady", "steady"}
	case "drain":
		lists = []string{"first", "steady", "drain"}
	}
	free := map[string]float64{}
	var before, now map[int]float64 // end by task
	var p Period
	for k, l := range lists {
		before, now = now, map[int]float64{}
		from, first := 0.0, true
		if k > 0 {
			from = p.Runs[len(p.Runs)-1].End // the last task of a step completes its results
		}
		if list != "steady" {
			p.Runs = nil
		}
		for i := range f.Tasks {
			t := &f.Tasks[i]
			if t.List != l {
				continue
			}
			start := max(from, free[t.Lane])
			for _, w := range t.Waits {
				if w.Back == 0 {
					start = max(start, now[w.Task])
				} else if end, ok := before[f.twin(w.Task, before)]; ok {
					start = max(start, end)
				}
			}
			if first && list != "steady" {
				p.Start, first = start, false
			}
			end := start + m.seconds(t)
			free[t.Lane], now[i] = end, end
			p.Runs = append(p.Runs, Run{i, start, end})
			if list != "steady" {
				p.Start, p.End = min(p.Start, start), max(p.End, end)
			}
		}
		if list == "steady" {
			p.Start, p.End = p.End, free["compute"]
		}
	}
	return p
}

// twin is a steady task itself where it ran, else the task of first that corresponds to it,
// or -1: the tasks of first are those of steady without the updates left over.
func (f *File) twin(task int, ran map[int]float64) int {
	if _, ok := ran[task]; ok || f.Tasks[task].Step < 0 {
		return task
	}
	start, skipped := -1, 0
	for i := range f.Tasks {
		if f.Tasks[i].List != "steady" {
			continue
		}
		if start < 0 {
			start = i
		}
		if i == task {
			break
		}
		if f.Tasks[i].Step < 0 {
			skipped++
		}
	}
	return task - start - skipped
}
