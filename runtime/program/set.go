package program

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/plan"
)

// Setting train fields. `--set train.k=v` takes the text of a train block, as far as it
// stands for plain values: numbers, words, strings and constructor calls of those. The
// schedule is compiled in, so a field that shapes it cannot be set here.

// Ctor is a constructor of the train block with the defaults of its arguments; NaN-free: a
// required argument has Required set. The compiler declares the same ones; a test compares.
type Ctor struct {
	Name string
	Args []CtorArg
}

// CtorArg is one argument.
type CtorArg struct {
	Name     string
	Default  string // text, "" when required
	Required bool
}

var (
	peak   = CtorArg{Name: "peak", Required: true}
	warmup = CtorArg{Name: "warmup", Default: "0"}
	final  = CtorArg{Name: "final", Default: "0.0"}
)

// Ctors are the constructors that --set understands, by field.
var Ctors = map[string][]Ctor{
	"lr": {
		{"constant", []CtorArg{peak, warmup}},
		{"linear", []CtorArg{peak, warmup, final}},
		{"cosine", []CtorArg{peak, warmup, final}},
		{"wsd", []CtorArg{peak, warmup, final, {Name: "decay", Required: true}}},
	},
	"optimizer": {{"adamw", []CtorArg{{Name: "beta1", Default: "0.9"}, {Name: "beta2", Default: "0.95"},
		{Name: "eps", Default: "1e-08"}, {Name: "decay", Default: "0.1"}}}},
	"eval": {{"every", []CtorArg{{Name: "n", Required: true}, {Name: "data", Default: "none"}, {Name: "batches", Default: "none"}}}},
	"save": {{"every", []CtorArg{{Name: "n", Required: true}, {Name: "keep", Default: "3"}}}},
}

// Free are the fields that --set can change without compiling again; Fixed shape the schedule.
var (
	Free  = []string{"data", "width", "steps", "epochs", "optimizer", "lr", "clip", "eval", "save", "seed"}
	Fixed = []string{"seq", "batch", "precision", "documents", "lora"}
)

// ChangesSchedule says whether a setting can only be made by compiling: a parameter of the
// model, a field that shapes the schedule, or one that turns a part of it on or off.
func ChangesSchedule(p *plan.Plan, setting string) bool {
	key, value, _ := strings.Cut(setting, "=")
	key, inTrain := strings.CutPrefix(strings.TrimSpace(key), "train.")
	value = strings.TrimSpace(value)
	if !inTrain {
		return true
	}
	for _, f := range Fixed {
		if key == f {
			return true
		}
	}
	return key == "clip" && p.Clip == (value == "none")
}

// set applies one --set to the train block t.
func (p *Program) set(t *plan.Train, setting string) error {
	key, text, ok := strings.Cut(setting, "=")
	key, text = strings.TrimSpace(key), strings.TrimSpace(text)
	if !ok || text == "" {
		return usagef("`--set %s` has no value", setting).hint("write `--set train.lr=1e-3`")
	}
	if ChangesSchedule(p.Plan, setting) {
		return usagef("`%s` changes the schedule, which is compiled into this program", key).
			hint("`mtc run %s --set %s` compiles again and runs", fault.Shell(p.Plan.Source), fault.Shell(setting))
	}
	field := strings.TrimPrefix(key, "train.")
	if !contains(Free, field) {
		return usagef("the train block has no field `%s`", field).hint("%s", didYouMean(field, append(append([]string{}, Free...), Fixed...)))
	}
	v, err := parseValue(text, map[string]string{"width": "bytes", "steps": "steps", "epochs": "epochs"}[field])
	if err == nil {
		err = apply(t, field, v)
	}
	if tokens := p.Plan.Batch * p.Plan.Seq; err == nil && t.Steps > math.MaxInt64/max(1, tokens) {
		err = fmt.Errorf("%d steps of %d tokens are more than can be counted", t.Steps, tokens)
	}
	if err != nil {
		return usagef("`--set %s`: %v", setting, err)
	}
	return nil
}

func contains(list []string, word string) bool {
	for _, w := range list {
		if w == word {
			return true
		}
	}
	return false
}

