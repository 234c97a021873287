package moe_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/add"
	"github.com/megatrain/mtc/runtime/ops/all"
	opcopy "github.com/megatrain/mtc/runtime/ops/copy"
	"github.com/megatrain/mtc/runtime/ops/gelu"
	"github.com/megatrain/mtc/runtime/ops/mul"
	"github.com/megatrain/mtc/runtime/ops/optest"
	"github.com/megatrain/mtc/runtime/ops/relu"
	"github.com/megatrain/mtc/runtime/ops/relu2"
	"github.com/megatrain/mtc/runtime/ops/scale"
	"github.com/megatrain/mtc/runtime/ops/sigmoid"
	"github.com/megatrain/mtc/runtime/ops/silu"
	"github.com/megatrain/mtc/runtime/ops/softcap"
	"github.com/megatrain/mtc/runtime/ops/sub"
	"github.com/megatrain/mtc/runtime/ops/swiglu"
)

// raggedLaunches are the launchers of the ops on single elements that take a routing, by op.
var raggedLaunches = map[string][]any{
	"add": {add.Forward}, "sub": {sub.Forward, sub.BackwardA, sub.BackwardB}, "mul": {mul.Forward, mul.BackwardA, mul.BackwardB},
	"scale": {scale.Forward, scale.Backward}, "silu": {silu.Forward, silu.Backward}, "gelu": {gelu.Forward, gelu.Backward},
	"relu": {relu.Forward, relu.Backward}, "relu2": {relu2.Forward, relu2.Backward}, "sigmoid": {sigmoid.Forward, sigmoid.Backward},
	"softcap": {softcap.Forward, softcap.Backward}, "swiglu": {swiglu.Forward, swiglu.Backward}, "copy": {opcopy.Forward},
}

// raggedRun runs a launcher over n tokens of slots rows of width elements, with memory drawn anew, and
// returns its operands. A gradient is added to in place. used < 0: all rows.
func raggedRun(m *optest.Machine, f any, n, slots, width, used int) (out [][]float32) {
	const experts = 3
	fn := reflect.ValueOf(f)
	args := reflect.New(fn.Type().In(1)).Elem()
	rnd := rand.New(rand.NewPCG(9, 9))
	elems := n * slots * width
	at := map[string]device.Ptr{}
	var order []device.Ptr
	for i := range args.NumField() {
		name, field := args.Type().Field(i).Name, args.Field(i)
		switch {
		case name == "Routing":
			if used >= 0 {
				field.Set(reflect.ValueOf(m.I32(0, 1, 2, int32(used))))
			}
		case name == "Rows":
			field.SetInt(int64(n))
		case name == "D":
			field.SetInt(int64(slots * width))
		case name == "Experts":
			field.SetInt(experts)
		case name == "Slots":
			field.SetInt(int64(slots))
		case field.Kind() == reflect.Float32:
			field.SetFloat(1.5)
		case field.Type() == reflect.TypeFor[device.Ptr]():
			key := strings.TrimPrefix(name, "Add")
			if _, ok := at[key]; !ok || len(key) < 2 {
				v := make([]float32, elems)
				for i := range v {
					v[i] = optest.RoundBF16([]float32{float32(rnd.NormFloat64())})[0]
				}
				at[key] = m.Act(v...)
				order = append(order, at[key])
			}
			field.Set(reflect.ValueOf(at[key]))
		}
	}
	fn.Call([]reflect.Value{reflect.ValueOf(m.Queue), args})
	m.Sync()
	for _, p := range order {
		out = append(out, m.ReadAct(p, int64(elems)))
	}
	return out
}

// inUseEqualsAll checks that rows in use have the bits that a launch over all rows gives them, and that
// the others are not touched.
func inUseEqualsAll(t *testing.T, machine func(*testing.T) *optest.Machine) {
	for _, d := range all.All() {
		if d.Ragged != (raggedLaunches[d.Name] != nil) {
			t.Errorf("%s: its launchers take a routing: %v", d.Name, d.Ragged)
		}
	}
	for name, list := range raggedLaunches {
		for i, f := range list {
			t.Run(fmt.Sprintf("%s %d", name, i), func(t *testing.T) { // so that its machines are closed with it
				for _, s := range []struct{ n, slots, width int }{{40, 2, 8}, {700, 3, 8}, {30, 2, 7}} {
					before := raggedRun(machine(t), f, s.n, s.slots, s.width, 0)
					whole := raggedRun(machine(t), f, s.n, s.slots, s.width, -1)
					for _, used := range []int{0, 1, s.n*s.slots - 3, s.n * s.slots, s.n} {
						got := raggedRun(machine(t), f, s.n, s.slots, s.width, used)
						for k := range got {
							at := used * s.width
							if !slices.Equal(got[k][:at], whole[k][:at]) || !slices.Equal(got[k][at:], before[k][at:]) {
								t.Errorf("%s: operand %d is not what it should be", fmt.Sprint(s, used), k)
							}
						}
					}
				}
			})
		}
	}
}

func TestRowsInUse(t *testing.T) {
	inUseEqualsAll(t, func(t *testing.T) *optest.Machine { return optest.NewMachine(t, 2) })
}
