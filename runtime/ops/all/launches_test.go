package all

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/add"
	"github.com/megatrain/mtc/runtime/ops/attention"
	"github.com/megatrain/mtc/runtime/ops/copy"
	"github.com/megatrain/mtc/runtime/ops/crossentropy"
	"github.com/megatrain/mtc/runtime/ops/embed"
	"github.com/megatrain/mtc/runtime/ops/fill"
	"github.com/megatrain/mtc/runtime/ops/finite"
	"github.com/megatrain/mtc/runtime/ops/gelu"
	"github.com/megatrain/mtc/runtime/ops/grouped"
	"github.com/megatrain/mtc/runtime/ops/layernorm"
	"github.com/megatrain/mtc/runtime/ops/linear"
	"github.com/megatrain/mtc/runtime/ops/moe"
	"github.com/megatrain/mtc/runtime/ops/mul"
	"github.com/megatrain/mtc/runtime/ops/qkrope"
	"github.com/megatrain/mtc/runtime/ops/relu"
	"github.com/megatrain/mtc/runtime/ops/relu2"
	"github.com/megatrain/mtc/runtime/ops/rmsnorm"
	"github.com/megatrain/mtc/runtime/ops/rope"
	"github.com/megatrain/mtc/runtime/ops/scale"
	"github.com/megatrain/mtc/runtime/ops/sigmoid"
	"github.com/megatrain/mtc/runtime/ops/silu"
	"github.com/megatrain/mtc/runtime/ops/softcap"
	"github.com/megatrain/mtc/runtime/ops/squares"
	"github.com/megatrain/mtc/runtime/ops/sub"
	"github.com/megatrain/mtc/runtime/ops/swiglu"
)

// launchers are the launch functions of all rooms.
var launchers = []any{
	add.Forward, attention.Forward, attention.Backward, attention.ForwardCached, copy.Forward, crossentropy.Eval, crossentropy.Loss,
	embed.Forward, embed.BackwardWeight, fill.Forward, finite.Check, gelu.Forward, gelu.Backward,
	grouped.Forward, grouped.BackwardInput, grouped.BackwardWeight, grouped.BackwardBias, grouped.Norm, grouped.NormBackwardWeight, grouped.NormBackwardInput,
	layernorm.Forward, layernorm.Backward, linear.BackwardBias, linear.ForwardGelu, linear.BackwardInputGelu,
	moe.Logits, moe.LogitsBackwardInput, moe.LogitsBackwardWeight, moe.Gather, moe.GatherBackward, moe.Combine, moe.CombineBackward,
	moe.Observe, moe.Select, moe.Advance, moe.Gate, moe.GateBackward,
	mul.Forward, mul.BackwardA, mul.BackwardB, qkrope.Forward, qkrope.Backward, relu.Forward, relu.Backward, relu2.Forward, relu2.Backward,
	rmsnorm.Forward, rmsnorm.Backward, rope.Forward, rope.Backward, scale.Forward, scale.Backward, sigmoid.Forward, sigmoid.Backward,
	silu.Forward, silu.Backward, softcap.Forward, softcap.Backward, squares.Parts, squares.Total, squares.Round, sub.Forward, sub.BackwardA, sub.BackwardB,
	swiglu.Forward, swiglu.Backward,
}

// targets are GPUs with the shared memory that a block may have on them.
var targets = []device.Target{
	{Major: 8, Shared: 163 << 10}, {Major: 8, Minor: 6, Shared: 99 << 10}, {Major: 9, Shared: 227 << 10}, {Major: 12, Shared: 99 << 10},
}

// environment is the sizes that launches are made with, by the names of their fields.
type environment map[string]int64

func (e environment) with(f environment) environment {
	out := maps.Clone(e)
	maps.Copy(out, f)
	return out
}

// most is more elements than a value has in the memory of any GPU.
const most = 1 << 38

