// Package finite is the room of the check that `--check-nan` puts behind every launch: that
// each number of a value is finite. It reads and writes nothing else. The first value that is
// not stops the run with NonFinite, which says what it is and which line of the model made it.
// A check also makes a sum of the value's bits, which Watch gets, so that two runs can be compared
// value by value.
package finite

import (
	"fmt"
	"sync"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/tensor"
)

// Def declares the check; a pass of the compiler inserts it, no model writes it.
var Def = &op.Def{
	Name:    "finite",
	Doc:     "stops the run where x has a value that is not finite",
	Formula: "x",
	Hidden:  true,
	Params:  []op.Param{{Name: "x", Kind: op.Tensor, Doc: "[Rows, D]"}},
	Infer:   op.Elementwise,
	Forward: op.Launch{Func: "Check", Reads: []string{"x"}, Cost: func(*op.Call, op.Sizes) op.Cost { return op.Cost{} }},
}

// Call is a check of a value with width elements a row that lie pitch apart, of the element type
// t, of what op made at line; with rows false the value has one row, whatever a function runs over.
func Call(rows bool, width, pitch int64, t tensor.DType, what, value, line string) *op.Call {
	r := op.RowsConst()
	if !rows {
		r = op.IntConst("Rows", 1)
	}
	text := func(field, s string) op.Const { return op.Const{Field: field, Kind: op.CString, Str: s} }
	c := &op.Call{Def: Def, Out: tensor.Type{DType: t}, Consts: []op.Const{r, op.IntConst("D", width)}}
	if pitch != width {
		c.Consts = append(c.Consts, op.IntConst("Pitch", pitch))
	}
	if t == tensor.BF16 {
		c.Consts = append(c.Consts, op.BoolConst("Half", true))
	}
	c.Consts = append(c.Consts, text("Op", what), text("Value", value), text("Line", line))
	return c
}

// CheckArgs are the arguments of Check.
type CheckArgs struct {
	X       device.Ptr // [Rows, D]
	Rows, D int
	Pitch   int    // elements from row to row, 0: D
	Half    bool   // bf16, else f32
	Op      string // what made it: "silu", "backward of linear", "weight"
	Value   string // its name in the block
	Line    string // "nano.mt:12"
}

// NonFinite is a value that is not finite.
type NonFinite struct {
	Op, Value, Line string
	Row, Column     int64
	Number          float32
}

func (e *NonFinite) Error() string {
	return fmt.Sprintf("%s of `%s` at %s is %v in row %d, column %d", e.Value, e.Op, e.Line, e.Number, e.Row, e.Column)
}

// places are the texts of checks by number, since a launch carries numbers only.
var places struct {
	sync.Mutex
	list []CheckArgs
	at   map[CheckArgs]int64
}

func place(a CheckArgs) int64 {
	key := CheckArgs{Op: a.Op, Value: a.Value, Line: a.Line}
	places.Lock()
	defer places.Unlock()
	n, ok := places.at[key]
	if !ok {
		if places.at == nil {
			places.at = map[CheckArgs]int64{}
		}
		n = int64(len(places.list))
		places.list = append(places.list, key)
		places.at[key] = n
	}
	return n
}

var check = device.Kernel{Name: "finite.check", CPU: checkCPU, CUDA: checkCUDA, Tagged: true, Report: report}

// Check looks at X.
func Check(q device.Queue, a CheckArgs) {
	pitch, half := max(a.Pitch, a.D), int64(0)
	if a.Half {
		half = 1
	}
	q.Launch(&check, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.X},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.D), place(a), int64(pitch), half},
	})
}
