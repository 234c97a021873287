// Package lower is the back half of the compiler's passes: it takes a checked model
// (ir.Model) to templates (ir.Program). Each pass is one file and one exported function:
//
//	prune       drops what no output needs; one input for each value, one weight for each tensor
//	adapters    lays adapters beside the linears that the train block names, and freezes all else
//	fuse        rewrites silu(gate) * up to one op
//	recompute   notes for each unit whether backward makes again what it reads
//	microbatch  gives B and T the sizes of one micro-batch
//	dtypes      gives every value its element type by its role
//	templates   equal units share one template; parameters get their slabs
//	gradients   differentiates each template: forward, backward, what is saved between them,
//	            or a function that makes again only what backward reads; rotations of q and k are
//	            fused (rotate.go), sums of squares follow gradients (squares.go)
//	head        last linear, loss and their gradients in one function over chunks of rows
//	infer       forward for generation: one sequence, a cache instead of earlier rows
//	checknan    where it is asked for, a check behind every launch
//	memory      a place for every value of every function, and the proof that none overlap
//
// Functions are built in single assignment form (ssa.go): every launch defines new values,
// gradients included, so that what may share memory follows from lifetimes alone.
//
// The passes know no op by name, except those they insert or rewrite: add and copy where
// gradients meet, fill, swiglu, rope, rmsnorm, softcap and crossentropy, and linear, scale and add for adapters.
package lower

import (
	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/runtime/tensor"
)

// Options are the values that shape templates. A zero field means its default.
type Options struct {
	Rows    int64 // sequences of a micro-batch; 0: what defaults.go says
	Prefill int64 // positions of one prefill chunk; 0: 64
	// Recompute says which units make again in backward what it reads: "all", "none" or "", a
	// number of first layers, or names of units with commas, "layer" or "layer[3]".
	Recompute string
	// Again adds to templates that recompute the function that makes their outputs too: inputs of
	// layers are then not kept for every layer.
	Again bool
	// DType is what the device computes in: f32 (default) or bf16.
	DType tensor.DType
	// DeviceMemory is the bytes that a plan may take on the device, 0: not known. Sizes that
	// are left open follow from it.
	DeviceMemory int64
	// LogitsFor is the device memory that the chunks of logits are sized for; 0: DeviceMemory.
	LogitsFor int64
	// LogitsBytes bounds the logits that exist at once in the head; 0: 16 MiB, or on a
	// device that computes in bf16 up to 2 GiB.
	LogitsBytes int64
	// CheckNaN puts a check behind every launch (checknan.go).
	CheckNaN bool
	// MinChunk is the least number of rows of a head chunk, whatever LogitsBytes says; 0: 256, or 1024.
	MinChunk int64
}

// defaultPrefill is the chunk in which a prompt is read.
const defaultPrefill = 64

// Lowering is a program in the making: the templates pass starts it, later passes add
// functions, memory completes them.
type Lowering struct {
	Program *ir.Program

	opts  Options
	diags *diag.List
	tmpls []*tmpl
	table map[string]int // key of a constant table -> index of Program.Tables
}

// tmpl is a template with what the passes need besides.
type tmpl struct {
	*ir.Template
	kind  ir.UnitKind
	model *ir.Model
	funcs []*fn
}

// Lower runs all passes on a checked model with a batch and a sequence length. Nil when
// diags has errors.
func Lower(m *ir.Model, o Options, diags *diag.List) *ir.Program {
	Prune(m, diags)
	Adapters(m)
	Fuse(m)
	Recompute(m, o, diags)
	Microbatch(m, o, diags)
	Dtypes(m, o)
	if diags.HasErrors() {
		return nil
	}
	l := Templates(m, o, diags)
	if diags.HasErrors() {
		return nil
	}
	for _, pass := range []func(*Lowering){Gradients, Head, Infer, CheckNaN} {
		pass(l)
		if diags.HasErrors() {
			return nil
		}
	}
	Memory(l)
	return l.Program
}
