package front

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/diag/suggest"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/plan"
)

// Train checks the train block of the main file with the --set train.x laid over it. Without
// either there is no ir.Train, and B and T stay symbolic.
func Train(s *State) {
	t := s.target
	if t.train == nil && len(t.trains) == 0 {
		return
	}
	c := &trainCheck{s: s, fields: map[string]*ast.Field{}}
	if t.train != nil {
		c.at, c.text = headSpan(t.train.Span, "train"), t.train.Fields
		first := map[string]source.Span{}
		for _, f := range t.train.Fields {
			if at, twice := first[f.Name.Name]; twice {
				s.errorf(codeTwice, f.Name.Span, "`%s` is set twice", f.Name.Name).Also(at, "the first time")
				continue
			}
			first[f.Name.Name] = f.Name.Span
			c.add(f)
		}
	}
	c.text = nil // a --set may name any field
	c.oneLength()
	for _, set := range t.trains {
		f := set.field()
		switch f.Name.Name { // one of the two says how long the run is
		case "steps":
			delete(c.fields, "epochs")
		case "epochs":
			delete(c.fields, "steps")
		}
		c.add(f)
	}
	c.run()
}

// trainCheck holds the fields in force.
type trainCheck struct {
	s      *State
	at     source.Span
	text   []*ast.Field          // as written
	fields map[string]*ast.Field // in force
	out    ir.Train
}

func (c *trainCheck) add(f *ast.Field) {
	if findField(f.Name.Name) == nil {
		for _, tf := range trainFields {
			if findCtor(tf.param.Ctors, f.Name.Name) != nil {
				c.s.errorf(codeTrainField, f.Name.Span, "the train block has no field `%s`", f.Name.Name).
					Hint("`%s` is a value: write `%s = %s(...)`", f.Name.Name, tf.param.Name, f.Name.Name)
				return
			}
		}
		d := c.s.errorf(codeTrainField, f.Name.Span, "the train block has no field `%s`", f.Name.Name)
		if h := foreignFields[f.Name.Name]; h != "" {
			d.Hint("%s", h)
		} else {
			d.Hint("%s", suggest.HintOr(f.Name.Name, c.unset()))
		}
		return
	}
	c.fields[f.Name.Name] = f
}

// unset lists the fields that the text does not set: a misspelt one is one of them.
func (c *trainCheck) unset() []string {
	var out []string
	for _, name := range fieldNames() {
		if !slices.ContainsFunc(c.text, func(f *ast.Field) bool { return f.Name.Name == name }) {
			out = append(out, name)
		}
	}
	return out
}

