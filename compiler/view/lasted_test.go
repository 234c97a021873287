package view

import (
	"strings"
	"testing"
)

// TestWallTimes: steps that are far shorter than their tasks are refused, those that are a little shorter are not.
func TestWallTimes(t *testing.T) {
	for _, c := range []struct {
		wall []float64
		want string
	}{
		{[]float64{1, 1}, ""}, {[]float64{0.01, 1.9}, ""}, {[]float64{0.4, 0.4}, ""}, {[]float64{0, 0.001}, ""},
		{[]float64{0.001, 0.001}, "its 2 steps take 0.002 s, and their tasks 2 s"},
	} {
		m := &Measurement{Periods: []float64{1, 1}}
		for i, s := range c.wall {
			m.Steps = append(m.Steps, StepTimes{Step: int64(i), Seconds: s})
		}
		switch err := m.lasted(); {
		case c.want == "" && err != nil:
			t.Errorf("%v: %v", c.wall, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%v: %v, want %q", c.wall, err, c.want)
		}
	}
}
