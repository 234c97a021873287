package planner

import (
	"cmp"
	"fmt"

	"github.com/megatrain/mtc/runtime/plan"
)

// A search is bounded by what it makes, counted in tasks, so that no clock decides. Of the models that are shipped none
// comes near the bound: it is for a thousand layers, whose schedules have a million tasks, and some seconds to build
// each.
const (
	mostWork  = 3_000_000 // tasks made until nothing more is looked at: about ten seconds
	unitTasks = 100       // tasks that take as long to make as a unit takes to be lowered
)

// effort is what a search has made.
type effort struct {
	tasks int
	most  int  // that may be made; 0: mostWork
	cut   bool // something was not looked at for it
	say   func(text string)
}

// lowered counts a program.
func (e *effort) lowered(units int) { e.tasks += unitTasks * units }

// planned counts a plan; a draft takes half as long.
func (e *effort) planned(p *plan.Plan, draft bool) {
	switch {
	case p == nil:
	case draft:
		e.tasks += len(p.Tasks) / 2
	default:
		e.tasks += len(p.Tasks)
	}
}

// spent reports whether so many parts in four of what may be made are.
func (e *effort) spent(quarters int) bool {
	if e.tasks <= cmp.Or(e.most, mostWork)/4*quarters {
		return false
	}
	e.cut = true
	return true
}

// doing tells what is done now.
func (e *effort) doing(format string, args ...any) {
	if e.say != nil {
		e.say(fmt.Sprintf(format, args...))
	}
}
