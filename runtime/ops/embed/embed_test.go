package embed

import (
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/optest"
	"github.com/megatrain/mtc/runtime/tensor"
)

func TestEmbed(t *testing.T) {
	ids := []tensor.Type{optest.Ids()}
	attr := func(rows, dim int64) map[string]op.Value {
		return map[string]op.Value{"rows": *op.IntValue(rows), "dim": {Kind: op.VInt, Int: dim, Dim: "D"}}
	}
	optest.Run(t, optest.Case{
		Def:   Def,
		Funcs: map[string]any{"Forward": Forward, "BackwardWeight": BackwardWeight},
		Good: []optest.Good{{
			Name: "tokens", In: ids, Attr: attr(5, 10), Out: "[B, T, D = 10]", Batch: 2, Seq: 3,
			Cost: map[string]op.Cost{
				"Forward":        {Bytes: 6*4 + 2*240},                   // ids, the six rows, y
				"BackwardWeight": {FLOPs: 60, Bytes: 6*4 + 240 + 5*10*4}, // ids, dy, the table
			},
			Ref: func(v optest.Values) []float64 {
				var y []float64
				for _, id := range v.I["ids"] {
					y = append(y, v.F["weight"][id*10:id*10+10]...)
				}
				return y
			},
		}},
		Wide: []optest.Good{
			{Name: "long runs", In: ids, Attr: attr(3, 40), Batch: 1, Seq: 700},
			{Name: "one run", In: ids, Attr: attr(1, 8), Batch: 1, Seq: 200},
			{Name: "two passes", In: ids, Attr: attr(700, 24), Batch: 3, Seq: 350},
			{Name: "odd", In: ids, Attr: attr(9, 19), Batch: 2, Seq: 99},
			{Name: "wide", In: ids, Attr: attr(5, 2304), Batch: 1, Seq: 70},
			{Name: "three passes", In: ids, Attr: attr(1<<18+3, 8), Batch: 1, Seq: 600},
			{Name: "more rows than one block sorts", In: ids, Attr: attr(700, 8), Batch: 1, Seq: sortRows + 809},
			{Name: "three passes over more rows", In: ids, Attr: attr(1<<18+3, 8), Batch: 1, Seq: sortRows + 1},
			{Name: "as many as one block sorts", In: ids, Attr: attr(1<<9+1, 8), Batch: 1, Seq: sortRows},
		},
		Bad: []optest.Bad{
			{Name: "an activation", In: []tensor.Type{optest.F32(10)}, Attr: attr(5, 10), Arg: "ids", Want: "i32[B, T], got [B, T, D = 10]"},
			{Name: "no rows", In: ids, Attr: attr(0, 10), Arg: "rows", Want: "positive"},
			{Name: "no width", In: ids, Attr: attr(5, -1), Arg: "dim", Want: "positive"},
			{Name: "a table beyond memory", In: ids, Attr: attr(1<<40, 1<<40), Arg: "rows", Want: "2^60"},
		},
	})
}

// TestIdOutside: an id that the table lacks stops the run by name.
func TestIdOutside(t *testing.T) {
	for _, id := range []int32{-1, 5} {
		m := optest.NewMachine(t, 2)
		weight, y := m.Bytes(5*10*4), m.Bytes(2*10*4)
		Forward(m.Queue, ForwardArgs{Ids: m.I32(0, id), Weight: weight, Y: y, Rows: 2, V: 5, D: 10})
		err := m.Err()
		if err == nil || !strings.Contains(err.Error(), "outside of a table of 5 rows") {
			t.Errorf("id %d: %v", id, err)
		}
	}
}
