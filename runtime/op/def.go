// Package op is what an op declares about itself: signature, shape rule, weights, kernels
// and gradients. Each op lives in a room of its own under runtime/ops and exports one Def;
// runtime/ops/all lists them. The compiler reads Defs and knows no op by name, except the
// few that fusion passes rewrite; the generated Go calls the rooms' typed launchers.
//
// Operands. Every tensor an op touches has an operand name: its tensor inputs ("x"; "q",
// "k", "v"), its weights ("weight", "bias"), its output "y", values it saves for backward
// ("inv"), constant tables ("cs") and state ("kcache"). The gradient of operand "x" is
// "d.x". A launcher's argument struct has one device.Ptr field for each operand it reads or
// writes, named by Field: "x" -> X, "inv" -> Inv, "weight" -> Weight, "d.x" -> DX,
// "d.weight" -> DWeight. A gradient listed in Launch.Adds has a second field Add+name
// (AddDX): the launcher writes DX = AddDX + gradient, or DX = gradient when AddDX is nil;
// AddDX may equal DX (in place) or be another buffer.
package op

import (
	"fmt"
	"strings"

	"github.com/megatrain/mtc/runtime/tensor"
)

// Def declares one op.
type Def struct {
	Name    string // as written in a .mt, and the room's folder and Go package
	Doc     string // one line for `mtc ops`
	Formula string // what it computes, in plain text, with shape letters
	Example string // a runnable line: a statement that may stand in a block with input x [B, T, D]; "" when no text makes the op
	Hidden  bool   // not callable by name from a .mt: operators and fused ops
	Params  []Param
	Room    string // folder under runtime/ops and Go package of the launchers; "": Name

	// Infer is the shape rule. It gets the bound call (In, Attr) and fills Out, Saved,
	// Weights, Tables, State and Consts. An *ArgError says which argument does not fit.
	Infer func(c *Call) error

	// Causal names the flag without which a position sees later ones: a loss on the next token
	// would then be that of copying it, so the compiler wants the flag. "" for ops that keep
	// positions apart anyway.
	Causal string
	// RowWise says that row r of the output depends on row r of each input only, so that the
	// op may run over chunks of rows (the head's chunks, an expert's rows).
	RowWise bool
	// Ragged says that every launcher's argument struct has the fields Routing, Experts and Slots: of
	// rows of experts those in use are computed alone.
	Ragged bool
	// Pitched says that every launcher's argument struct has a field Pitch: the elements from one
	// row of y, and of d.y, to the next; 0 where rows are dense.
	Pitched bool
	// Documents says that a position's place in its document matters: where documents share rows,
	// Forward and Backward also read "starts", i32 [B, T]: the position in its row where the
	// document of a position begins. Their argument structs have the field Starts.
	Documents bool
	// PassThrough says that the gradient of every tensor input is d.y itself (add): backward
	// needs no launch. Backward is then empty.
	PassThrough bool
	// F32 says that results, and inputs that another such op made, stay f32 whatever the device
	// computes in.
	F32 bool
	// Router says that launches may name, besides operands, what the schedule binds: "router" (the
	// state of the unit's router), "targets" and "scalars" of the step.
	Router bool
	// Expands says that the compiler replaces a call by others; the op has no launches.
	Expands bool

	Forward  Launch
	Backward []Launch
	// Fused are launches that passes put in the place of one of these and one of another op. Their
	// operands may go beyond the call's; their Cost says all.
	Fused []Launch
	// Cached replaces Forward in generation, where T rows of one sequence start at position
	// Pos and State holds what earlier positions left (attention). Nil: Forward serves.
	Cached *Launch
	// Advance runs once after every training step and moves the state of the unit's router.
	Advance *Launch
}

// Package is the room of the launchers.
func (d *Def) Package() string {
	if d.Room != "" {
		return d.Room
	}
	return d.Name
}

// Param is one parameter of the op's signature in the language.
type Param struct {
	Name    string
	Kind    ParamKind
	Default *Value   // nil: must be given (tensors, required constants)
	Words   []string // the words or constructors a Word parameter takes; "did you mean" lists them
	Ctors   []Ctor   // those of Words that are constructors, with their parameters
	Doc     string
}

// Ctor is a constructor call that a Word parameter takes: llama3(factor, low, high, original).
// Its arguments are constants; the compiler passes all of them in this order, defaults filled in.
type Ctor struct {
	Name   string
	Params []Param
}

// ParamKind is the type of a parameter.
type ParamKind uint8

