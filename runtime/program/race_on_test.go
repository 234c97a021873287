//go:build race

package program

// raced: a sync.Pool drops what it is given now and then, so that more is allocated than in a run.
const raced = true
