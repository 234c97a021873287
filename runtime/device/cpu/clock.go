package cpu

import (
	"time"

	"github.com/megatrain/mtc/runtime/device"
)

var _ device.Clock = (*Device)(nil)

// marks are points in time that the lanes write down themselves.
type marks struct {
	start time.Time
	on    []*queue
	at    []int64
}

// Marks implements device.Clock.
func (d *Device) Marks(lanes []device.Lane) (device.Marks, error) {
	m := &marks{start: time.Now(), on: make([]*queue, len(lanes)), at: make([]int64, len(lanes))}
	for i, l := range lanes {
		m.on[i], m.at[i] = d.queues[l], -1
	}
	return m, nil
}

// Set implements device.Marks.
func (m *marks) Set(i int) {
	m.on[i].ring <- command{do: mark, marks: m, n: int64(i)}
}

// note is the lane's part of Set.
func (m *marks) note(i int64) { m.at[i] = int64(time.Since(m.start)) }

// Read implements device.Marks.
func (m *marks) Read() ([]int64, error) { return append([]int64(nil), m.at...), nil }

// Close implements device.Marks.
func (m *marks) Close() {}
