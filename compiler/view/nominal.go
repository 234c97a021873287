package view

import "github.com/megatrain/mtc/compiler/cost"

// Nominal is a processor of no particular make, for a look at a schedule on a machine that was
// never measured: which lane waits for which is right, how long a step takes is not.
func Nominal() *cost.Machine {
	f := func(x float64) cost.Figure {
		return cost.Figure{Value: x, Source: "nominal: `mtc bench` measures this machine"}
	}
	table := func(rate float64, forms ...string) cost.Table {
		t := cost.Table{Source: "nominal"}
		for _, form := range forms {
			t.Points = append(t.Points, cost.Point{Form: form, M: 1024, N: 1024, K: 1024, Rate: rate})
		}
		return t
	}
	return &cost.Machine{
		Name: "a nominal cpu", Title: "8 cores, never measured", Target: "cpu",
		DeviceMemory: f(16 << 30), HostMemory: f(16 << 30), Cores: f(8),
		Rates: map[string]*cost.Rates{"f32": {
			Product: table(200e9, "nt", "nn", "tn"), Attention: table(100e9, "forward", "backward"),
			Memory: f(20e9), Launch: f(2e-6), Optimizer: f(20e9),
		}},
		Link: cost.Link{H2D: f(10e9), D2H: f(10e9), Both: f(8e9), Updating: f(6e9), Latency: f(2e-6)},
		Host: cost.Host{Optimizer: f(20e9), Copying: f(15e9), Memory: f(20e9), FirstTouch: f(2e9)},
		Disk: cost.Disk{Read: f(1e9), Write: f(1e9)},
	}
}