// apply sets a field of the train block.
func apply(t *plan.Train, field string, v value) error {
	switch field {
	case "data":
		if v.none() {
			t.Data = nil
			return nil
		}
		return v.text(&t.Data)
	case "width":
		var n int64
		err := v.integer(&n, 0)
		if t.Width = int(n); err == nil && n != 0 && n != 1 && n != 2 && n != 4 {
			err = fmt.Errorf("a token is 1, 2 or 4 bytes wide, not %d", n)
		}
		return err
	case "steps":
		t.Epochs = 0
		return v.integer(&t.Steps, 1)
	case "epochs":
		if v.none() {
			t.Epochs = 0
			return nil
		}
		return v.integer(&t.Epochs, 1)
	case "seed":
		return v.integer(&t.Seed, 0)
	case "clip":
		if v.none() {
			t.Clip = 0
			return nil
		}
		return v.above0(&t.Clip)
	case "lr":
		if v.isNumber {
			t.LR = plan.Schedule{Kind: "constant"}
			return v.above0(&t.LR.Peak)
		}
	case "eval", "save":
		if v.none() {
			if field == "save" {
				t.SaveEvery = 0
			} else {
				t.EvalEvery, t.EvalData, t.EvalSteps = 0, nil, 0
			}
			return nil
		}
	}
	c, args, err := v.bind(Ctors[field])
	if err != nil {
		return err
	}
	switch field {
	case "lr":
		t.LR = plan.Schedule{Kind: c.Name}
		err = first(args["peak"].above0(&t.LR.Peak), args["warmup"].integer(&t.LR.Warmup, 0))
		if f, ok := args["final"]; ok {
			err = first(err, f.least0(&t.LR.Final))
		}
		if d, ok := args["decay"]; ok {
			err = first(err, d.integer(&t.LR.Decay, 1))
		}
	case "optimizer":
		o := &t.Optimizer
		err = first(args["beta1"].share(&o.Beta1), args["beta2"].share(&o.Beta2),
			args["eps"].above0(&o.Eps), args["decay"].least0(&o.Decay))
	case "eval":
		t.EvalSteps = 0
		err = args["n"].integer(&t.EvalEvery, 1)
		if b := args["batches"]; !b.none() {
			err = first(err, b.integer(&t.EvalSteps, 1))
		}
		if d := args["data"]; !d.none() {
			err = first(err, d.text(&t.EvalData))
		} else if !d.byDefault {
			t.EvalData = nil
		}
	case "save":
		err = first(args["n"].integer(&t.SaveEvery, 1), args["keep"].integer(&t.SaveKeep, 1))
	}
	return err
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// value is a parsed value.
type value struct {
	source   string
	isNumber bool
	number   float64
	word     string // word, string text, or name of a call
	quoted   bool
	call     bool
	names    []string // of the arguments, "" where positional
	args     []value

	byDefault bool
}

// none says that a value is the word none.
func (v value) none() bool { return v.word == "none" && !v.quoted && !v.call }

func (v value) integer(to *int64, least int64) error {
	n, err := strconv.ParseInt(v.source, 10, 64) // a float64 does not hold every seed
	if err != nil || n < least {
		return fmt.Errorf("wanted a whole number of at least %d, not `%s`", least, v.source)
	}
	*to = n
	return nil
}

// real takes a number that is what is wanted, and is that in f32 too.
func (v value) real(to *float64, want string, fits func(x float64) bool) error {
	x, y := v.number, float64(float32(v.number))
	if !v.isNumber || !fits(x) || !fits(y) || math.IsInf(y, 0) || x != 0 && y == 0 {
		return fmt.Errorf("wanted a number %s, in f32 too, not `%s`", want, v.source)
	}
	*to = x
	return nil
}

func (v value) above0(to *float64) error {
	return v.real(to, "above 0", func(x float64) bool { return x > 0 })
}

func (v value) least0(to *float64) error {
	return v.real(to, "of at least 0", func(x float64) bool { return x >= 0 })
}

func (v value) share(to *float64) error {
	return v.real(to, "of at least 0 and below 1", func(x float64) bool { return x >= 0 && x < 1 })
}

func (v value) text(to *[]string) error {
	if !v.quoted || v.word == "" {
		return fmt.Errorf("wanted a path in quotes, not `%s`", v.source)
	}
	*to = []string{v.word}
	return nil
}

// bind matches a call, or a bare word, with one of the constructors of a field.
func (v value) bind(ctors []Ctor) (c *Ctor, args map[string]value, err error) {
	var names []string
	for i := range ctors {
		names = append(names, ctors[i].Name)
		if ctors[i].Name == v.word && !v.quoted {
			c = &ctors[i]
		}
	}
	if c == nil {
		return nil, nil, fmt.Errorf("wanted %s, not `%s`; %s", strings.Join(names, ", "), v.source, didYouMean(v.word, names))
	}
	args = map[string]value{}
	var known []string
	for _, a := range c.Args {
		known = append(known, a.Name)
	}
	for i, x := range v.args {
		name := v.names[i]
		switch {
		case name == "" && i >= len(c.Args):
			return nil, nil, fmt.Errorf("`%s` takes %d arguments", c.Name, len(c.Args))
		case name == "":
			name = c.Args[i].Name
		case !contains(known, name):
			return nil, nil, fmt.Errorf("`%s` has no argument `%s`; %s", c.Name, name, didYouMean(name, known))
		}
		if _, twice := args[name]; twice {
			return nil, nil, fmt.Errorf("`%s` is given twice", name)
		}
		args[name] = x
	}
	for _, a := range c.Args {
		if _, given := args[a.Name]; given {
			continue
		}
		if a.Required {
			return nil, nil, fmt.Errorf("`%s` needs `%s`", c.Name, a.Name)
		}
		v, err := parseValue(a.Default, "")
		if err != nil {
			return nil, nil, err
		}
		v.byDefault = true
		args[a.Name] = v
	}
	return c, args, nil
}

// parseValue parses a whole text; unit is the word that may follow, `width = 2 bytes`.
func parseValue(text, unit string) (value, error) {
	p := &valueParser{rest: text}
	v, err := p.value()
	p.space()
	if err == nil {
		if u := p.ident(); u != "" && u != unit {
			err = fmt.Errorf("`%s` is not a unit", u)
		}
		p.space()
	}
	if err == nil && p.rest != "" {
		err = fmt.Errorf("`%s` is more than a plain value; `mtc run` evaluates expressions", text)
	}
	return v, err
}

// number is one of the language.
var number = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?`)

type valueParser struct{ rest string }

func (p *valueParser) space() { p.rest = strings.TrimLeft(p.rest, " \t") }

func (p *valueParser) ident() string {
	n := 0
	for n < len(p.rest) && (unicode.IsLetter(rune(p.rest[n])) || p.rest[n] == '_' || n > 0 && unicode.IsDigit(rune(p.rest[n]))) {
		n++
	}
	s := p.rest[:n]
	p.rest = p.rest[n:]
	return s
}

func (p *valueParser) take(c string) bool {
	p.space()
	rest, ok := strings.CutPrefix(p.rest, c)
	if ok {
		p.rest = rest
	}
	return ok
}

func (p *valueParser) value() (v value, err error) {
	p.space()
	start := p.rest
	defer func() { v.source = strings.TrimSpace(start[:len(start)-len(p.rest)]) }()
	if strings.HasPrefix(p.rest, `"`) {
		q, err := strconv.QuotedPrefix(p.rest)
		if err != nil {
			return v, fmt.Errorf("the string %s is not closed", p.rest)
		}
		v.word, err = strconv.Unquote(q)
		v.quoted, p.rest = true, p.rest[len(q):]
		return v, err
	}
	if v.word = p.ident(); v.word != "" {
		if v.call = p.take("("); v.call {
			err = p.arguments(&v)
		}
		return v, err
	}
	text := number.FindString(p.rest)
	v.isNumber, p.rest = true, p.rest[len(text):]
	if v.number, err = strconv.ParseFloat(text, 64); err == nil && !strings.ContainsAny(text, ".eE") {
		_, err = strconv.ParseInt(text, 10, 64)
	}
	if err != nil || p.rest != "" && unicode.IsLetter(rune(p.rest[0])) {
		err = fmt.Errorf("`%s` is not a value", start)
	}
	return v, err
}

func (p *valueParser) arguments(v *value) error {
	for !p.take(")") {
		p.space()
		before := p.rest // on a line of its own: Go leaves open whether a call beside it comes first
		name := p.ident()
		if name == "" || !p.take("=") {
			p.rest, name = before, ""
		}
		if name == "" && len(v.names) > 0 && v.names[len(v.names)-1] != "" {
			return fmt.Errorf("a positional argument of `%s` follows a named one", v.word)
		}
		a, err := p.value()
		if err != nil {
			return err
		}
		v.names, v.args = append(v.names, name), append(v.args, a)
		if !p.take(",") && !strings.HasPrefix(p.rest, ")") {
			return fmt.Errorf("`%s(` is not closed", v.word)
		}
	}
	return nil
}

// Settable says whether a running program can make a setting, given whether its schedule
// clips: the field does not shape the schedule, and the value is a plain one that fits.
func Settable(setting string, clip bool) bool {
	p := &Program{Plan: &plan.Plan{Clip: clip}}
	var t plan.Train
	return p.set(&t, setting) == nil
}
