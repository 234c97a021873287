package schedule

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// logicalTasks numbers tasks so that a task of first and its twin in steady are one, and a task of drain and
// its twin there. The twins are those with the same description that come equally late in their list.
func logicalTasks(p *plan.Plan) (logical []int32, n int) {
	logical = make([]int32, len(p.Tasks))
	for i := range logical {
		logical[i] = int32(i)
	}
	left, ok := besideFirst(p, logical)
	if !ok {
		twins(p, logical, listed(p, plan.First), listed(p, plan.Steady), listed(p, plan.Drain))
	} else {
		twins(p, logical, left, listed(p, plan.Drain))
	}
	for i, twin := range logical { // the first of twins stands before the other
		if twin == int32(i) {
			logical[i] = int32(n)
			n++
		} else {
			logical[i] = logical[twin]
		}
	}
	return logical, n
}

// besideFirst finds the twins of first in steady, which come in the same order, and returns what the step before left to
// steady, which stands between them; false where that is not how the lists are.
func besideFirst(p *plan.Plan, logical []int32) (left []int, ok bool) {
	first, steady := p.Lists[plan.First], p.Lists[plan.Steady]
	at := first.Start
	for i := steady.Start; i < steady.End; i++ {
		t := &p.Tasks[i]
		if t.Back > 0 {
			left = append(left, i)
			continue
		}
		if at == first.End || descriptionOf(&p.Tasks[at]) != descriptionOf(t) {
			return nil, false
		}
		logical[i] = logical[at]
		at++
	}
	return left, at == first.End
}

// description is what a task does, and when in a step.
type description struct {
	kind                    plan.Kind
	fn                      plan.Func
	lane                    device.Lane
	unit, slab, micro, back int32
}

func descriptionOf(t *plan.Task) description {
	return description{t.Kind, t.Func, t.Lane, int32(t.Unit), int32(t.Slab), int32(t.Micro), int32(t.Back)}
}

// twins gives the tasks of lists the number of their twin in the lists before.
func twins(p *plan.Plan, logical []int32, lists ...[]int) {
	type late struct {
		description
		before int32 // how many with the same description the list has before it
	}
	ids := map[late]int32{}
	for _, list := range lists {
		seen := make(map[description]int32, len(list))
		for _, i := range list {
			k := late{description: descriptionOf(&p.Tasks[i])}
			k.before = seen[k.description]
			seen[k.description]++
			if id, ok := ids[k]; ok {
				logical[i] = id
			} else {
				ids[k] = logical[i]
			}
		}
	}
}

func listed(p *plan.Plan, l plan.List) []int {
	out := make([]int, 0, p.Lists[l].End-p.Lists[l].Start)
	for i := p.Lists[l].Start; i < p.Lists[l].End; i++ {
		out = append(out, i)
	}
	return out
}
