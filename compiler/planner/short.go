package planner

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/compiler/schedule"
)

// ShortError says that no plan fits: what the least demanding one takes, and a change that fits. Device is more than
// its limit only where no plan fits that, whatever the host has; and Host is the least that goes with
// the device there is, or with Device where that is more.
type ShortError struct {
	Machine                *cost.Machine
	Device, Host           int64 // bytes that it takes
	DeviceLimit, HostLimit int64
	Options                compiler.Options
	// Change is the nearest change that fits, as flags; "" where none was found.
	Change string
	Does   string // what the change does, in words
	Cut    bool   // not all changes were tried: the schedules are so long
	// Impossible is why no plan has the pinned options, whatever the memory; "" where some has.
	Impossible string
}

// More is with how much memory it fits as it is, in words: the least, in round figures. "" where no memory helps.
func (e *ShortError) More() string {
	var out []string
	if e.Device > e.DeviceLimit {
		out = append(out, atLeast(e.Device)+" of device memory")
	}
	if e.Host > e.HostLimit {
		out = append(out, atLeast(e.Host)+" of "+e.hostName())
	}
	return strings.Join(out, " and ")
}

// hostName is what the host's memory is called: on a CPU it is the device's too.
func (e *ShortError) hostName() string {
	if e.Machine != nil && e.Machine.Target == "cpu" {
		return "memory"
	}
	return "host memory"
}

// Lines say what is short, one memory a line.
func (e *ShortError) Lines() []string {
	var out []string
	for _, m := range []struct {
		name        string
		need, limit int64
	}{{"device memory", e.Device, e.DeviceLimit}, {e.hostName(), e.Host, e.HostLimit}} {
		if over := m.need - m.limit; over > 0 {
			out = append(out, fmt.Sprintf("%s of %s needed, %s over the %s there are",
				atLeast(m.need), m.name, schedule.Bytes(over), schedule.Bytes(m.limit)))
		}
	}
	if len(out) == 0 {
		out = append(out, cmp.Or(e.Impossible, "the pinned options leave no plan to choose from"))
	}
	return out
}

func (e *ShortError) Error() string { return "no plan fits: " + strings.Join(e.Lines(), "; ") }

// atLeast writes a size with five digits, as flags take it, rounded up: so much is enough.
func atLeast(n int64) string {
	units := []string{"KiB", "MiB", "GiB", "TiB", "PiB"}
	x, u := float64(n)/1024, 0
	for x >= 1024 && u < len(units)-1 {
		x /= 1024
		u++
	}
	step := math.Pow(10, math.Ceil(math.Log10(max(x, 1)))-5)
	return strconv.FormatFloat(math.Ceil(x/step-1e-9)*step, 'g', 5, 64) + " " + units[u]
}
