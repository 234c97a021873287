// Package view turns the time of a schedule into what a person looks at. In go a schedule
// (schedule.json, or a plan just compiled) and a timeline of one of its lists, predicted by
// package cost or measured by a run; out come the timeline by lane as text, what is hidden and
// what is exposed, the critical path and every task's slack, memory over the step, why a task
// runs when it does, the same as one HTML page or as a trace, the comparison of predicted with
// measured, and the difference of two schedules. It prints to writers and reads no files.
package view

import (
	"fmt"

	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/compiler/schedule"
	"github.com/megatrain/mtc/runtime/plan"
)

// Schedule is what the views need of a build.
type Schedule struct {
	File *schedule.File
	Plan *plan.Plan
}

// Of makes a schedule of a file.
func Of(f *schedule.File) (*Schedule, error) {
	p, err := f.Plan()
	if err != nil {
		return nil, err
	}
	return &Schedule{File: f, Plan: p}, nil
}

// Compiled makes a schedule of a plan that has just been made.
func Compiled(p *plan.Plan, w *cost.Work) (*Schedule, error) {
	f := schedule.FileOf(p)
	f.Work = w
	return Of(f)
}

// Predict is a list of the schedule on a machine.
func (s *Schedule) Predict(m *cost.Machine, list plan.List) (*Step, error) {
	line, err := cost.SimulateList(s.Plan, s.File.Work, m, list)
	if err != nil {
		return nil, err
	}
	t := newStep(s, line)
	t.Machine = m
	return t, nil
}

// Step is a list of a schedule laid over time: of steady, one training step of the long run.
type Step struct {
	*Schedule
	Line     *cost.Timeline
	Machine  *cost.Machine // predicted for; nil of a measured step
	Measured *Measurement  // nil of a predicted step
	Divide   *cost.Machine // of a measured step: by whose rates its tasks divide into kernels

	// Start and End are when each task of the list runs, by place in the list, in seconds from
	// the start of the period. What the step leaves to the next one reaches beyond its end.
	Start, End []float64
	run        []int // index of Line.Runs by place, -1: none
}

// newStep finds each task of the list in the timeline: in the step that its period shows, or
// in the one before, whose late tasks stand for those that this step leaves over.
func newStep(s *Schedule, line *cost.Timeline) *Step {
	r := s.Plan.Lists[line.List]
	n := r.End - r.Start
	t := &Step{Schedule: s, Line: line, Start: make([]float64, n), End: make([]float64, n), run: make([]int, n)}
	for i := range t.run {
		t.run[i] = -1
	}
	for k := range line.Runs {
		x := &line.Runs[k]
		i := x.Task - r.Start
		if i < 0 || i >= n {
			continue // of first, in the settling of the simulation
		}
		late := float64(-x.Step) * line.Seconds
		if t.run[i] < 0 || x.Step == 0 {
			t.run[i], t.Start[i], t.End[i] = k, x.Start+late, x.End+late
		}
	}
	return t
}

// First is the number of the list's first task.
func (t *Step) First() int { return t.Plan.Lists[t.Line.List].Start }

// Task is the task at a place of the list.
func (t *Step) Task(place int) *plan.Task { return &t.Plan.Tasks[t.First()+place] }

// Len is the number of tasks of the list.
func (t *Step) Len() int { return len(t.run) }

// Seconds is how long the task at a place takes in the timeline.
func (t *Step) Seconds(place int) float64 { return t.End[place] - t.Start[place] }

// Origin says where the times are from.
func (t *Step) Origin() string {
	if t.Measured != nil {
		return fmt.Sprintf("measured on %s, step %d", t.Measured.Device, t.Measured.Step)
	}
	return "predicted for " + t.Machine.Name
}

// bound is what keeps a task from being faster, by the prediction.
func (t *Step) bound(place int) cost.Bound {
	if e := t.Line.Estimate(t.First() + place); e != nil {
		return e.Bound
	}
	return cost.ByNothing
}
