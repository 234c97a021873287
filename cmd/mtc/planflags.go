package main

import (
	"fmt"
	"strings"

	"github.com/megatrain/mtc/compiler"
)

// planFlags are the flags that pin a plan's options.
func planFlags(o compiler.Options) string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	add("--placement %s --micro-batch %d --groups %d --recompute %s", o.Placement, o.MicroBatch, o.Groups, quoted(o.Recompute))
	if o.InputEvery > 1 {
		add("--input-every %d", o.InputEvery)
	}
	if o.Placement == "stream" {
		add("--resident %s", quoted(o.Resident))
		for _, x := range []struct {
			flag string
			n    int64
		}{{"slots", o.Slots}, {"grad-slots", o.GradSlots}, {"host-slots", o.HostSlots}} {
			if x.n > 0 && !(x.flag == "host-slots" && x.n == 4) { // 4 is the default
				add("--%s %d", x.flag, x.n)
			}
		}
		if o.DeviceWeights > 0 {
			add("--device-weights %d", o.DeviceWeights)
		}
		if o.GradHome != "host" {
			add("--grad-home %s", o.GradHome)
		}
		if o.GradPrecision != "f32" {
			add("--grad-precision %s", o.GradPrecision)
		}
		if o.SaveInputs != "none" {
			add("--save-inputs %s", o.SaveInputs)
		}
		if o.SaveValues != "" && o.SaveValues != "auto" && o.SaveValues != "none" {
			add("--save-values %s", o.SaveValues)
		}
	}
	return strings.Join(out, " ")
}
