//go:build race

package cpu

import (
	"runtime"
	"unsafe"
)

// raceOn says that the race detector is watching: Parallel then runs every range on a
// goroutine of its own, because a worker shared by two lanes would order one after the other.
const raceOn = true

func raceDisable()                 { runtime.RaceDisable() }
func raceEnable()                  { runtime.RaceEnable() }
func raceAcquire(p unsafe.Pointer) { runtime.RaceAcquire(p) }
func raceRelease(p unsafe.Pointer) { runtime.RaceRelease(p) }
