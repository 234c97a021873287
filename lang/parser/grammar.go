package parser

import (
	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"
)

// The grammar. Each type is a production; the Tokens field gives its span. A body token stands
// for `{ ... }`, whose lines are parsed on their own: it names the production of these lines.
// Precedence of operators is not in the grammar but in expr.go: a chain of operators is one
// flat production, which keeps the parse shallow.

type gDecl struct {
	Use   *gUse   `parser:"@@"`
	Model *gModel `parser:"| @@"`
	Train *gTrain `parser:"| @@"`
}

type gUse struct {
	Tokens []lexer.Token
	Path   string `parser:"'use':Ident @String"`
}

type gModel struct {
	Tokens   []lexer.Token
	Instance *gInstance `parser:"'model' ( @@"`
	Plain    *gPlain    `parser:"| @@ )"`
}

type gInstance struct {
	Name string `parser:"@Target '='"`
	Of   *gCall `parser:"@@"`
}

type gPlain struct {
	Name   string    `parser:"( @Callee"`
	Params []*gParam `parser:"'(' ( @@ ( ',' @@ )* ','? )? ')' |"`
	Bare   string    `parser:"@Ident )"`
	Body   string    `parser:"@ModelBody"`
}

type gParam struct {
	Tokens  []lexer.Token
	Name    string `parser:"( @Target '='"`
	Default *gExpr `parser:"@@ |"`
	Bare    string `parser:"@Ident )"`
}

type gItem struct {
	Preset  *gPreset  `parser:"@@"`
	Init    *gInit    `parser:"| @@"`
	Block   *gBlock   `parser:"| @@"`
	Forward *gForward `parser:"| @@"`
	Weights *gWeights `parser:"| @@"`
}

type gPreset struct {
	Tokens []lexer.Token
	Name   string `parser:"'preset':Ident @Ident"`
	Body   string `parser:"@PresetBody"`
}

type gPresetLine struct {
	Args []*gNamed `parser:"@@ ( ',' @@ )* ','?"`
}

type gNamed struct {
	Tokens []lexer.Token
	Name   string `parser:"@Target '='"`
	Value  *gExpr `parser:"@@"`
}

type gInit struct {
	Tokens []lexer.Token
	Value  *gExpr `parser:"'init':Ident @@"`
}

type gBlock struct {
	Tokens []lexer.Token
	Name   string    `parser:"'block' @Callee"`
	Params []*gParam `parser:"'(' ( @@ ( ',' @@ )* ','? )? ')'"`
	Body   string    `parser:"@StmtBody"`
}

type gForward struct {
	Tokens []lexer.Token
	Params []*gParam `parser:"'forward' '(' ( @@ ( ',' @@ )* ','? )? ')'"`
	Body   string    `parser:"@StmtBody"`
}

type gWeights struct {
	Tokens []lexer.Token
	Name   string `parser:"'weights':Ident @Ident"`
	Body   string `parser:"@WeightBody"`
}

type gWeightLine struct {
	If    *gWeightIf `parser:"@@"`
	Entry *gEntry    `parser:"| @@"`
}

type gWeightIf struct {
	Tokens []lexer.Token
	Cond   *gExpr      `parser:"'if' @@"`
	Then   string      `parser:"@WeightBody"`
	ElseIf *gWeightIf  `parser:"( 'else' ( @@"`
	Else   *gWeightEnd `parser:"| @@ ) )?"`
}

type gWeightEnd struct {
	Body string `parser:"@WeightBody"`
}

type gEntry struct {
	Tokens  []lexer.Token
	Targets []*gPath `parser:"@@ ( ',' @@ )* '='"`
	Value   *gExpr   `parser:"@@"`
}

type gPath struct {
	Tokens []lexer.Token
	Parts  []*gPart `parser:"@@ ( '.' @@ )*"`
}

type gPart struct {
	Tokens []lexer.Token
	Name   string `parser:"@( Ident | Target )"`
	Index  string `parser:"( '[' @Ident ']' )?"`
}

