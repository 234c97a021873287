package schedule

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/plan"
)

// show prints everything there is to print of a file.
func show(f *File) {
	f.WriteHead(io.Discard)
	f.WriteKinds(io.Discard, "steady")
	_, _ = f.Plan() // not every file that can be shown is that of a plan
	f.WriteMemory(io.Discard, true)
	for _, l := range []string{"first", "steady", "drain"} {
		f.WriteList(io.Discard, l)
	}
	for _, id := range []int{-1, 0, len(f.Tasks) - 1, len(f.Tasks)} {
		_ = f.WriteTask(io.Discard, id) // an unknown task is an error of the caller
	}
}

// TestParseChecks: what is no schedule is refused with the reason, and nothing that is taken
// makes the views fail.
func TestParseChecks(t *testing.T) {
	good, err := json.Marshal(bigToy(Options{Placement: Stream}, false))
	if err != nil {
		t.Fatal(err)
	}
	if f, err := Parse(good); err != nil {
		t.Fatal(err)
	} else {
		show(f)
	}
	change := func(edit func(*File)) string {
		f, err := Parse(good)
		if err != nil {
			t.Fatal(err)
		}
		edit(f)
		text, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, c := range []struct{ text, want string }{
		{"", "unexpected end"}, {"{}", "line 1, column 1: the text has no `model`"}, {"null", "the text is null"}, {"[]", "line 1, column 1: the text is a list, not an object"},
		{`{"model": "m"}`, "has no `params`"},
		{change(func(f *File) { f.Model = "" }), "line 1, column 10: it names no model"},
		{change(func(f *File) { f.Tasks = nil }), "it has no tasks"},
		{change(func(f *File) { f.Lanes = append(f.Lanes, "slow") }), `there is no lane "slow"`},
		{change(func(f *File) { f.Lanes = nil }), "on the lane"},
		{change(func(f *File) { f.Work = nil }), "work"},
		{change(func(f *File) { f.Work.Funcs = f.Work.Funcs[1:] }), "its work is of"},
		{change(func(f *File) { f.Work.Funcs[0][plan.Forward] = nil }), "of which `work` says nothing"},
		{change(func(f *File) { f.Work.Funcs[0][plan.Forward][0].FLOPs = 1 << 40 }), "and what it launches has"},
		{change(func(f *File) { f.Params++ }), "its slabs have"},
		{change(func(f *File) { f.Trained = 7 }), "0 of its slabs learn"},
		{change(func(f *File) { f.Memory.DevicePeak++ }), "bytes are in its arenas"},
		{change(func(f *File) { f.Memory.Runtime++ }), "and its runtime"},
		{change(func(f *File) { f.Memory.Arenas[0].Holds[0].Bytes++ }), "and its buffers are"},
		{change(func(f *File) { f.Memory.Arenas[0].Holds = nil }), "says nothing"},
		{change(func(f *File) { f.Buffers[0].Bytes = 0 }), "has 0 bytes"},
		{change(func(f *File) { f.Buffers[0].Bytes-- }), "and its buffers are"},
		{change(func(f *File) { f.Buffers[1].Name = f.Buffers[0].Name }), "is there twice"},
		{change(func(f *File) { f.Params = -1 }), "column 25: params is -1"},
		{change(func(f *File) { f.Rows = 0 }), "micro-batches of 0 rows"},
		{change(func(f *File) { f.Seq = 0 }), "of 0 tokens"},
		{change(func(f *File) { f.Model = "m\x1b[31m" }), "a terminal acts on"},
		{change(func(f *File) { f.Planned = &Planned{Machine: "h200\x07"} }), "a terminal acts on"},
		{change(func(f *File) { f.Groups = f.Micros + 1 }), "groups"},
		{change(func(f *File) { f.Batch *= 1 << 20 }), "column 141: batch is "},
		{change(func(f *File) { f.Batch, f.Rows = f.Batch<<20, f.Rows<<20 }), "bytes, and "},
		{change(func(f *File) { f.Batch, f.Micros = f.Batch*2, f.Micros*2 }), "that have a loss"},
		{change(func(f *File) { f.Seq *= 3 }), "tokens take "},
		{change(func(f *File) { f.Prefill = f.Seq + 1 }), "positions of a row"},
		{change(func(f *File) { f.Slots = 0 }), "buffers for slots"},
		{change(func(f *File) { f.Slots = 1 << 40 }), "buffers for slots"},
		{change(func(f *File) { f.GradSlots = 1 << 40 }), "buffers for slots"},
		{change(func(f *File) { f.SavedInputs = 100000 }), "saved_inputs is 100000"},
		{change(func(f *File) { f.SavedLayers = 1000 }), "saved_layers is 1000"},
		{change(func(f *File) { f.DeviceGrads = 1000 }), "device_grads is 1000"},
		{change(func(f *File) { f.Slabs[0].Params = 1 << 40 }), "parameters of "},
		{change(func(f *File) { f.Tasks[3].Micro = 77 }), "of the micro-batch 77"},
		{change(func(f *File) { f.Tasks[3].Micro = -2 }), "of the micro-batch -2"},
		{change(func(f *File) { f.Tasks[3].Layer = 1 << 40 }), "of the layer 1099511627776"},
		{change(func(f *File) { f.Work.Funcs[0][plan.Forward][0].Shape.M = -5 }), "is of -5 by "},
		{change(func(f *File) { f.Work.Funcs[0][plan.Forward][0].Shape.Count = 1 << 60 }), "times, of class"},
		{change(func(f *File) { f.Work.Funcs[0][plan.Forward][0].Grad = -1 }), "makes gradient -1"},
		{change(func(f *File) { f.Memory.Arenas[0].Bytes = 1 << 62 }), "arena"},
		{change(func(f *File) { f.Memory.Arenas[0].Holds[0].Buffers = -1 }), "-1 buffers"},
		{change(func(f *File) { f.Tasks[3].ID = 4 }), "task 3 is out of place"},
		{change(func(f *File) { f.Tasks[3].List = "last" }), `the list "last"`},
		{change(func(f *File) { f.Tasks[3].Kind, f.Tasks[3].Func = "rest", "" }), `does "rest"`},
		{change(func(f *File) { f.Tasks[3].Bytes = -1 }), "-1 bytes"},
		{change(func(f *File) { f.Tasks[3].Waits = []FileWait{{Task: len(f.Tasks)}} }), "waits for one"},
		{change(func(f *File) {
			for i := range f.Tasks {
				if f.Tasks[i].List == "first" {
					f.Tasks[i].List = "drain"
				}
			}
		}), "the list first has no tasks"},
	} {
		if _, err := Parse([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s: %v, want %q", c.text, err, c.want)
		}
	}
}

// FuzzParse: whatever the bytes, reading and showing them does not fail.
func FuzzParse(f *testing.F) {
	good, err := json.Marshal(bigToy(Options{}, true))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte("{}"))
	f.Add([]byte(`{"model":"m","lanes":["compute"],"tasks":[{"list":"first","kind":"feed","lane":"compute"},{"id":1,"list":"steady","kind":"feed","lane":"compute","step":-7,"micro":-9,"waits":[{"task":0,"back":1},{"task":1}]}]}`))
	f.Fuzz(func(_ *testing.T, text []byte) {
		if len(text) > 1<<16 {
			return
		}
		if s, err := Parse(text); err == nil {
			show(s)
		}
	})
}
