package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestMeter: a line says what takes long, for how long, and where it is.
func TestMeter(t *testing.T) {
	m := newMeter(nil, "planning")
	defer m.end()
	var out bytes.Buffer
	m.w = &out
	m.print()
	m.say("building a step")
	m.print()
	lines := strings.Split(out.String(), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "planning, ") || !strings.HasSuffix(lines[0], " s") || !strings.HasSuffix(lines[1], " s: building a step") {
		t.Errorf("%q", out.String())
	}
}
