//go:build race

package invariants

const raceOn = true
