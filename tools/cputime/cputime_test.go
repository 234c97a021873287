//go:build unix

package cputime

import (
	"testing"
	"time"
)

// TestOf: work counts, waiting does not.
func TestOf(t *testing.T) {
	if d := Of(func() { time.Sleep(300 * time.Millisecond) }); d > 250*time.Millisecond {
		t.Errorf("sleeping took %v", d)
	}
	if d := Of(func() {
		for end := spent() + 20*time.Millisecond; spent() < end; {
		}
	}); d < 20*time.Millisecond {
		t.Errorf("work of 20 ms took %v", d)
	}
}
