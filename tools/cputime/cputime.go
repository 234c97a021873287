// Package cputime is for tests that bound how long something takes. Processor time, unlike wall
// time, does not grow with what else the machine does.
package cputime

import "time"

// Of runs f and returns the processor time that this process spent meanwhile, on all cores.
// Tests that run in parallel with it count too.
func Of(f func()) time.Duration {
	start := spent()
	f()
	return spent() - start
}
