// Package front is the front half of the compiler: from the text of a .mt file to a checked
// ir.Model. Each pass is one function over a State and has a file of its own:
//
//	load       reads the file and what it uses, parses them
//	target     chooses the model: instances, presets and --set
//	names      resolves every name and checks every call's arguments against its callee
//	train      checks the train block
//	constants  evaluates the model's parameters
//	elaborate  runs forward: blocks inlined, conditions taken, repeats unrolled
//	shapes     applies each op's shape rule
//	params     names every weight, resolves ties and inits
//	units      checks what the units must be: embed, layers, head, nothing unused
//	weights    proves the weights maps total and free of overlap
//	targets    finds the linears that get adapters
//
// A pass reports to State.Diags and never panics on what a user wrote. What a pass found
// wrong is marked bad and later passes stay silent about it, so that each cause is
// reported once.
package front

import (
	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/op"
)

// Input is what the passes start from.
type Input struct {
	Path     string
	Text     []byte // overrides the file's content when not nil
	ReadFile func(path string) ([]byte, error)
	Model    string
	Preset   string
	Set      []string
	Ops      Ops
}

// Ops is where the passes look up ops.
type Ops struct {
	Lookup func(name string) *op.Def // hidden ones too, nil when there is none
	Names  func() []string           // those a .mt may call
}

// State is what the passes hand on. Exported fields are results that later stages read.
type State struct {
	In    Input
	Diags *diag.List

	Main  *ast.File   // after load
	Files []*ast.File // Main first, then used files in order of use
	Model *ir.Model   // grows from constants on

	// load and target
	files  map[string]*ast.File
	uses   map[*ast.File][]*ast.File
	models map[*ast.File]map[string]*ast.Model // seen in a file, by name
	target *target
	// names
	index     map[*ast.Model]map[string]int // place of each parameter
	blocks    map[*ast.Model]map[string]*ast.Block
	returning map[*ast.Block]bool
	labels    map[*ast.Model]*labelSet
	assigned  map[assignKey]bool
	bound     map[*ast.Call]bool // blocks as values
	values    map[string]bool    // names of blocks that are values
	told      map[source.Span]bool
	unknowns  map[unknownKey]*unknownName
	allWords  []string
	allCtors  []op.Ctor
	// constants
	consts *scope // the target's parameters
	// elaborate
	units   []*build // in forward order
	nodes   map[*ir.Node]*nodeInfo
	logit   *val // what forward returns
	logitAt source.Span
	loops   []source.Span // the counts of the repeats being run, the outermost first
	trail   *trail        // of the block that is looked at; nil: none
	steps   int           // expressions evaluated
	spent   bool          // a limit was reached: nothing more is evaluated
	// train
	lora *loraSpec // nil: none
	// params
	params map[string]*ir.Param // by path
}

// New starts a State.
func New(in Input, diags *diag.List) *State {
	return &State{
		In: in, Diags: diags, Model: &ir.Model{},
		models:    map[*ast.File]map[string]*ast.Model{},
		index:     map[*ast.Model]map[string]int{},
		blocks:    map[*ast.Model]map[string]*ast.Block{},
		returning: map[*ast.Block]bool{},
		assigned:  map[assignKey]bool{},
		bound:     map[*ast.Call]bool{},
		values:    map[string]bool{},
		unknowns:  map[unknownKey]*unknownName{},
		nodes:     map[*ir.Node]*nodeInfo{},
		params:    map[string]*ir.Param{},
	}
}

// maxFindings bounds what is reported of one compile.
const maxFindings = 100

// full reports that enough was found: looking for names that are near costs time.
func (s *State) full() bool { return s.Diags.Len() >= maxFindings }

// errorf reports an error, until there are too many. The result is never nil.
func (s *State) errorf(code string, at source.Span, format string, args ...any) *diag.Diagnostic {
	if s.full() {
		return &diag.Diagnostic{}
	}
	d := s.Diags.Errorf(code, at, format, args...)
	if n := s.trail.note(); n != "" {
		d.Note("%s", n)
	}
	if s.full() {
		d.Note("further errors are not shown")
	}
	return d
}

// few bounds the names that a misspelt one is compared with.
func few(names []string) []string { return names[:min(len(names), 2000)] }
