package front

// The codes of what these passes report. MT00 is for faults of the tool, MT02 names, MT03
// shapes, types and values, MT064 the train block
// (MT060 to MT063 are data and checkpoints, in runtime/fault).
const (
	codeUnknown    = "MT0201" // a name that nothing declares
	codeTwice      = "MT0202" // a name declared twice, or one that hides another
	codeBuiltin    = "MT0203" // a built-in name declared
	codeUse        = "MT0204" // a used file that cannot be read
	codeUseCycle   = "MT0205" // files that use each other, models that are instances of each other
	codeWhichModel = "MT0206" // no model, or several and none chosen
	codeNoName     = "MT0207" // a weight without a name
	codeSamePath   = "MT0208" // two weights with one name
	codeRecursion  = "MT0209" // a block that calls itself
	codeFlag       = "MT0210" // a bare name that could be a flag or a value
	codeNotYet     = "MT0211" // something this version does not have
	codeSet        = "MT0212" // a --set that cannot be read
	codeShape      = "MT0301" // shapes that do not fit
	codeType       = "MT0302" // a value of another kind than is wanted
	codeRest       = "MT0303" // an int division that leaves a rest
	codeZero       = "MT0304" // a division by zero
	codeOverflow   = "MT0305" // a number or size that does not fit 63 bits
	codeConstOp    = "MT0306" // an operator or function that does not take its operands
	codeMissing    = "MT0307" // an argument or parameter without a value
	codeArgs       = "MT0308" // too many arguments, one given twice, a positional after a named one
	codeRange      = "MT0309" // a value outside its range
	codeForm       = "MT0310" // a statement or declaration in a form or place it cannot have
	codeBetween    = "MT0311" // weights outside the units that may own them
	codeReturn     = "MT0312" // a return that is missing, doubled or unreachable
	codeTie        = "MT0313" // a tie that does not fit
	codeInit       = "MT0314" // an init that is missing, doubled or unusable
	codeTooMany    = "MT0315" // more units, ops or nesting than a model may have
	codeUnused     = "MT0316" // a value that nothing reads
	codeHead       = "MT0317" // a head that is not a head
	codeNotConst   = "MT0318" // a tensor where a constant is wanted, or the reverse
	codeUnassigned = "MT0319" // a variable that the taken branch leaves without a value
	codeCausal     = "MT0320" // an op that sees the tokens the loss asks for
	codeMapPath    = "MT0321" // a weights map entry that names no weight
	codeMapMissing = "MT0322" // a weight without an entry
	codeMapOverlap = "MT0323" // a weight or foreign tensor with two entries
	codeMapValue   = "MT0324" // the right side of an entry
	codeUncalled   = "MT0325" // a block that nothing calls (warning)
	codeRouter     = "MT0326" // a router that never learns (warning)
	codeRouterIdle = "MT0327" // a router's constant that does nothing, or not what it seems (warning)
	codeTrainField = "MT0641" // a train field: unknown, doubled or missing
	codeTrainValue = "MT0642" // a train value of the wrong kind or outside its range
	codeTrainUnit  = "MT0643" // a unit word: missing, unknown or out of place
	codeLoRA       = "MT0646" // a target of lora that is no linear of the model, or one that cannot be
	codeBatch      = "MT0644" // a batch that seq does not divide
	codePositions  = "MT0645" // seq above the rows of a position table
)
