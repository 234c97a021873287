package main

import (
	"fmt"
	"math"
	"runtime"

	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/compiler/view"
)

// neverBenched is this machine's processor as far as it is known without `mtc bench`: its cores, as
// many as the cpuset and the control groups' quota leave, and what one of them reaches by its
// instruction set, as measured on other machines. Its order of things is right, its length of a step
// is an estimate.
func neverBenched(root string, available int, isa string) *cost.Machine {
	cores := float64(available)
	if quota, _, ok := cpuQuota(root); ok {
		cores = min(cores, quota)
	}
	cores = max(cores, 0.01) // a quota may be any small part of a core
	// GFLOP/s of a core in products and in attention.
	product, attention, words := 3.0, 2.0, "portable code"
	switch isa {
	case "avx512":
		product, attention, words = 140, 45, "AVX-512"
	case "avx2":
		product, attention, words = 60, 25, "AVX2"
	}
	source := fmt.Sprintf("estimated: %s with %s; `mtc bench` measures this machine", coresText(cores), words)
	f := func(x float64) cost.Figure { return cost.Figure{Value: x, Source: source} }
	table := func(rate float64, forms ...string) cost.Table {
		t := cost.Table{Source: source}
		for _, form := range forms {
			t.Points = append(t.Points, cost.Point{Form: form, M: 1024, N: 1024, K: 1024, Rate: rate})
		}
		return t
	}
	m := view.Nominal()
	memory := 10e9 * math.Min(cores, 8) // a core does not fill memory, and eight do
	m.Title = coresText(cores) + " with " + words + ", never measured"
	m.Cores = f(cores)
	m.Rates = map[string]*cost.Rates{"f32": {
		Product: table(product*1e9*cores, "nt", "nn", "tn"), Attention: table(attention*1e9*cores, "forward", "backward"),
		Memory: f(memory), Launch: f(2e-6), Optimizer: f(memory),
	}}
	m.Host.Optimizer, m.Host.Memory, m.Host.Copying = f(memory), f(memory), f(0.75*memory)
	return m
}

func coresText(cores float64) string {
	if cores == 1 {
		return "1 core"
	}
	return fmt.Sprintf("%.4g cores", cores)
}

// thisCPU is this machine's processor where it was never measured.
func thisCPU() *cost.Machine {
	return neverBenched("/", runtime.GOMAXPROCS(0), instructionSet())
}
