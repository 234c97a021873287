package program

import (
	"errors"
	"reflect"
	"testing"
)

// read records what a model would have read.
type read struct {
	Pos    int
	Tokens []int32
}

func TestWindowGoesOnFromTheLastHalf(t *testing.T) {
	for _, c := range []struct {
		name   string
		seq    int
		prompt []int32
		added  []int32
		want   []read
	}{
		{"room is left", 6, []int32{1, 2}, []int32{3, 4}, []read{{0, []int32{1, 2}}, {2, []int32{3}}, {3, []int32{4}}}},
		{"full twice", 4, []int32{1, 2, 3}, []int32{4, 5, 6, 7, 8}, []read{
			{0, []int32{1, 2, 3}}, {3, []int32{4}}, {0, []int32{4, 5}}, {2, []int32{6}}, {3, []int32{7}}, {0, []int32{7, 8}},
		}},
		{"the prompt fills it", 3, []int32{1, 2, 3}, []int32{4, 5}, []read{{0, []int32{1, 2, 3}}, {0, []int32{4}}, {1, []int32{5}}}},
		{"one position", 1, []int32{1}, []int32{2, 3}, []read{{0, []int32{1}}, {0, []int32{2}}, {0, []int32{3}}}},
	} {
		var got []read
		w := &window{seq: c.seq, infer: func(tokens []int32, pos int) ([]float32, error) {
			got = append(got, read{pos, append([]int32(nil), tokens...)})
			return nil, nil
		}}
		if _, err := w.add(c.prompt...); err != nil {
			t.Fatal(err)
		}
		for _, token := range c.added {
			if _, err := w.add(token); err != nil {
				t.Fatal(err)
			}
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: read %v, want %v", c.name, got, c.want)
		}
	}
	want := errors.New("no")
	w := &window{seq: 2, infer: func([]int32, int) ([]float32, error) { return nil, want }}
	if _, err := w.add(1); !errors.Is(err, want) {
		t.Errorf("error %v", err)
	}
}
