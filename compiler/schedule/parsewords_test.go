package schedule

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestParseWords: a word that no schedule has there, and slabs, routers and buffers that no memory
// has, are refused by name.
func TestParseWords(t *testing.T) {
	good, err := json.Marshal(bigToy(Options{Placement: Stream}, false))
	if err != nil {
		t.Fatal(err)
	}
	router := FileRouter{Name: "layer[0].moe", Kind: "topk", Experts: 8, Mean: 2, Slots: 2}
	for _, c := range []struct {
		edit func(f *File)
		want string // "": it is taken
	}{
		{func(f *File) {}, ""},
		{func(f *File) { f.Routers = []FileRouter{router} }, ""},
		{func(f *File) { f.Placement = "nowhere" }, `placement is "nowhere", and can be "resident" or "stream"`},
		{func(f *File) { f.Target = "tpu" }, `target is "tpu"`},
		{func(f *File) { f.Precision = "f8" }, `precision is "f8"`},
		{func(f *File) { f.GradPrecision = "f16" }, `grad_precision is "f16"`},
		{func(f *File) { router := router; router.Experts = 0; f.Routers = []FileRouter{router} }, "routers[0].experts is 0"},
		{func(f *File) { router := router; router.Kind = "bottomk"; f.Routers = []FileRouter{router} }, `routers[0].kind is "bottomk"`},
		{func(f *File) { router := router; router.Mean = 9; f.Routers = []FileRouter{router} }, "routers[0].mean is 9"},
		{func(f *File) { router := router; router.Slots = -2; f.Routers = []FileRouter{router} }, "-2 slots"},
		{func(f *File) { f.Memory.Arenas[0].Memory = "moon" }, `"moon"`},
		{func(f *File) { f.Memory.Arenas = append(f.Memory.Arenas, f.Memory.Arenas[0]) }, "is there twice"},
		{func(f *File) { f.Slabs[0].Elems = -1 }, "has -1 elements"},
		{func(f *File) { f.Slabs[0].Decayed = f.Slabs[0].Elems + 1 }, "of which"},
		{func(f *File) { f.Buffers[0].Arena = "attic" }, `the arena "attic", which does not exist`},
		{func(f *File) { f.Buffers[0].Off = -8 }, "at -8"},
		{func(f *File) { f.Buffers[0].Bytes = 1 << 40 }, "ends at byte"},
		{func(f *File) { f.Buffers[0].Copies = 0 }, "in 0 copies"},
		{func(f *File) { f.Tasks[0].Reads = append(f.Tasks[0].Reads, "none") }, `the buffer "none", which does not exist`},
	} {
		f, err := Parse(good)
		if err != nil {
			t.Fatal(err)
		}
		c.edit(f)
		text, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		switch _, err := Parse(text); {
		case c.want == "" && err != nil:
			t.Errorf("a whole one: %v", err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "line 1, column ")):
			t.Errorf("got %v, wanted %q", err, c.want)
		}
	}
}
