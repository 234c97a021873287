package plan

import (
	"reflect"
	"testing"
)

func TestExpand(t *testing.T) {
	got := Expand([]Run[Task]{
		{Times: 1, First: []Task{{ID: 7, Kind: Update}}},
		{Times: 3, First: []Task{
			{ID: 8, Kind: Compute, Micro: 0, Reads: []BufID{1, 9}, Bind: Bind{In: []BufID{9}, Saved: 4, Add: []bool{true}}},
			{ID: 9, Kind: Compute, Waits: []Wait{{Event: 2, Back: 1}}},
		}, Step: []Task{
			{ID: 2, Micro: 1, Reads: []BufID{0, 3}, Bind: Bind{In: []BufID{3}, Saved: 1}},
			{ID: 2},
		}},
	})
	want := []Task{{ID: 7, Kind: Update}}
	for k := range 3 {
		n := BufID(k)
		want = append(want,
			Task{ID: 8 + 2*k, Kind: Compute, Micro: k, Reads: []BufID{1, 9 + 3*n}, Bind: Bind{In: []BufID{9 + 3*n}, Saved: 4 + n, Add: []bool{true}}},
			Task{ID: 9 + 2*k, Kind: Compute, Waits: []Wait{{Event: 2, Back: 1}}})
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestExpandNames(t *testing.T) {
	got := Expand([]Run[Buffer]{{Times: 3, First: []Buffer{{Name: "layer[2].out.micro[9]", Off: 64}}, Step: []Buffer{{Name: "+1", Off: 32}}}})
	want := []Buffer{{Name: "layer[2].out.micro[9]", Off: 64}, {Name: "layer[2].out.micro[10]", Off: 96}, {Name: "layer[2].out.micro[11]", Off: 128}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestLastNumber(t *testing.T) {
	for _, c := range []struct {
		name, before string
		n            int64
		after        string
	}{
		{"layer[3].out", "layer[", 3, "].out"},
		{"a1b22c", "a1b", 22, "c"},
		{"none", "none", 0, ""},
		{"", "", 0, ""},
		{"007", "", 7, ""},
		{"x99999999999999999999", "x99", 999999999999999999, ""},
	} {
		before, n, after := LastNumber(c.name)
		if before != c.before || n != c.n || after != c.after {
			t.Errorf("%q: %q %d %q", c.name, before, n, after)
		}
	}
}
