package e2e

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/lang/diag"
)

// The `weights hf` map of each family names exactly the tensors that transformers stores, and
// what it does to them gives the parameters' shapes.
func TestWeightsMapsCoverTransformers(t *testing.T) {
	for _, name := range fixtureNames(t) {
		t.Run(name, func(t *testing.T) {
			var diags diag.List
			res, err := compiler.Check(context.Background(), compiler.Options{Path: fixturePath(name, ".mt")}, &diags)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(res.Model.Maps, func(m *ir.WeightMap) bool { return m.Name == "hf" })
			if i < 0 {
				t.Fatal("no map hf")
			}
			foreign := openFixture(t, name).about.HF
			for _, e := range res.Model.Maps[i].Entries {
				checkEntry(t, &e, foreign)
			}
			for left := range foreign {
				t.Errorf("the map has no %s", left)
			}
		})
	}
}

// checkEntry takes the entry's foreign tensors out of those that are left, and checks shapes.
func checkEntry(t *testing.T, e *ir.WeightMapEntry, foreign map[string][]int64) {
	t.Helper()
	var rows, want int64
	var rest []int64
	for _, n := range e.Names {
		shape, ok := foreign[n]
		if !ok {
			t.Errorf("%s: transformers has no such tensor, or it is named twice", n)
			return
		}
		delete(foreign, n)
		if e.Op == "transpose" || e.Op == "split(transpose" {
			shape = slices.Clone(shape)
			slices.Reverse(shape)
		}
		rows += shape[0]
		rest = shape[1:]
	}
	for _, p := range e.Targets {
		want += p.Shape[0].N
		var other []int64
		for _, d := range p.Shape[1:] {
			other = append(other, d.N)
		}
		if !slices.Equal(other, rest) {
			t.Errorf("%v: %s is %s, the foreign rows are %v", e.Names, p.Path, p.Shape, rest)
		}
	}
	if rows != want {
		text, _ := json.Marshal(e.Names)
		t.Errorf("%s have %d rows, their targets %d", text, rows, want)
	}
}
