package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"sort"
	"time"

	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/compiler/view"
	"github.com/megatrain/mtc/runtime/bench"
	"github.com/megatrain/mtc/runtime/fold"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/telemetry"
)

// profileOf makes a profile of what was measured: the first result says all, further ones add
// the rates of their precision.
func profileOf(results []*bench.Result, now time.Time) *cost.Machine {
	r := results[0]
	source := fmt.Sprintf("measured %s by `mtc bench`", now.Format("2006-01-02"))
	f := func(x float64) cost.Figure { return cost.Figure{Value: x, Source: source} }
	m := &cost.Machine{
		Name: cost.This, Title: r.Device, Target: r.Target,
		DeviceMemory: f(float64(r.DeviceMemory)), HostMemory: f(float64(r.HostMemory)), Cores: f(float64(r.Cores)),
		Rates: map[string]*cost.Rates{},
		Link:  cost.Link{H2D: f(r.H2D), D2H: f(r.D2H), Both: f(min(r.Both, r.H2D, r.D2H)), Updating: f(min(r.Updating, r.Both)), Latency: f(r.Latency)},
		Host: cost.Host{
			Optimizer: f(r.Optimizer), Copying: f(min(r.Copying, r.Optimizer)), Memory: f(r.Memory), FirstTouch: f(r.FirstTouch),
		},
		Disk: cost.Disk{Read: f(r.DiskRead), Write: f(r.DiskWrite)},
	}
	if r.DiskFault != "" {
		m.Disk.Read.Source = "not measured: " + r.DiskFault
		m.Disk.Write.Source = m.Disk.Read.Source
	}
	for _, t := range r.Threads {
		m.Host.Threads = append(m.Host.Threads, cost.Threads{Threads: int64(t.Threads), Rate: t.Rate})
	}
	for _, r := range results {
		m.Rates[r.Precision] = ratesOf(r, source)
		m.Load = cmp.Or(m.Load, r.Load)
	}
	return m
}

// ratesOf sorts what was measured of kernels into tables.
func ratesOf(r *bench.Result, source string) *cost.Rates {
	out := &cost.Rates{
		Product: cost.Table{Source: source}, Attention: cost.Table{Source: source},
		Kernels: map[string]cost.Curve{}, Launch: cost.Figure{Value: r.Launch, Source: source},
	}
	var most bench.Kernel // the product that ran for long
	for _, k := range r.Kernels {
		if k.Shape.Class == op.Product && k.FLOPs > most.FLOPs {
			most = k
		}
	}
	if r.Sustained > 0 && most.FLOPs > 0 {
		if keep := r.Sustained * most.Seconds / float64(most.FLOPs); keep < 1 {
			out.Sustained = cost.Figure{Value: keep, Source: source}
		}
	}
	largest := map[string]int64{}
	for _, k := range r.Kernels {
		p := cost.Point{Form: k.Shape.Form, M: k.Shape.M, N: k.Shape.N, K: k.Shape.K, Rate: float64(k.FLOPs) / k.Seconds}
		switch k.Shape.Class {
		case op.Product:
			out.Product.Points = append(out.Product.Points, p)
			continue
		case op.Attending:
			out.Attention.Points = append(out.Attention.Points, p)
			continue
		}
		c := out.Kernels[k.Name]
		c.Source = source
		rate := float64(k.Bytes) / k.Seconds
		at := sort.Search(len(c.Points), func(i int) bool { return c.Points[i].Bytes >= k.Bytes })
		if at < len(c.Points) && c.Points[at].Bytes == k.Bytes {
			c.Points[at].Rate = max(c.Points[at].Rate, rate)
		} else {
			c.Points = slices.Insert(c.Points, at, cost.Size{Bytes: k.Bytes, Rate: rate})
		}
		out.Kernels[k.Name] = c
		if k.Name == "add.Forward" && k.Bytes > largest[k.Name] {
			largest[k.Name], out.Memory = k.Bytes, cost.Figure{Value: rate, Source: source}
		}
		if k.Name == "update" && k.Bytes > largest[k.Name] {
			largest[k.Name], out.Optimizer = k.Bytes, cost.Figure{Value: rate, Source: source}
		}
	}
	return out
}

// writeProfile prints the figures that matter most.
func writeProfile(w io.Writer, m *cost.Machine) {
	const left = 15
	row := func(name, format string, args ...any) {
		for i, line := range fold.Wrap(fmt.Sprintf(format, args...), fold.Width-left) {
			fmt.Fprintf(w, "  %-*s %s\n", left-3, []string{name, ""}[min(i, 1)], line)
		}
	}
	fmt.Fprintf(w, "%s (%s): %s\n", m.Name, m.Target, m.Title)
	row("memory", "%s device, %s host, %d cores", telemetry.Bytes(int64(m.DeviceMemory.Value)), telemetry.Bytes(int64(m.HostMemory.Value)), int(m.Cores.Value))
	for _, precision := range []string{"bf16", "f32"} {
		r := m.Rates[precision]
		if r == nil {
			continue
		}
		lo, hi := rateRange(r.Product)
		row(precision, "products %s to %s", view.Rate(lo, "FLOP/s"), view.Rate(hi, "FLOP/s"))
		lo, hi = rateRange(r.Attention)
		row("", "attention %s to %s, memory %s, a launch %s", view.Rate(lo, "FLOP/s"), view.Rate(hi, "FLOP/s"), view.Rate(r.Memory.Value, "B/s"), view.Seconds(r.Launch.Value))
	}
	rate := func(f cost.Figure) string { return view.Rate(f.Value, "B/s") }
	row("copies", "%s up, %s down, %s each at once, %s beside the optimizer",
		rate(m.Link.H2D), rate(m.Link.D2H), rate(m.Link.Both), rate(m.Link.Updating))
	row("optimizer", "%s, %s beside copies (28 bytes a parameter)", rate(m.Host.Optimizer), rate(m.Host.Copying))
	if m.Disk.Write.Value > 0 {
		row("disk", "%s read, %s written", rate(m.Disk.Read), rate(m.Disk.Write))
	} else {
		row("disk", "%s", m.Disk.Write.Source)
	}
	row("from", "%s", m.Link.H2D.Source)
	if m.Load != "" {
		row("warning", "%s while it was measured: its figures are too low; run `mtc bench` again when the machine is idle", m.Load)
	}
}

// rateRange are the smallest and the largest rate of a table.
func rateRange(t cost.Table) (lo, hi float64) {
	for i, p := range t.Points {
		if i == 0 || p.Rate < lo {
			lo = p.Rate
		}
		hi = max(hi, p.Rate)
	}
	return lo, hi
}
