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
	add("--placement %s --micro-batch %d --groups %d --recompute %s", o.Placement, o.MicroBatch, o.Groups, o.Recompute)
	if o.Placement == "stream" {
		add("--resident %s", o.Resident)
		if o.Slots == 1 || o.GradSlots == 1 {
			add("--slots %d --grad-slots %d --host-slots %d", o.Slots, o.GradSlots, o.HostSlots)
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
	}
	return strings.Join(out, " ")
}