// environments are sizes at the ends of what compiles (the compiler's gpulimits.go), as far as values of
// them fit into a memory.
func environments() (out []environment) {
	base := environment{
		"Batch": 1, "Seq": 131072, "Pos": 0, "Rows": 131072, "D": 8, "Per": 8, "Heads": 1, "KV": 1, "HD": 16, "Window": 0, "V": 256000, "Pitch": 0,
		"In": 8, "Out": 8, "Wide": 0, "Experts": 8, "Slots": 1, "K": 2, "Kind": 1, "Balance": 0, "Pool": 0, "Choice": -1, "Causal": 0, "Norm": 1,
		"N": 1 << 20, "Elems": 1 << 33, "First": 0, "Blocks": 5, "First2": 0, "Blocks2": 0,
	}
	add := func(f environment) {
		e := base.with(f)
		e["Dims"] = e["HD"] >> (len(out) % 2) // of every second one a part of each head turns
		if width := max(e["D"], e["In"], e["Out"], e["Heads"]*e["HD"]); e["Rows"]*width*e["Slots"] <= most {
			out = append(out, e)
		}
	}
	for _, r := range [][2]int64{{1, 1}, {1, 131072}, {64, 1024}, {1 << 17, 1}, {1 << 11, 1 << 13}, {4, 1<<22 - 64}} { // micro-batches: rows, tokens of each
		for _, d := range []int64{1, 7, 8, 24, 768, 4097, 65536, 65544, 262144} {
			add(environment{"Batch": r[0], "Seq": r[1], "Rows": r[0] * r[1], "D": d, "Per": d, "In": d, "Out": 3 * d, "N": d})
		}
		for _, v := range []int64{1, 255, 8193, 50257, 151936, 262144, 1 << 20, 1 << 27} {
			add(environment{"Batch": r[0], "Seq": r[1], "Rows": r[0] * r[1], "V": v, "D": 64})
			add(environment{"Batch": r[0], "Seq": r[1], "Rows": r[0] * r[1], "V": v, "D": 64, "Pitch": (v + 63) / 64 * 64})
		}
		for _, hd := range []int64{16, 64, 80, 96, 112, 128, 144, 160, 192, 240, 256, 272, 512, 1024} { // what qkrope takes too
			for _, g := range []int64{1, 5, 7, 64} {
				for norm := range int64(3) {
					add(environment{"Batch": r[0], "Seq": r[1], "Rows": r[0] * r[1], "HD": hd, "Per": hd, "KV": 1, "Heads": g, "D": g * hd, "Norm": norm})
				}
			}
		}
		for _, e := range [][3]int64{{1, 1, 1}, {8, 2, 2}, {256, 8, 8}, {256, 15, 8}, {1024, 15, 4}, {1024, 1, 2}} { // experts, slots, k
			for _, widths := range [][2]int64{{8, 8}, {7, 9}, {4096, 14336}} {
				f := environment{"Batch": r[0], "Seq": r[1], "Rows": r[0] * r[1], "Experts": e[0], "Slots": e[1], "K": e[2], "D": widths[0], "Per": widths[0], "In": widths[0], "Out": widths[1]}
				add(f)
				for balance := range int64(5) {
					add(f.with(environment{"Balance": balance}))
				}
				for pool := range int64(4) {
					add(f.with(environment{"Kind": 0, "Pool": pool}))
				}
			}
		}
	}
	return out
}

// onlooker is a queue that shows what is launched.
type onlooker struct {
	device.Queue
	see func(k *device.Kernel, a *device.Args)
}

func (o onlooker) Launch(k *device.Kernel, a device.Args) { o.see(k, &a) }

// pointers are how the operands of a launch may lie: all there, at addresses for vectors or not, or without
// those that may be missing.
var pointers = []struct {
	name string
	at   func(field string, i int) device.Ptr
}{
	{"aligned", func(_ string, i int) device.Ptr { return device.Ptr{Arena: 1, Off: int64(i) << 8} }},
	{"at odd addresses", func(_ string, i int) device.Ptr { return device.Ptr{Arena: 1, Off: int64(i)<<8 + 2} }},
	{"without sums", func(f string, i int) device.Ptr {
		if strings.HasPrefix(f, "Add") || f == "DWeight" || f == "DBias" || f == "DWQ" || f == "DWK" || f == "Starts" {
			return device.Ptr{}
		}
		return device.Ptr{Arena: 1, Off: int64(i) << 8}
	}},
	{"in place", func(f string, i int) device.Ptr { return device.Ptr{Arena: 1, Off: 0} }},
}