type gTrain struct {
	Tokens []lexer.Token
	Body   string `parser:"'train':Ident @TrainBody"`
}

type gField struct {
	Tokens []lexer.Token
	Name   string `parser:"( @Target '='"`
	Value  *gExpr `parser:"@@"`
	Unit   string `parser:"@Ident?"`
	Call   *gCall `parser:"| @@ )"`
}

type gStmt struct {
	Assign *gAssign `parser:"@@"`
	Call   *gCall   `parser:"| @@"`
	If     *gIf     `parser:"| @@"`
	Repeat *gRepeat `parser:"| @@"`
	Return *gReturn `parser:"| @@"`
}

type gIf struct {
	Tokens []lexer.Token
	Cond   *gExpr `parser:"'if' @@"`
	Then   string `parser:"@StmtBody"`
	ElseIf *gIf   `parser:"( 'else' ( @@"`
	Else   *gEnd  `parser:"| @@ ) )?"`
}

type gEnd struct {
	Body string `parser:"@StmtBody"`
}

type gRepeat struct {
	Tokens []lexer.Token
	Count  *gExpr `parser:"'repeat' @@"`
	Var    string `parser:"( 'as' @Ident )?"`
	Body   string `parser:"@StmtBody"`
}

type gReturn struct {
	Tokens []lexer.Token
	Value  *gExpr `parser:"'return' @@"`
}

type gAssign struct {
	Tokens []lexer.Token
	Target string `parser:"@Target"`
	Op     string `parser:"@( '=' | '+=' )"`
	Value  *gExpr `parser:"@@"`
}

type gExpr struct {
	Cond  *gCond  `parser:"@@"`
	Chain *gChain `parser:"| @@"`
}

type gCond struct {
	Tokens []lexer.Token
	If     *gExpr `parser:"'if' @@"`
	Then   *gExpr `parser:"'then' @@"`
	Else   *gExpr `parser:"'else' @@"`
}

type gChain struct {
	First *gTerm   `parser:"@@"`
	Rest  []*gLink `parser:"@@*"`
}

type gLink struct {
	Tokens []lexer.Token
	Op     string `parser:"@Op"`
	Term   *gTerm `parser:"@@"`
}

type gTerm struct {
	Tokens []lexer.Token
	Prefix []string `parser:"@Prefix*"`
	Name   string   `parser:"( @Ident"`
	Int    string   `parser:"| @Int"`
	Call   *gCall   `parser:"| @@"`
	Float  string   `parser:"| @Float"`
	Str    string   `parser:"| @String"`
	Word   string   `parser:"| @( 'true' | 'false' | 'none' )"`
	List   *gList   `parser:"| @@"`
	Paren  *gParen  `parser:"| @@ )"`
}

type gList struct {
	Tokens []lexer.Token
	Items  []*gExpr `parser:"'[' ( @@ ( ',' @@ )* ','? )? ']'"`
}

type gParen struct {
	Tokens []lexer.Token
	X      *gExpr `parser:"'(' @@ ')'"`
}

type gCall struct {
	Tokens []lexer.Token
	Label  string  `parser:"( @Label ':' )?"`
	Callee string  `parser:"@Callee"`
	Args   []*gArg `parser:"'(' ( @@ ( ',' @@ )* ','? )? ')'"`
}

type gArg struct {
	Tokens []lexer.Token
	Name   string `parser:"( @Target '=' )?"`
	Value  *gExpr `parser:"@@"`
}

var (
	declParser   = build[gDecl]()
	itemParser   = build[gItem]()
	presetParser = build[gPresetLine]()
	weightParser = build[gWeightLine]()
	fieldParser  = build[gField]()
	stmtParser   = build[gStmt]()
	exprParser   = build[gExpr]()
)

func build[G any]() *participle.Parser[G] {
	return participle.MustBuild[G](participle.Lexer(definition{kindNames}))
}
