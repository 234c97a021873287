package view

import (
	"cmp"
	"math"
	"slices"

	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/compiler/schedule"
	"github.com/megatrain/mtc/runtime/device"
)

// Report is what a step says, for tools: `mtc inspect --json` prints it beside the schedule.
// Times are seconds.
type Report struct {
	List     string     `json:"list"`
	Origin   string     `json:"origin"` // "predicted for h200"
	Machine  string     `json:"machine"`
	Measured bool       `json:"measured"`
	Seconds  float64    `json:"seconds"`
	Rate     float64    `json:"tokens_per_second"`
	Bound    cost.Bound `json:"bound"` // "" of a measured step
	Overlap  *float64   `json:"overlap"`
	// Lanes: of copies and updates, what runs while the compute lane is busy is hidden.
	Lanes     []cost.LaneUse `json:"lanes"`
	Critical  []PathPart     `json:"critical"`
	Path      []PathTask     `json:"path"`
	Costliest []TaskRow      `json:"costliest"`
	// Together are the tasks that do the same thing on different layers and micro-batches.
	Together []CostRow `json:"costliest_together"`
	// Lines are those of the .mt by the time of their kernels. Of a measured step the time of a
	// task is divided among its kernels as predicted.
	Lines  []LineCost  `json:"lines"`
	Memory []MemoryRow `json:"memory"`
}

// PathTask is a stretch of the critical path; Task is -1 of waiting.
type PathTask struct {
	Task  int     `json:"task"`
	What  string  `json:"what"`
	Start float64 `json:"start"`
	End   float64 `json:"end"`
}

// TaskRow is a task in a table.
type TaskRow struct {
	Task    int        `json:"task"`
	Kind    string     `json:"kind"`
	Subject string     `json:"subject"`
	Lane    string     `json:"lane"`
	Micro   int        `json:"micro"`
	Start   float64    `json:"start"`
	Seconds float64    `json:"seconds"`
	Share   float64    `json:"share"` // of the step
	Bound   cost.Bound `json:"bound"`
	Slack   *float64   `json:"slack"` // null: nothing ever waits for it
	Span    string     `json:"span"`  // line of the .mt
}

// MemoryRow is a memory over the step.
type MemoryRow struct {
	Memory   string  `json:"memory"`
	Reserved int64   `json:"reserved"`
	Kept     int64   `json:"kept"`
	Peak     int64   `json:"peak"`
	PeakAt   float64 `json:"peak_at"`
	PeakTask int     `json:"peak_task"`
	AtPeak   []Group `json:"at_peak"`
	Over     []Level `json:"over_time"`
}

// Overlap is the share of the copies' and updates' time that runs under computation; NaN
// without any.
func (t *Step) Overlap() float64 {
	var busy, hidden float64
	for _, u := range t.Line.Lanes {
		if u.Lane != device.Compute.String() {
			busy += u.Busy
			hidden += u.Hidden
		}
	}
	return hidden / busy
}

// rows lists the tasks of the step, the costliest first.
func (t *Step) rows(slack []float64) []TaskRow {
	order := make([]int, t.Len())
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(descending(t.Seconds(a), t.Seconds(b)), a-b) })
	out := make([]TaskRow, t.Len())
	for k, i := range order {
		task := t.Task(i)
		out[k] = TaskRow{
			Task: task.ID, Kind: Kind(task), Subject: Subject(t.Plan, task), Lane: task.Lane.String(), Micro: task.Micro,
			Start: t.Start[i], Seconds: t.Seconds(i), Bound: t.bound(i), Slack: finite(slack[i]), Span: Place(t.Plan, task),
		}
		if t.Line.Seconds > 0 {
			out[k].Share = t.Seconds(i) / t.Line.Seconds
		}
	}
	return out
}

func finite(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}

// Report makes the report.
func (t *Step) Report() *Report {
	line := t.Line
	r := &Report{
		List: line.List.String(), Origin: t.Origin(), Machine: line.Machine, Measured: t.Measured != nil,
		Seconds: line.Seconds, Rate: line.Rate, Bound: line.Bound, Overlap: finite(t.Overlap()), Lanes: line.Lanes,
		Critical: t.PathParts(), Path: []PathTask{}, Memory: []MemoryRow{},
	}
	if t.Measured != nil {
		r.Machine = t.Measured.Device
	}
	for _, l := range t.Path() {
		x := PathTask{Task: -1, What: "waiting", Start: l.From, End: l.To}
		if l.Run >= 0 {
			task := &t.Plan.Tasks[line.Runs[l.Run].Task]
			x.Task, x.What = task.ID, Title(t.Plan, task)
		}
		r.Path = append(r.Path, x)
	}
	rows := t.rows(t.Slack())
	r.Costliest = rows[:min(10, len(rows))]
	r.Together = costs(rows)
	r.Lines = t.Lines()
	for _, m := range t.Memories() {
		r.Memory = append(r.Memory, MemoryRow{m.Name, m.Reserved, m.Kept, m.Peak.Bytes, m.Peak.At, m.PeakTask, append([]Group{}, m.AtPeak...), m.Points})
	}
	return r
}

func bytesText(n int64) string { return schedule.Bytes(n) }
