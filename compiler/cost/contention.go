package cost

import "github.com/megatrain/mtc/runtime/device"

// running is what the lanes do at an instant: a task each, or none.
type running [device.NumLanes]*job

// job is a task under way.
type job struct {
	run    int     // index of the timeline's runs
	left   float64 // seconds of it, alone
	update bool    // the optimizer on the host, or another pass over host memory
	copies bool    // bytes cross the link
}

// speeds says how fast each lane's job runs against running alone.
//
// On a GPU copies share the link's directions and, with the optimizer, host memory: the
// profile says what is left of each rate when the others run. On a CPU every job wants the
// cores, a copy one of them and the others all: what is asked beyond them is shared out.
func (m *Machine) speeds(now *running) [device.NumLanes]float64 {
	var out [device.NumLanes]float64
	if m.Target == "cpu" {
		return m.shares(now)
	}
	in, back, host := now[device.H2D], now[device.D2H], now[device.Host]
	up, down := in != nil && in.copies, back != nil && back.copies
	update := host != nil && host.update
	for l, j := range now {
		if j != nil {
			out[l] = 1
		}
	}
	each := m.Link.H2D.Value
	link := func(alone float64) float64 {
		rate := alone
		if up && down {
			rate = min(rate, m.Link.Both.Value)
		}
		if update {
			// One direction takes half of what two take from the optimizer, and loses as large a
			// part of its rate to it.
			rate *= min(1, m.Link.Updating.Value/m.Link.Both.Value)
		}
		return rate / alone
	}
	if up {
		out[device.H2D] = link(each)
	}
	if down {
		out[device.D2H] = link(m.Link.D2H.Value)
	}
	if update && (up || down) {
		lost := 1 - min(1, m.Host.Copying.Value/m.Host.Optimizer.Value)
		if up != down {
			lost /= 2
		}
		out[device.Host] = 1 - lost
	}
	return out
}

// shares shares the cores of a CPU.
func (m *Machine) shares(now *running) [device.NumLanes]float64 {
	var out [device.NumLanes]float64
	cores := max(1, m.Cores.Value)
	asked := 0.0
	for _, j := range now {
		if j == nil {
			continue
		}
		if j.copies {
			asked++
		} else {
			asked += cores
		}
	}
	for l, j := range now {
		if j != nil {
			out[l] = min(1, cores/asked)
		}
	}
	return out
}