func (c *trainCheck) run() {
	s := c.s
	for _, tf := range trainFields {
		if f := c.fields[tf.param.Name]; f != nil {
			c.unit(f, &tf)
		}
	}
	r := &c.out.Run
	c.out.Span = c.at
	r.Data = c.data("data")
	r.Width = int(c.width())
	seq, okSeq := c.int("seq", 1)
	batch, okBatch := c.int("batch", 1)
	r.Steps, _ = c.int("steps", 1)
	r.Epochs = c.epochs()
	r.Optimizer = c.optimizer()
	r.LR = c.schedule(r.Steps)
	if shrinks := r.LR.Peak * r.Optimizer.Decay; shrinks >= 1 {
		s.Diags.Warnf(codeTrainValue, c.at, "a step multiplies matrices by 1 - lr * decay, which is %.3g at the peak of the learning rate", 1-shrinks).
			Hint("`decay` of `adamw` is a share of the weights for a learning rate of 1, often 0.1")
	}
	r.Clip = c.clip()
	c.eval(r)
	c.save(r)
	r.Seed, _ = c.int("seed", 0)
	c.out.Precision = c.word("precision")
	c.out.Documents = c.word("documents") == "packed"
	c.lora()
	var missing []string
	for _, name := range []string{"seq", "batch"} {
		if c.fields[name] == nil {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		s.errorf(codeTrainField, c.at, "the train block needs %s", inOrder(missing)).
			Hint("for example `seq = 1024` and `batch = 524288 tokens`")
	}
	if okSeq {
		s.Model.Seq = seq
	}
	if okSeq && okBatch {
		c.batch(seq, batch)
	}
	s.Model.Train = &c.out
}

// unit checks the unit word of a field.
func (c *trainCheck) unit(f *ast.Field, tf *trainField) {
	name := f.Name.Name
	switch {
	case f.Unit == nil && tf.must:
		c.s.errorf(codeTrainUnit, f.Value.Pos(), "`%s` needs a unit", name).
			Hint("write `%s = %s %s` or `%s = %s %s`", name, f.Value.Pos().Text(), tf.units[0], name, f.Value.Pos().Text(), tf.units[1])
	case f.Unit == nil:
	case len(tf.units) == 0:
		c.s.errorf(codeTrainUnit, f.Unit.Span, "`%s` takes no unit", name).Hint("write `%s = %s`", name, f.Value.Pos().Text())
	case indexOf(tf.units, f.Unit.Name) < 0:
		d := c.s.errorf(codeTrainUnit, f.Unit.Span, "`%s` is not a unit of `%s`", f.Unit.Name, name)
		if n := suggest.Nearest(f.Unit.Name, tf.units); n != "" {
			d.Hint("did you mean `%s`?", n)
		} else {
			d.Hint("write %s%s", unitList(tf.units), map[bool]string{false: ", or no unit"}[tf.must])
		}
	}
}

// batch sets B and the tokens of a step.
func (c *trainCheck) batch(seq, n int64) {
	f, m := c.fields["batch"], c.s.Model
	if f.Unit == nil || indexOf(findField("batch").units, f.Unit.Name) < 0 {
		return // reported with the unit
	}
	if f.Unit.Name == "rows" {
		tokens, ok := mul(n, seq)
		if !ok || tokens > maxElems {
			c.s.errorf(codeOverflow, f.Value.Pos(), "a batch of %d rows of %d tokens is too large", n, seq)
			return
		}
		m.Batch, c.out.BatchTokens = n, tokens
		c.tokens()
		return
	}
	if n%seq != 0 {
		message := fmt.Sprintf("a batch of %d tokens is not a whole number of rows of seq = %d: the rest is %d", n, seq, n%seq)
		if n < seq {
			message = fmt.Sprintf("a batch of %d tokens is less than one row of seq = %d", n, seq)
		}
		d := c.s.errorf(codeBatch, f.Value.Pos(), "%s", message)
		if sf := c.fields["seq"]; sf != nil && sf.Value.Pos().File == f.Value.Pos().File {
			d.Also(sf.Value.Pos(), "tokens of a row")
		}
		if n > seq {
			d.Hint("`batch = %d tokens` is %d rows", n/seq*seq, n/seq)
		} else {
			d.Hint("a batch has at least one row: `batch = %d tokens`", seq)
		}
		return
	}
	if n > maxElems {
		c.s.errorf(codeOverflow, f.Value.Pos(), "a batch of %d tokens is too large", n)
		return
	}
	m.Batch, c.out.BatchTokens = n/seq, n
	c.tokens()
}

// tokens bounds those of the whole run.
func (c *trainCheck) tokens() {
	if _, ok := mul(c.out.BatchTokens, c.out.Run.Steps); ok {
		return
	}
	at := c.at
	if f := c.fields["steps"]; f != nil {
		at = f.Value.Pos()
	}
	c.s.errorf(codeOverflow, at, "%d steps of %d tokens are more than can be counted", c.out.Run.Steps, c.out.BatchTokens)
}

// value evaluates a field, or takes its default. ok is false when it is bad or absent.
func (c *trainCheck) value(name string) (v op.Value, at source.Span, ok bool) {
	tf := findField(name)
	f := c.fields[name]
	if f == nil {
		if tf.param.Default == nil {
			return v, c.at, false
		}
		return *tf.param.Default, c.at, true
	}
	v, ok = c.eval1(f.Value, &tf.param, "train")
	return v, f.Value.Pos(), ok
}

// eval1 checks and evaluates one value of the block.
func (c *trainCheck) eval1(e ast.Expr, p *op.Param, callee string) (op.Value, bool) {
	before := c.s.Diags.Len()
	n := c.s.newNames(&ast.Model{}, 0)
	n.plain = true
	c.s.labels[n.model] = &labelSet{}
	n.expr(e, p)
	if c.s.Diags.Len() > before {
		return op.Value{}, false
	}
	v, ok := c.s.eval(e, nil, p)
	if !ok {
		return v, false
	}
	if p.Name == "lr" && isNumber(v) { // short for constant(peak = v)
		return v, c.s.single(v.Num(), "lr", callee, e.Pos())
	}
	return c.s.fit(v, p, callee, e)
}

func (c *trainCheck) int(name string, least int64) (int64, bool) {
	v, at, ok := c.value(name)
	if !ok {
		return 0, false
	}
	if v.Int < least {
		c.s.errorf(codeTrainValue, at, "`%s` is at least %d, not %d", name, least, v.Int)
		return 0, false
	}
	return v.Int, true
}

// oneLength refuses a text that says twice how long the run is.
func (c *trainCheck) oneLength() {
	steps, epochs := c.fields["steps"], c.fields["epochs"]
	if steps != nil && epochs != nil && epochs.Value.Pos().Text() != "none" {
		c.s.errorf(codeTwice, epochs.Name.Span, "`epochs` and `steps` both say how long the run is").Also(steps.Name.Span, "the other one").
			Hint("leave one of them out")
	}
}

func (c *trainCheck) epochs() int64 {
	if v, _, ok := c.value("epochs"); !ok || v.IsNone() {
		return 0
	}
	n, _ := c.int("epochs", 1)
	return n
}

func (c *trainCheck) width() int64 {
	v, at, ok := c.value("width")
	if ok && v.Int != 0 && v.Int != 1 && v.Int != 2 && v.Int != 4 {
		c.s.errorf(codeTrainValue, at, "a token is 1, 2 or 4 bytes wide, not %d", v.Int).
			Hint("`width = 2 bytes` reads uint16, `width = 4 bytes` uint32")
	}
	return v.Int
}

func (c *trainCheck) word(name string) string {
	v, _, _ := c.value(name)
	return v.Str
}

func (c *trainCheck) clip() float64 {
	v, at, ok := c.value("clip")
	if ok && !v.IsNone() && !(v.Num() > 0) {
		c.s.errorf(codeTrainValue, at, "`clip` is above 0, not %s", at.Text()).Hint("`clip = none` turns it off")
	}
	return v.Num()
}

// args evaluates the arguments of a constructor, with the span of each for messages.
func (c *trainCheck) args(name string) (ctor string, vals map[string]op.Value, at map[string]source.Span, ok bool) {
	v, span, ok := c.value(name)
	if !ok || v.IsNone() {
		return "", nil, nil, false
	}
	tf := findField(name)
	decl := findCtor(tf.param.Ctors, v.Str)
	vals, at = map[string]op.Value{}, map[string]source.Span{}
	for i, p := range decl.Params {
		at[p.Name] = span
		if i < len(v.Args) {
			vals[p.Name] = v.Args[i]
		} else {
			vals[p.Name] = *p.Default
		}
	}
	if f := c.fields[name]; f != nil {
		if call, isCall := unparen(f.Value).(*ast.Call); isCall {
			for i, b := range (*binder)(nil).bind(declSig("word", decl.Name, decl.Params), call.Args, call.Span) {
				if b.given() {
					at[decl.Params[i].Name] = b.arg.Value.Pos()
				}
			}
		}
	}
	return decl.Name, vals, at, true
}

// check reports a number outside its range.
func (c *trainCheck) check(fits bool, at source.Span, name, want string, v op.Value) {
	if !fits {
		got := v.String()
		if text := at.Text(); text != "" && isNumber(v) && text != "train" {
			got = text // as it was written: an int may have become a float
		}
		c.s.errorf(codeTrainValue, at, "`%s` is %s, not %s", name, want, got)
	}
}

func (c *trainCheck) optimizer() plan.AdamW {
	_, v, at, ok := c.args("optimizer")
	if !ok {
		return plan.AdamW{}
	}
	a := plan.AdamW{Beta1: v["beta1"].Num(), Beta2: v["beta2"].Num(), Eps: v["eps"].Num(), Decay: v["decay"].Num()}
	for _, name := range []string{"beta1", "beta2"} {
		x := v[name].Num()
		c.check(x >= 0 && float32(x) < 1, at[name], name, "at least 0 and below 1, in f32 too", v[name])
	}
	c.check(a.Eps > 0, at["eps"], "eps", "above 0", v["eps"])
	c.check(a.Decay >= 0, at["decay"], "decay", "at least 0", v["decay"])
	return a
}

func (c *trainCheck) schedule(steps int64) plan.Schedule {
	v, span, ok := c.value("lr")
	if !ok {
		return plan.Schedule{}
	}
	if isNumber(v) {
		c.check(v.Num() > 0, span, "lr", "above 0", v)
		return plan.Schedule{Kind: "constant", Peak: v.Num()}
	}
	kind, a, at, ok := c.args("lr")
	if !ok {
		return plan.Schedule{}
	}
	sc := plan.Schedule{Kind: kind, Peak: a["peak"].Num(), Warmup: a["warmup"].Int, Final: a["final"].Num(), Decay: a["decay"].Int}
	c.check(sc.Peak > 0, at["peak"], "peak", "above 0", a["peak"])
	c.check(sc.Warmup >= 0, at["warmup"], "warmup", "at least 0", a["warmup"])
	c.check(sc.Final >= 0, at["final"], "final", "at least 0", a["final"])
	if kind == "wsd" {
		c.check(sc.Decay >= 1, at["decay"], "decay", "at least 1", a["decay"])
	}
	// A short run of a long recipe is a fine thing to try, so this is no error.
	if steps > 0 && sc.Warmup >= 0 && sc.Decay >= 0 && sc.Warmup > math.MaxInt64-sc.Decay || steps > 0 && sc.Warmup+sc.Decay > steps {
		c.s.Diags.Warnf(codeTrainValue, at["warmup"], "warm-up and decay take %d steps, the run has %d", sc.Warmup+sc.Decay, steps)
	}
	return sc
}

func (c *trainCheck) eval(r *plan.Train) {
	_, v, at, ok := c.args("eval")
	if !ok {
		return
	}
	c.check(v["n"].Int >= 1, at["n"], "n", "at least 1", v["n"])
	c.check(v["batches"].IsNone() || v["batches"].Int >= 1, at["batches"], "batches", "at least 1", v["batches"])
	r.EvalEvery, r.EvalSteps = v["n"].Int, v["batches"].Int
	if d := v["data"]; !d.IsNone() {
		r.EvalData = c.paths(d, at["data"])
	}
}

func (c *trainCheck) save(r *plan.Train) {
	_, v, at, ok := c.args("save")
	if !ok {
		return
	}
	c.check(v["n"].Int >= 1, at["n"], "n", "at least 1", v["n"])
	c.check(v["keep"].Int >= 1, at["keep"], "keep", "at least 1", v["keep"])
	r.SaveEvery, r.SaveKeep = v["n"].Int, v["keep"].Int
}

func (c *trainCheck) data(name string) []string {
	v, at, ok := c.value(name)
	if !ok || v.IsNone() {
		return nil
	}
	return c.paths(v, at)
}

// paths reads a path or pattern.
func (c *trainCheck) paths(v op.Value, at source.Span) []string {
	if v.Str == "" {
		c.s.errorf(codeTrainValue, at, "the path is empty").Hint("write a file, a folder or a pattern: `\"data/*.bin\"`")
		return nil
	}
	// A path of the command line is relative to the working folder, one of the file to the file.
	if at.File != nil && at.File.Name == setName && !filepath.IsAbs(v.Str) {
		if abs, err := filepath.Abs(v.Str); err == nil {
			return []string{abs}
		}
	}
	return []string{v.Str}
}

func unparen(e ast.Expr) ast.Expr {
	for {
		p, ok := e.(*ast.Paren)
		if !ok {
			return e
		}
		e = p.X
	}
}
