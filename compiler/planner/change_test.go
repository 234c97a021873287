package planner

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
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
			if short.over() <= 0 {
				t.Errorf("it is short of nothing: %v, %+v", short, short.Options)
			}
			if short.More != "" {
				if _, err := choose(t, larger(t, r, short.More)); err != nil {
					t.Errorf("with %s it does not fit either: %v", short.More, err)
				}
			}
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

// larger is a request with as much of a memory as it is said to fit into.
func larger(t *testing.T, r Request, more string) Request {
	t.Helper()
	var n float64
	var unit, memory string
	if _, err := fmt.Sscanf(more, "%g %s of %s memory", &n, &unit, &memory); err != nil {
		t.Fatalf("%q: %v", more, err)
	}
	bytes := int64(n*1.005*map[string]float64{"MiB": 1 << 20, "GiB": 1 << 30}[unit]) + 1 // it is said with three digits
	if memory == "host" {
		r.Host = bytes
	} else {
		r.Device = bytes
	}
	return r
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
