package null

import "github.com/megatrain/mtc/runtime/device"

var _ device.Clock = (*Device)(nil)

// marks count up: a point's time is how many points were set before it.
type marks struct {
	next int64
	at   []int64
}

// Marks implements device.Clock. Nothing takes time here, so a time is a place in the order
// of submission.
func (d *Device) Marks(lanes []device.Lane) (device.Marks, error) {
	m := &marks{at: make([]int64, len(lanes))}
	for i := range m.at {
		m.at[i] = -1
	}
	return m, nil
}

// Set implements device.Marks.
func (m *marks) Set(i int) {
	m.at[i] = m.next
	m.next++
}

// Read implements device.Marks.
func (m *marks) Read() ([]int64, error) { return append([]int64(nil), m.at...), nil }

// Close implements device.Marks.
func (m *marks) Close() {}
