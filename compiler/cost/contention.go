package cost

import "github.com/megatrain/mtc/runtime/device"

// cores are those of a CPU, one at least; 0 of a GPU, whose kernels the profile knows as a whole.
func (m *Machine) cores() int64 {
	if m.Target != "cpu" {
		return 0
	}
	return max(1, int64(m.Cores.Value))
}

// running are the lanes that are busy at an instant.
type running [device.NumLanes]bool

// What a lane does beside computing: bytes cross the link, or the optimizer or another pass goes over host memory.
func copies(l device.Lane) bool  { return l == device.H2D || l == device.D2H }
func updates(l device.Lane) bool { return l == device.Host }

// speeds says how fast each lane's job runs against running alone.
//
// On a GPU copies share the link's directions and, with the optimizer, host memory: the
// profile says what is left of each rate when the others run. On a CPU every job also wants the
// cores, a copy one of them and the others all: what is asked beyond them is shared out.
func (m *Machine) speeds(now *running) [device.NumLanes]float64 {
	var out [device.NumLanes]float64
	if m.Target == "cpu" {
		return m.shares(now)
	}
	up, down, update := now[device.H2D], now[device.D2H], now[device.Host]
	for l, busy := range now {
		if busy {
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

// shares shares the cores of a CPU and its memory. What two copies lose to each other, and copies and the
// optimizer, was measured: what of it are not cores is memory. A computation counts as the optimizer does
// for copies beside it, but loses nothing to them but cores: its operands are mostly in caches. A copy that
// has got a core keeps it to its end, where the threads of a computation often stop to wait for each other.
func (m *Machine) shares(now *running) [device.NumLanes]float64 {
	var out [device.NumLanes]float64
	cores := max(1, m.Cores.Value)
	ones, wholes := 0.0, 0.0 // jobs that want one core, and all
	for l, busy := range now {
		switch {
		case !busy:
		case copies(device.Lane(l)):
			ones++
		default:
			wholes++
		}
	}
	core := min(1, cores/max(1, ones+min(1, wholes))) // that a copy gets
	share := (cores - ones*core) / cores / max(1, wholes)
	copying, updating := 1.0, 1.0 // parts of their rates that memory leaves
	if ones > 1 {
		copying = min(1, m.Link.Both.Value/m.Link.H2D.Value*max(1, 2/cores))
	}
	if wholes > 0 && ones > 0 {
		all := (cores + 2) / cores // asked for when all three were measured
		copying = min(copying, 1-(1-min(1, m.Link.Updating.Value/m.Link.H2D.Value*all))*ones/2)
		updating = 1 - (1-min(1, m.Host.Copying.Value/m.Host.Optimizer.Value*all))*ones/2
	}
	for l, busy := range now {
		switch {
		case !busy:
		case copies(device.Lane(l)):
			out[l] = core * copying
		case updates(device.Lane(l)):
			out[l] = share * updating
		default:
			out[l] = share
		}
	}
	return out
}
