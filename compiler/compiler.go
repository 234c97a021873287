// Package compiler turns a .mt file into a program and a plan.
//
// Compile runs the ordered list of passes in pipeline.go: text to syntax tree, to a typed
// graph (ir.Model), to templates (ir.Program), to a schedule with its memory (plan.Plan).
// Check runs the first half only. Findings go to a diag.List; a pass never prints, exits or
// panics on user input, and a panic becomes a diagnostic that names the pass. Code is made
// from a Result by package codegen.
package compiler

import (
	"context"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/runtime/plan"
)

// Options says what to compile and how. The zero value of a field means its default.
type Options struct {
	Path string // the .mt file; `use` paths are relative to it
	Text []byte // the file's text when not nil: Path is then only a name and a folder
	// ReadFile reads used files (and Path when Text is nil); nil: parser.ReadFile.
	ReadFile func(path string) ([]byte, error)

	Model  string   // which model of the file; "": its only one
	Preset string   // a preset of the model
	Set    []string // "D=1024", "train.lr=cosine(peak = 1e-3)", later ones win

	Target    string // "cpu" (default) or "cuda"
	Placement string // "resident" (default), "stream", or "auto": resident where it fits
	// DeviceMemory is how many bytes the plan may take on the device, 0: any number. A stream
	// fills what it leaves with the state of the first layers. Where the plan does not fit, the
	// micro-batch, what is recomputed, groups and saved inputs change until it does, as far as
	// they are left open; Result.Chosen says how.
	DeviceMemory int64
	// LogitsFor is the device memory that the chunks of logits are sized for on a GPU; 0: DeviceMemory.
	LogitsFor  int64
	MicroBatch int64 // rows of a micro-batch; 0: the largest divisor of the batch with rows*T <= 8192, on a GPU up to 65536
	// Groups of micro-batches a step; 0: one in a stream, so that weights cross once a pass, and
	// a micro-batch a group where all is resident, so that the activations of one are alive.
	Groups int64
	// Order is "layer" (each layer takes all micro-batches of a group before the next), "batch" (a
	// group for each micro-batch), or "" and "auto": as Groups says.
	Order string
	// Recompute is "all", "none", a number of first layers, or names with commas, of blocks or of one
	// instance of them ("layer[3]"). "" or "auto": none, where that fits DeviceMemory.
	Recompute string

	// What a stream keeps where. All but SaveInputs are without effect where all is resident.

	// Resident is which slabs stay on the device with weights, gradient and state: a number N
	// (the first N in forward order: embedding, layers, head) or their names with commas
	// ("embed,layer[0],layer[3]"). "" or "auto": as many first ones as fit DeviceMemory, none
	// without it.
	Resident string
	// DeviceWeights is how many of the first layers that stream have a device slot of their own
	// for weights: these cross the link once a step, after the update, not once a pass.
	DeviceWeights int64
	// GradHome is where whole gradients of slabs that stream wait for their update: "host" (as
	// "" and "auto" are), "device", or a number N: those of the last N slabs in forward order on
	// the device. From the device a gradient leaves just before its update, and groups of
	// micro-batches add up there.
	GradHome string
	// GradPrecision is what gradients cross the link in, "f32" (default) or "bf16": the whole
	// gradient of a step is rounded on the device, and norm and update are of what was rounded.
	GradPrecision string
	// SaveInputs is how many inputs of layers wait for backward on the host, the first in
	// forward order: "none", "all" or a number. "" or "auto": as many as it takes to fit
	// DeviceMemory.
	SaveInputs string
	// SaveValues is of how many layers that do not recompute, the first in forward order, what backward
	// reads waits on the host: "none" (as "" and "auto" are), "all" or a number.
	SaveValues string
	// InputEvery keeps the input of every so many layers that recompute; those between are made
	// again in backward, which then visits as many layers together. 0 and 1: of every layer.
	InputEvery int64
	Slots      int64 // device slots for layer weights, default 2, or InputEvery + 1
	GradSlots  int64 // device slots for layer gradients, default as Slots
	HostSlots  int64 // host slots for layer gradients on their way to an update, default 4

	Prefill int64 // positions of a prefill chunk, 0: default

	CheckNaN bool // stop at the first value that is not finite, and say where it was made

	DumpAfter string // name of a pass: Result.Dump then holds the stage it made
	Version   string // of mtc, carried into the plan
}

// Result is what the passes made, as far as they came.
type Result struct {
	File    *ast.File   // the syntax tree of Path
	Model   *ir.Model   // the checked model
	Program *ir.Program // templates and slabs; nil after Check
	Plan    *plan.Plan  // schedule and memory; nil after Check
	Dump    string      // stage printed for Options.DumpAfter
	// Chosen are the flags that stand for options that were left open and changed so that the
	// plan fits DeviceMemory: "--recompute all --micro-batch 4". How many inputs are saved the plan says.
	Chosen string
}

// Compile runs all passes. It needs a train block, because the batch shapes the schedule.
// What is wrong goes to diags; the error is diags.Err(), or that of ctx. The result is never
// nil and holds what was made before the first pass with errors.
func Compile(ctx context.Context, o Options, diags *diag.List) (*Result, error) {
	return run(ctx, o, diags, true)
}

// Check runs the front half: everything that can be said of the text without a schedule.
// Without a train block B and T stay symbolic.
func Check(ctx context.Context, o Options, diags *diag.List) (*Result, error) {
	return run(ctx, o, diags, false)
}
