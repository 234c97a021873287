package parser

import (
	"errors"

	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"

	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/diag/suggest"
)

// parseLine runs a grammar over the tokens of one line. With an error it reports it and
// returns what was read so far, or nil.
func parseLine[G any](p *parser, g *participle.Parser[G], toks []token) *G {
	peek, err := lexer.Upgrade(&tokenLexer{toks: toks, end: toks[len(toks)-1].end})
	if err != nil {
		return nil // a tokenLexer has no errors
	}
	out, err := g.ParseFromLexer(peek)
	if err == nil {
		return out
	}
	at := len(toks)
	var perr participle.Error
	if errors.As(err, &perr) {
		for i := range toks {
			if toks[i].start >= perr.Position().Offset {
				at = i
				break
			}
		}
	}
	p.unexpected(toks, at)
	return nil
}

// tryLine is parseLine for a line that may be bad already: then its errors have been told.
func tryLine[G any](p *parser, g *participle.Parser[G], l *line, where place) *G {
	p.place = where
	if p.errors > maxErrors {
		return nil // nothing more is told
	}
	if !l.bad {
		return parseLine(p, g, l.toks)
	}
	quiet := &parser{file: p.file, diags: nil, bodies: p.bodies, errors: maxErrors}
	return parseLine(quiet, g, l.toks)
}

// setBodies gives the body tokens of a line their kind.
func setBodies(toks []token, k kind) {
	for i := range toks {
		if toks[i].body != nil {
			toks[i].kind = k
		}
	}
}

// head reports a first word that cannot start a line here, and mends a misspelt one so that the
// rest of the line is read as meant. It is false when the line is to be skipped.
//
// lost says that the line before could not be read either: then this one most likely belongs
// to it, and nothing more is told until a line is read again.
func (p *parser) head(l *line, words []string, place string, lost *bool) bool {
	t := &l.toks[0]
	for _, w := range words {
		if t.word(w) {
			*lost = false
			return true
		}
	}
	near := ""
	if t.isName() {
		near = suggest.Nearest(t.text, words)
	}
	if place == "a file" && t.kind != kTarget && p.atMargin(t.start) {
		*lost = false // what belongs to the line before is indented, as a rule
	}
	if l.bad || near == "" && *lost {
		*lost = true
		return false
	}
	span := t.span(p.file)
	if t.body != nil {
		span.End = span.Start + 1
	}
	d := p.errorf("MT0107", span, "%s holds %s, found %s", place, suggest.List(words), describe(t))
	if *lost = near == ""; *lost {
		if t.kind == kTarget && place == "a model" {
			d.Hint("parameters of a model stand in the parentheses after its name")
		}
		if place == "a file" && (t.word("block") || t.word("forward") || t.word("preset") || t.word("weights") || t.word("init")) {
			d.Hint("`%s` stands in a model", t.text)
		}
		return false
	}
	d.Hint("did you mean `%s`?", near)
	l.bad = true
	t.text, t.kind = near, kIdent
	if reserved[near] {
		t.kind = kKeyword
	}
	return true
}

// atMargin says that a line begins at an offset, without any indentation.
func (p *parser) atMargin(at int) bool {
	return at == 0 || p.file.Text[at-1] == '\n'
}

func (p *parser) decls(f *ast.File, lines []*line) {
	lost := false
	for _, l := range lines {
		if !p.head(l, []string{"model", "train", "use"}, "a file", &lost) {
			continue
		}
		k := kModelBody
		if l.toks[0].word("train") {
			k = kTrainBody
		}
		setBodies(l.toks, k)
		g := tryLine(p, declParser, l, inFile)
		switch {
		case g == nil:
			lost = !p.orphans(l, k)
		case g.Use != nil:
			f.Decls = append(f.Decls, p.use(g.Use))
		case g.Model != nil:
			f.Decls = append(f.Decls, p.model(g.Model))
		case g.Train != nil:
			f.Decls = append(f.Decls, p.train(g.Train))
		}
	}
}

// orphans reads the bodies of a line whose head was not understood, for their errors. It is
// false when there is none.
func (p *parser) orphans(l *line, k kind) (any bool) {
	for i := range l.toks {
		g := l.toks[i].body
		if g == nil {
			continue
		}
		any = true
		switch k {
		case kModelBody:
			p.items(&ast.Model{}, g)
		case kTrainBody:
			p.fields(g)
		case kPresetBody:
			p.presetArgs(g)
		case kWeightBody:
			p.weightStmts(g)
		default:
			p.stmts(g)
		}
	}
	return any
}

var itemWords = []string{"block", "forward", "init", "preset", "weights"}

func (p *parser) items(m *ast.Model, body *group) {
	lost := false
	for _, l := range body.lines {
		if !p.head(l, itemWords, "a model", &lost) {
			continue
		}
		k := kStmtBody
		switch l.toks[0].text {
		case "preset":
			k = kPresetBody
		case "weights":
			k = kWeightBody
		case "init":
			// `init` is a name like any other, so a value in parentheses after it looks like a call.
			l.toks[0].kind = kIdent
		}
		setBodies(l.toks, k)
		g := tryLine(p, itemParser, l, inModel)
		switch {
		case g == nil:
			lost = !p.orphans(l, k)
		case g.Preset != nil:
			m.Presets = append(m.Presets, p.preset(g.Preset))
		case g.Init != nil:
			m.Inits = append(m.Inits, p.init(g.Init))
		case g.Block != nil:
			m.Blocks = append(m.Blocks, p.block(g.Block))
		case g.Forward != nil:
			m.Forwards = append(m.Forwards, p.forward(g.Forward))
		case g.Weights != nil:
			m.Weights = append(m.Weights, p.weights(g.Weights))
		}
	}
}

func (p *parser) presetArgs(body *group) []*ast.Arg {
	var out []*ast.Arg
	for _, l := range body.lines {
		if g := tryLine(p, presetParser, l, inPreset); g != nil {
			for _, n := range g.Args {
				out = append(out, p.named(n))
			}
		} else {
			p.orphans(l, kStmtBody)
		}
	}
	return out
}

func (p *parser) fields(body *group) []*ast.Field {
	var out []*ast.Field
	for _, l := range body.lines {
		if g := tryLine(p, fieldParser, l, inTrain); g != nil {
			out = append(out, p.field(g))
		} else {
			p.orphans(l, kStmtBody)
		}
	}
	return out
}

func (p *parser) stmts(body *group) []ast.Stmt {
	var out []ast.Stmt
	for _, l := range body.lines {
		setBodies(l.toks, kStmtBody)
		if g := tryLine(p, stmtParser, l, inBlock); g != nil {
			out = append(out, p.stmt(g))
		} else {
			p.orphans(l, kStmtBody)
		}
	}
	return out
}

func (p *parser) weightStmts(body *group) []ast.WeightStmt {
	var out []ast.WeightStmt
	for _, l := range body.lines {
		setBodies(l.toks, kWeightBody)
		if g := tryLine(p, weightParser, l, inWeights); g != nil {
			out = append(out, p.weightStmt(g))
		} else {
			p.orphans(l, kWeightBody)
		}
	}
	return out
}