// The kinds of parameters.
const (
	Tensor ParamKind = iota // a value of the graph
	Int
	Float     // takes an int too
	Bool      // a flag: its bare name sets it
	Word      // a word, or a constructor call such as llama3(8.0, 1.0, 4.0, 8192)
	InitKind  // normal(s), uniform(a), zero, one
	TieKind   // the label of another weight, or none
	BlockKind // a block with some arguments bound: mlp(width = 2 * D)
)

func (k ParamKind) String() string {
	return [...]string{"tensor", "int", "float", "bool", "word", "init", "label", "block"}[k]
}

// Value is a constant of the language. Exactly one shape of it is in use, told by Kind.
type Value struct {
	Kind  ValueKind
	Int   int64
	Float float64
	Bool  bool
	Str   string  // string text, or the name of a word, call or block
	Args  []Value // of a call, in the callee's order
	Dim   string  // the parameter name an int came from, for messages ("" when computed)
}

// ValueKind tells what a Value is.
type ValueKind uint8

// The kinds of constants.
const (
	VNone ValueKind = iota
	VInt
	VFloat
	VBool
	VString
	VWord
	VCall
	VBlock
	VUnbound // an argument of a VBlock that is left open
	VList    // of words and strings; Args
)

// Constructors of constants, for defaults in Defs.

// None is the constant `none`.
func None() *Value { return &Value{Kind: VNone} }

// IntValue is an int constant.
func IntValue(n int64) *Value { return &Value{Kind: VInt, Int: n} }

// FloatValue is a float constant.
func FloatValue(x float64) *Value { return &Value{Kind: VFloat, Float: x} }

// BoolValue is a bool constant.
func BoolValue(b bool) *Value { return &Value{Kind: VBool, Bool: b} }

// WordValue is a word constant.
func WordValue(w string) *Value { return &Value{Kind: VWord, Str: w} }

// IsNone reports whether v is none.
func (v Value) IsNone() bool { return v.Kind == VNone }

// Num returns an int or float constant as float64.
func (v Value) Num() float64 {
	if v.Kind == VInt {
		return float64(v.Int)
	}
	return v.Float
}

