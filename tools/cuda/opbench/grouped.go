//go:build cuda

package main

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/grouped"
)

// groupedProducts times the experts' products at the sizes of a mixture of 16 experts of width
// 1536 over 65,536 routed rows of width 768: once with equal shares, once with three times the
// mean at one expert.
func groupedProducts(m *memory, emulate bool) []bench {
	rows, experts, narrow, wide := 65536, 16, 768, 1536
	if emulate {
		rows, narrow, wide = 512, 64, 128
	}
	var all []bench
	for _, load := range []struct {
		name  string
		first int // shares of expert 0, of as many as there are experts
	}{{"", 1}, {", skewed", 3}} {
		offsets := make([]int32, experts+1)
		big := rows * load.first / experts
		for e := 1; e <= experts; e++ {
			offsets[e] = int32(big + (rows-big)*(e-1)/(experts-1))
		}
		for _, w := range []struct {
			name    string
			in, out int
		}{{"up", narrow, wide}, {"down", wide, narrow}} {
			in, out := w.in, w.out
			flops := 2 * float64(rows) * float64(in) * float64(out)
			name := "grouped " + w.name
			cut := func() (x, y, weight, dw, routing device.Ptr) {
				return m.acts(rows * in), m.acts(rows * out), m.acts(experts * in * out), m.f32(int64(experts * in * out)), m.i32(offsets)
			}
			all = append(all,
				bench{name: name + load.name, flops: flops, setup: func() func(int) {
					x, y, weight, _, routing := cut()
					return func(int) {
						grouped.Forward(m.queue, grouped.ForwardArgs{X: x, Weight: weight, Routing: routing, Y: y, Rows: rows, In: in, Out: out, Experts: experts, Slots: 1})
					}
				}},
				bench{name: name + ", input" + load.name, flops: flops, setup: func() func(int) {
					x, y, weight, _, routing := cut()
					return func(int) {
						grouped.BackwardInput(m.queue, grouped.BackwardInputArgs{DX: x, Weight: weight, Routing: routing, DY: y, Rows: rows, In: in, Out: out, Experts: experts, Slots: 1})
					}
				}},
				bench{name: name + ", weight" + load.name, flops: flops, setup: func() func(int) {
					x, y, _, dw, routing := cut()
					return func(int) {
						grouped.BackwardWeight(m.queue, grouped.BackwardWeightArgs{X: x, DWeight: dw, Routing: routing, DY: y, Rows: rows, In: in, Out: out, Experts: experts, Slots: 1})
					}
				}})
		}
	}
	return all
}