// launch calls a launcher with the sizes of e.
func launch(t *testing.T, f any, e environment, at func(string, int) device.Ptr, flags bool, see func(k *device.Kernel, a *device.Args)) {
	fn := reflect.ValueOf(f)
	args := reflect.New(fn.Type().In(1)).Elem()
	for i := range args.NumField() {
		field, name := args.Field(i), args.Type().Field(i).Name
		switch field.Kind() {
		case reflect.Int, reflect.Int64:
			n, ok := e[name]
			if !ok {
				t.Fatalf("%s: no size for the field %s", fn.Type().In(1), name)
			}
			field.SetInt(n)
		case reflect.Float32, reflect.Float64:
			field.SetFloat(0.25)
			if !flags {
				field.SetFloat(0)
			}
		case reflect.Bool:
			field.SetBool(flags)
		case reflect.Struct:
			field.Set(reflect.ValueOf(at(name, i)))
		}
	}
	fn.Call([]reflect.Value{reflect.ValueOf(onlooker{see: see}), args})
}

// Every launch has a grid that GPUs take, whatever the sizes of a model, and every kernel there is has been
// looked at.
func TestLaunchesFit(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range launchers {
		name := fmt.Sprint(reflect.TypeOf(f).In(1))
		failed := 0
		for _, e := range environments() {
			switch {
			case strings.HasPrefix(name, "attention.ForwardCached") && e["Rows"] > 1<<22-64: // rows of one sequence
				continue
			case strings.HasPrefix(name, "rope.") && e["D"]%e["HD"] != 0:
				continue
			}
			for _, p := range pointers {
				for _, flags := range []bool{false, true} {
					launch(t, f, e, p.at, flags, func(k *device.Kernel, a *device.Args) {
						for _, target := range targets {
							for _, f32 := range []bool{false, true} {
								target.F32 = f32
								if k.CUDA == nil {
									continue
								}
								for s := k.CUDA.For(target, a); s != nil; s = s.Next {
									seen[s.Func] = true
									if why := misfit(s, target, a); why != "" && failed < 5 {
										failed++
										t.Errorf("%s, %s, %s: %s on %+v with %v", name, p.name, s.Func, why, target, e)
									}
								}
							}
						}
					})
				}
			}
		}
	}
	all := kernels(t)
	for _, k := range all {
		if !seen[k] {
			t.Errorf("no launch of %s was looked at", k)
		}
	}
	if len(all) < 80 {
		t.Errorf("only %d kernels were found in the rooms", len(all))
	}
}

// misfit says what a GPU would refuse of a launch.
func misfit(s *device.Source, target device.Target, a *device.Args) string {
	g := s.Grid(a)
	switch {
	case g.X < 1 || g.Y < 0 || g.Y > 65535 || g.Z < 0 || g.Z > 65535:
		return fmt.Sprintf("blocks %d x %d x %d", g.X, g.Y, g.Z)
	case g.Threads < 1 || g.Threads > 1024:
		return fmt.Sprintf("%d threads", g.Threads)
	case g.Shared < 0 || g.Shared > target.Shared:
		return fmt.Sprintf("%d bytes of shared memory", g.Shared)
	}
	if s.Work != nil {
		if n := s.Work(a); n < 0 || n > 1<<45 {
			return fmt.Sprintf("%d bytes of scratch", n)
		}
	}
	return ""
}

// kernels are the names of all kernels in the rooms' texts.
func kernels(t *testing.T) (names []string) {
	name := regexp.MustCompile(`extern "C" __global__ void[^{;]*?(\w+)\(Args a\)`)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".cu") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range name.FindAllStringSubmatch(string(text), -1) {
			names = append(names, m[1])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
