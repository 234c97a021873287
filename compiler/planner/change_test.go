package planner

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/runtime/plan"
)

// TestChangeFits: over memory of all sizes and pins, a plan fits, or something is short and the change
// that is named fits. Layers with experts are several units, with more than one value between them.
func TestChangeFits(t *testing.T) {
	experts := Request{
		Options: compiler.Options{Path: "../../models/et_moe.mt", Target: "cuda"},
		Machine: cost.Shipped("rtx4090"),
	}
	dense := request(0, 0)
	for _, tc := range []struct {
		name         string
		r            Request
		device, host int64
		pins         map[string]bool
	}{
		{"experts, part of the inputs on the host", experts, 11858 * mib, 64 << 30, nil},
		{"dense, hardly a device", dense, 860 * mib, 4 << 30, nil},
		{"dense, hardly a host", dense, 944 * mib, 860 * mib, nil},
		{"dense, pins", dense, 900 * mib, 1 << 30, map[string]bool{"recompute": true, "micro-batch": true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := tc.r
			r.Device, r.Host, r.Pinned = tc.device, tc.host, tc.pins
			if tc.pins["recompute"] {
				r.Options.Recompute, r.Options.MicroBatch = "none", 64
			}
			_, err := choose(t, r)
			var short *ShortError
			if err == nil || !errors.As(err, &short) {
				if err != nil {
					t.Error(err)
				}
				return
			}
			needed(t, r, short)
			if short.Change == "" {
				return
			}
			if _, err := choose(t, changed(r, short.Change)); err != nil {
				t.Errorf("%v; with %s it does not fit either: %v", short, short.Change, err)
			}
		})
	}
}

var (
	setIn  = regexp.MustCompile(`--set ("[^"]*"|[^ "` + "`" + `]+)`)
	leftIn = regexp.MustCompile("^leaving `--(.*)` out$")
)

var sizeOf = regexp.MustCompile(`([0-9.]+) (MiB|GiB|TiB) of (device memory|host memory|memory)`)

// larger is a request with as much memory as it is said to fit into, less a part in so many of one of them.
func larger(t *testing.T, r Request, more, less string) Request {
	t.Helper()
	all := sizeOf.FindAllStringSubmatch(more, -1)
	if len(all) == 0 {
		t.Fatalf("%q names no memory", more)
	}
	for _, m := range all {
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		bytes := int64(n * map[string]float64{"MiB": mib, "GiB": mib << 10, "TiB": mib << 20}[m[2]])
		if m[3] == less+" memory" || m[3] == "memory" && less == "host" {
			bytes -= bytes / 2000
		}
		if m[3] == "device memory" {
			r.Device = bytes
		} else {
			r.Host = bytes
		}
	}
	return r
}

// needed checks what is said to be needed: it is more than there is, it is enough as it is printed, and a little
// less of either is not.
func needed(t *testing.T, r Request, short *ShortError) {
	t.Helper()
	r.Quick = true // whether it fits is asked, not how fast it is
	more := short.More()
	if more == "" {
		t.Errorf("it is short of nothing: %v, %+v", short, short.Options)
		return
	}
	if c, err := choose(t, larger(t, r, more, "")); err != nil {
		t.Errorf("%v: with %s it does not fit either: %v", short, more, err)
	} else if c.DevicePeak > c.DeviceLimit || c.HostPeak > c.HostLimit {
		t.Errorf("with %s it takes %d and %d bytes", more, c.DevicePeak, c.HostPeak)
	}
	for _, m := range []string{"device", "host"} {
		if has := strings.Contains(more, m+" memory"); !has && (m == "device" || !strings.Contains(more, "of memory")) {
			continue
		}
		var less *ShortError
		c, err := choose(t, larger(t, r, more, m))
		if err == nil {
			t.Errorf("%v: with a little less than %s it takes %d and %d bytes: %v", short, more, c.DevicePeak, c.HostPeak, c.from)
		} else if !errors.As(err, &less) || rises(less, short) {
			t.Errorf("%v; with a little less than %s: %v", short, more, err)
		}
	}
}

// changed is a request with a change made.
func changed(r Request, change string) Request {
	r.Pinned = maps.Clone(r.Pinned)
	for _, m := range setIn.FindAllStringSubmatch(change, -1) {
		r.Options.Set = append(r.Options.Set, strings.Trim(m[1], `"`))
	}
	if m := leftIn.FindStringSubmatch(change); m != nil {
		delete(r.Pinned, m[1])
	} else if strings.Contains(change, "open") {
		r.Pinned = nil
	} else if !strings.Contains(change, "--set") {
		panic(fmt.Sprintf("a change that the test does not know: %s", change))
	}
	return r
}

// TestSavedInputsAtOnce: what is said to wait on the host is what lies there at once, however many
// groups of micro-batches take turns in it.
func TestSavedInputsAtOnce(t *testing.T) {
	r := request(900*mib, 4<<30, "groups", "save-inputs")
	r.Options.Groups, r.Options.SaveInputs = 4, "all"
	c, err := choose(t, r)
	if err != nil {
		t.Fatal(err)
	}
	var held, crossed int64
	for _, b := range c.Plan.Buffers {
		if strings.HasSuffix(b.Name, ".saved") {
			held += b.Bytes
		}
	}
	steady := c.Plan.Lists[plan.Steady]
	for _, x := range c.Plan.Tasks[steady.Start:steady.End] {
		if x.Kind == plan.Save {
			crossed += x.Bytes
		}
	}
	if step, once, _ := savedBytes(c); once != held || step != crossed || crossed != 4*held || held == 0 {
		t.Errorf("%d bytes are said to wait on the host, where there is room for %d; %d to cross in a step, and %d do", once, held, step, crossed)
	}
}
