// Package inuse lets ops on single elements run over the rows of a mixture's experts that are in use,
// whose number is known on the device alone: it stands in the routing (package moe).
package inuse

import "github.com/megatrain/mtc/runtime/device"

// The places of the arguments; runtime/device/cuda/kit/loops.cuh has them too.
const (
	ptr   = device.MaxPtrs - 1 // i32: how many rows are in use
	slots = device.MaxInts - 2 // rows that a token has memory for
)

// Args adds to the arguments of a launch over I[0] tokens of I[1] elements that each of them has
// so many slots, of which routing says how many are in use in all. A nil routing changes nothing.
func Args(a device.Args, routing device.Ptr, experts, n int) device.Args {
	if !routing.Nil() {
		a.P[ptr], a.I[slots] = routing.At(4*int64(experts)), int64(n)
	}
	return a
}

// Elements is how many elements a launch has.
func Elements(c device.CPU, a *device.Args) int64 {
	n := a.I[0] * a.I[1]
	if a.P[ptr].Nil() {
		return n
	}
	return min(n, int64(c.I32(a.P[ptr], 1)[0])*(a.I[1]/a.I[slots]))
}
