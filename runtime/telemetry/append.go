package telemetry

import "encoding/json"

// Append appends a line that is v, a struct whose first field is written as "step".
func (m *Metrics) Append(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	m.buf = append(append(m.buf[:0], text...), '\n')
	if _, err := m.f.Write(m.buf); err != nil {
		return metricsFault(m.f.Name(), err)
	}
	return nil
}
