//go:build cuda

package cuda

/*
#include <cuda.h>

static int timing_event(CUevent* e) { return cuEventCreate(e, CU_EVENT_DEFAULT); }
static int elapsed(CUevent from, CUevent to, float* ms) { return cuEventElapsedTime(ms, from, to); }
static int drop_event(CUevent e) { return cuEventDestroy(e); }
*/
import "C"

import (
	"fmt"
	"runtime"
	"time"

	"github.com/megatrain/mtc/runtime/device"
)

var _ device.Clock = (*Device)(nil)

// marks are points in time: events of the streams that keep the time, and what the host lane
// writes down itself.
type marks struct {
	dev    *Device
	lanes  []device.Lane
	events []eventHandle // nil on the host lane
	set    []bool
	host   []int64 // nanoseconds since start, of the host lane
	base   eventHandle
	start  time.Time // host time of base, as near as can be told
	within time.Duration
}

// Marks implements device.Clock.
func (d *Device) Marks(lanes []device.Lane) (device.Marks, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := d.bind(); err != nil {
		return nil, err
	}
	m := &marks{dev: d, lanes: lanes, events: make([]eventHandle, len(lanes)), set: make([]bool, len(lanes)), host: make([]int64, len(lanes))}
	for i, l := range lanes {
		m.host[i] = -1
		if l == device.Host {
			continue
		}
		if err := result("cuEventCreate", C.timing_event(&m.events[i])); err != nil {
			m.Close()
			return nil, d.told(fmt.Sprintf("the start of a clock, event %d of %d", i, len(lanes)), err)
		}
	}
	if err := result("cuEventCreate", C.timing_event(&m.base)); err != nil {
		m.Close()
		return nil, d.told("the start of a clock", err)
	}
	return m, d.told("the start of a clock", m.align())
}

// align finds the host's time of the base event. The event happens between its record and the
// return of the wait for it; of some tries the shortest one tells most.
func (m *marks) align() error {
	d := m.dev
	if err := d.Sync(); err != nil {
		return err
	}
	stream := d.streams[device.Compute].handle
	try := func() (begin, end time.Time, err error) {
		begin = time.Now()
		if err = d.recordNow(stream, m.base); err == nil {
			err = d.syncEvent(m.base)
		}
		return begin, time.Now(), err
	}
	least := time.Duration(1 << 62)
	for range 20 {
		begin, end, err := try()
		if err != nil {
			return err
		}
		least = min(least, end.Sub(begin))
	}
	for range 200 { // the last try counts: the event keeps only its last time
		begin, end, err := try()
		if err != nil {
			return err
		}
		m.within = end.Sub(begin) / 2
		m.start = begin.Add(m.within)
		if end.Sub(begin) <= least*5/4 {
			break
		}
	}
	return nil
}

// Set implements device.Marks.
func (m *marks) Set(i int) {
	l := m.lanes[i]
	if l == device.Host {
		m.dev.host.ring <- command{do: mark, marks: m, n: int64(i)}
		return
	}
	s := m.dev.streams[l]
	m.set[i] = true
	if err := m.dev.recordNow(s.handle, m.events[i]); err != nil {
		m.dev.failed(s, "", err)
	}
}

// note is the host lane's part of Set.
func (m *marks) note(i int64) { m.host[i] = int64(time.Since(m.start)) }

// Read implements device.Marks. The driver tells the time between two events in float32
// milliseconds, so events that are far from the base are measured from one nearer by.
func (m *marks) Read() ([]int64, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := m.dev.bind(); err != nil {
		return nil, err
	}
	const far = 500 // ms; the steps of a float32 there are 0.03 us
	var from [device.NumLanes]eventHandle
	var base [device.NumLanes]float64 // ms from the base event to `from`
	for l := range from {
		from[l] = m.base
	}
	out := make([]int64, len(m.lanes))
	for i, l := range m.lanes {
		out[i] = m.host[i]
		if l == device.Host || !m.set[i] {
			continue
		}
		var ms C.float
		if err := result("cuEventElapsedTime", C.elapsed(from[l], m.events[i], &ms)); err != nil {
			return nil, m.dev.told("the reading of a clock", err)
		}
		at := base[l] + float64(ms)
		out[i] = int64(at * 1e6)
		if ms > far {
			from[l], base[l] = m.events[i], at
		}
	}
	return out, nil
}

// Close implements device.Marks.
func (m *marks) Close() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if m.dev.bind() != nil {
		return
	}
	for i, e := range append(m.events, m.base) {
		if e != nil {
			_ = C.drop_event(e)
		}
		if i < len(m.events) {
			m.events[i] = nil
		}
	}
	m.base = nil
}
