//go:build !race

package cpu

import "unsafe"

const raceOn = false

func raceDisable()               {}
func raceEnable()                {}
func raceAcquire(unsafe.Pointer) {}
func raceRelease(unsafe.Pointer) {}