// String prints the constant as it would be written.
func (v Value) String() string {
	switch v.Kind {
	case VInt:
		return fmt.Sprint(v.Int)
	case VFloat:
		s := fmt.Sprint(v.Float)
		if !strings.ContainsAny(s, ".eIN") {
			s += ".0"
		}
		return s
	case VBool:
		return fmt.Sprint(v.Bool)
	case VString:
		return fmt.Sprintf("%q", v.Str)
	case VWord:
		return v.Str
	case VCall, VBlock:
		var args []string
		for _, a := range v.Args {
			if a.Kind != VUnbound {
				args = append(args, a.String())
			}
		}
		return v.Str + "(" + strings.Join(args, ", ") + ")"
	}
	if v.Kind == VList {
		items := make([]string, len(v.Args))
		for i, a := range v.Args {
			items[i] = a.String()
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	return "none"
}

// Call is one use of an op with everything about it that is static.
type Call struct {
	Def    *Def
	Inputs []string         // operand names of the tensor inputs present, in parameter order
	In     []tensor.Type    // their types
	Attr   map[string]Value // every non-tensor parameter, defaults filled in

	// DType is what activations and weights are held in where the call runs: f32 (zero) or
	// bf16. Inputs, output and State are activations; Saved values and tables are statistics
	// and constants, whose types Infer gives; gradients of weights are f32.
	DType tensor.DType

	// Filled by Infer.
	Out     tensor.Type
	Saved   []Operand // extra results of Forward that backward may read: statistics
	Weights []Weight
	Tables  []Table
	State   []Operand // per-instance buffers that live from call to call in generation
	Consts  []Const   // the constant fields of every launcher's argument struct
}

// Input returns the type of a tensor input by operand name; ok is false when absent.
func (c *Call) Input(name string) (t tensor.Type, ok bool) {
	for i, n := range c.Inputs {
		if n == name {
			return c.In[i], true
		}
	}
	return tensor.Type{}, false
}

// Operand is a named tensor of a call.
type Operand struct {
	Name string
	Type tensor.Type
}

// Role says what a weight is, which decides its init and its weight decay.
type Role uint8

// The roles.
const (
	Matrix    Role = iota // linear weight [out, in]: model init, decayed
	Embedding             // [rows, D]: model init, decayed
	Norm                  // ones, not decayed
	Bias                  // zeros, not decayed
)

func (r Role) String() string { return [...]string{"matrix", "embedding", "norm", "bias"}[r] }

// Weight is a parameter tensor a call owns (or ties).
type Weight struct {
	Name  string // "weight", "bias": the last part of its path
	Shape tensor.Shape
	Role  Role
	// Experts, when not 0, is how many parameters of the shape without its first dim the tensor
	// consists of, one after another.
	Experts int64
}

// Table is a constant tensor made once at start-up by a function of the room
// (`func Func(dst []float32, a FuncArgs)`), shared by equal calls.
type Table struct {
	Operand string // operand name
	Type    tensor.Type
	Func    string  // Go function in the room; its args struct is Func+"Args"
	Consts  []Const // fields of that struct
}

// Const is a constant field of a launcher's argument struct. Int, Float and Bool are
// literals (Go types int, float32, bool), and so is Str where Kind is CString. The symbolic kinds are ints that depend on how
// many rows a function runs over: Rows = B*T of the micro-batch (or of the chunk, or the T
// of a generation step), Batch = B, Seq = T, Pos = position of the first row of each
// sequence (0 except in generation).
type Const struct {
	Field string
	Kind  ConstKind
	Int   int64
	Float float64
	Bool  bool
	Str   string
}

// ConstKind is the kind of a Const.
type ConstKind uint8

// The kinds.
const (
	CInt ConstKind = iota
	CFloat
	CBool
	CRows
	CBatch
	CSeq
	CPos
	CString
)

// Launch is one launcher of a room: func Func(q device.Queue, a Func+"Args").
type Launch struct {
	Func   string   // "Forward", "BackwardInput"
	Reads  []string // operand names; an absent optional operand (bias) is passed as nil
	Writes []string // operand names; each is set
	// Adds lists those of Writes that take an Add operand: gradients, and the result y of a
	// forward, where the compiler may make the launch do an addition that follows it.
	Adds []string
	// InPlace lists pairs (read, written) that may share a buffer: "x", "y" of an elementwise
	// op. What is in Adds may always share its buffer with its Add operand.
	InPlace [][2]string
	// Cost returns floating-point operations and bytes moved for the given sizes (each
	// operand once). Dims symbolic in the call are given by s.
	Cost func(c *Call, s Sizes) Cost
	// Shape says how the launch is bound where it is not by the bytes it moves; nil: by those.
	Shape func(c *Call, s Sizes) Shape
	// Scratch is the device memory that kernels on a GPU take besides their operands, for as long as they run; nil:
	// a few MB at most, whatever the sizes.
	Scratch func(c *Call, s Sizes) int64
}

// WithStarts is the launch where documents share rows: it also reads "starts".
func (l *Launch) WithStarts() *Launch {
	out := *l
	out.Reads = append(append([]string{}, l.Reads...), "starts")
	return &out
}

// Shape is what the rate of a launch depends on.
type Shape struct {
	Class Class  `json:"class"`
	Form  string `json:"form"` // product: "nt" (forward), "nn" (input gradient), "tn" (weight gradient); attention: "forward", "backward"
	// Product: Count times [M, K] by [K, N]. Attention: M pairs of sequence and query head, N
	// positions, K elements of a head; Count is 1.
	M     int64 `json:"m"`
	N     int64 `json:"n"`
	K     int64 `json:"k"`
	Count int64 `json:"count"`
	// Groups is how many groups of rows, each with an operand of its own, a product over all M rows has;
	// 0: one.
	Groups int64 `json:"groups,omitempty"`
}

// WithNorm ends the name of a launch, in rates and costs, that also norms what it reads.
const WithNorm = " norm"

// Class tells launches apart by what bounds them.
type Class uint8

// The classes.
const (
	Streaming Class = iota // bytes moved
	Product                // a matrix product
	Attending              // attention over positions
)

func (c Class) String() string { return [...]string{"memory", "product", "attention"}[c] }

// Sizes resolves the symbolic dims.
type Sizes struct{ Batch, Seq int64 }

// Rows is Batch * Seq.
func (s Sizes) Rows() int64 { return s.Batch * s.Seq }

// Cost is the work of one launch.
type Cost struct{ FLOPs, Bytes int64 }

// ArgError says that an argument does not fit; the compiler adds the spans.
type ArgError struct {
	Arg  string // parameter name, "" for the whole call
	Want string // "a last dim of H * hd = 512"
	Got  string // "[B, T, D = 500]"
	Hint string // what to write, may be empty
}

func (e *ArgError) Error() string {
	return fmt.Sprintf("`%s`: wanted %s, got %s", e.Arg, e.Want, e.Got)
}

// Grad is the operand name of a gradient.
func Grad(operand string) string { return "d." + operand }

// Field is the Go field name of an operand in an argument struct: one- and two-letter
// names in capitals, else with a capital first letter; gradients get a leading D.
func Field(operand string) string {
	if base, ok := strings.CutPrefix(operand, "d."); ok {
		return "D" + Field(base)
	}
	if len(operand) <= 2 {
		return strings.ToUpper(operand)
	}
	return strings.ToUpper(operand[:1]) + operand[1:]
}
