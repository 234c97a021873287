package front

import (
	"strings"

	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/diag/suggest"
	"github.com/megatrain/mtc/lang/source"
)

// target is the model to compile and every place that gives its parameters values.
type target struct {
	name   ast.Ident
	model  *ast.Model   // with the body
	chain  []*ast.Model // instances, from the one next to model outwards
	preset *ast.Preset
	sets   []*setting
	train  *ast.Train // of the main file, nil without
	trains []*setting // --set train.x
}

// setting is one --set.
type setting struct {
	key   ast.Ident
	value ast.Expr
	unit  *ast.Ident
}

// Target chooses the model: --model, or the only own model of the file. It follows
// instances to the model with the body and reads --preset and --set.
func Target(s *State) {
	t := &target{}
	s.target = t
	once := s.declared()
	for _, d := range s.Main.Decls {
		if tr, ok := d.(*ast.Train); ok {
			if t.train == nil {
				t.train = tr
			} else {
				s.errorf(codeTwice, headSpan(tr.Span, "train"), "a file has one `train` block").
					Also(headSpan(t.train.Span, "train"), "the first one")
			}
		}
	}
	m := s.choose(once)
	s.readSets(m)
	if m == nil {
		return
	}
	t.name = m.Name
	s.resolve(m)
	if t.model == nil {
		return
	}
	if s.In.Preset != "" {
		var names []string
		for _, p := range t.model.Presets {
			names = append(names, p.Name.Name)
			if p.Name.Name == s.In.Preset {
				t.preset = p
			}
		}
		if t.preset == nil {
			d := s.errorf(codeUnknown, source.Span{}, "model `%s` has no preset `%s`", t.model.Name.Name, s.In.Preset)
			if len(names) == 0 {
				d.Hint("a preset is declared in the model: `preset %s { ... }`", s.In.Preset)
			} else {
				d.Hint("%s", suggest.HintOr(s.In.Preset, names))
			}
		}
	}
	params := paramNames(t.model)
	for _, set := range t.sets {
		name := set.key.Name
		if indexOf(params, name) >= 0 {
			continue
		}
		d := s.errorf(codeUnknown, set.key.Span, "model `%s` has no parameter `%s`", t.model.Name.Name, name)
		switch {
		case name == "T" || name == "B":
			field := map[string]string{"T": "seq", "B": "batch"}[name]
			d.Hint("`%s` is built in, and follows from `%s` of the train block: `--set train.%s=...`", name, field, field)
		case findField(name) != nil:
			d.Hint("did you mean `train.%s`?", name)
		case suggest.Nearest(name, params) == "" && suggest.Nearest(name, fieldNames()) != "":
			d.Hint("did you mean `train.%s`?", suggest.Nearest(name, fieldNames()))
		default:
			d.Hint("%s", suggest.HintOr(name, params))
		}
	}
}

// declared reports models declared twice, or declared and used under one name.
func (s *State) declared() (once bool) {
	before := s.Diags.Len()
	defer func() { once = s.Diags.Len() == before }()
	for _, f := range s.Files {
		seen := map[string]*ast.Model{}
		for _, u := range s.uses[f] {
			for _, m := range ownModels(u) {
				if first := seen[m.Name.Name]; first != nil && first != m {
					s.errorf(codeTwice, m.Name.Span, "two used files have a model `%s`", m.Name.Name).
						Also(first.Name.Span, "the first one")
					continue
				}
				seen[m.Name.Name] = m
			}
		}
		for _, m := range ownModels(f) {
			if first := seen[m.Name.Name]; first != nil {
				s.errorf(codeTwice, m.Name.Span, "model `%s` is declared twice", m.Name.Name).
					Also(first.Name.Span, "the first one")
				continue
			}
			seen[m.Name.Name] = m
		}
	}
	return false
}

// choose finds the model that --model names, or the file's only own one.
func (s *State) choose(once bool) *ast.Model {
	own := ownModels(s.Main)
	if s.In.Model != "" {
		if m := s.lookupModel(s.Main, s.In.Model); m != nil {
			return m
		}
		d := s.errorf(codeUnknown, source.Span{}, "%s has no model `%s`", s.Main.Source.Name, s.In.Model)
		if names := s.modelNames(s.Main); len(names) > 0 {
			d.Hint("%s", suggest.HintOr(s.In.Model, names))
		}
		return nil
	}
	switch len(own) {
	case 1:
		return own[0]
	case 0:
		at := source.Span{File: s.Main.Source}
		d := s.errorf(codeWhichModel, at, "this file declares no model")
		if names := s.modelNames(s.Main); len(names) > 0 {
			d.Hint("make an instance of a used one, `model mine = %s(...)`, or choose it with `--model %s`", names[0], names[0])
		} else {
			d.Hint("`mtc new` writes a small model to start from")
		}
		return nil
	}
	if !once {
		return nil // two of one name: the choice is not the problem
	}
	var names []string
	for _, m := range own {
		names = append(names, m.Name.Name)
	}
	d := s.errorf(codeWhichModel, own[1].Name.Span, "this file declares %d models: which one is meant?", len(own)).
		Also(own[0].Name.Span, "the first one")
	d.Hint("choose with `--model`: %s", suggest.List(names))
	return nil
}

// resolve follows instances from m to the model with a body.
func (s *State) resolve(m *ast.Model) {
	t := s.target
	seen := map[*ast.Model]bool{}
	for m.Instance != nil {
		if seen[m] {
			s.errorf(codeUseCycle, m.Instance.Callee.Span, "model `%s` is an instance of itself", m.Name.Name).
				Hint("one model of the circle needs a body")
			return
		}
		seen[m] = true
		t.chain = append([]*ast.Model{m}, t.chain...)
		f := s.fileOf(m)
		base := s.lookupModel(f, m.Instance.Callee.Name)
		if base == nil {
			return // the names pass reports it
		}
		m = base
	}
	t.model = m
}

// baseOf returns the model with a body behind m, nil when names or circles prevent it.
func (s *State) baseOf(m *ast.Model) *ast.Model {
	for range 1 + maxFiles {
		if m == nil || m.Instance == nil {
			return m
		}
		m = s.lookupModel(s.fileOf(m), m.Instance.Callee.Name)
	}
	return nil
}

// readSets parses every --set. Keys are looked up by Target and by the train pass.
func (s *State) readSets(m *ast.Model) {
	for _, text := range s.In.Set {
		key, value, ok := strings.Cut(text, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !ok || key == "" || value == "" {
			s.errorf(codeSet, source.Span{}, "`--set %s` has no value", text).Hint("write `--set name=value`, for example `--set D=512`")
			continue
		}
		name, isTrain := strings.CutPrefix(key, "train.")
		if set := s.parseSetting(name, value); set != nil {
			if isTrain {
				s.target.trains = append(s.target.trains, set)
			} else {
				s.target.sets = append(s.target.sets, set)
			}
		}
	}
}

// fileOf returns the file that declares m.
func (s *State) fileOf(m *ast.Model) *ast.File {
	for _, f := range s.Files {
		if f.Source == m.Name.Span.File {
			return f
		}
	}
	return s.Main
}

// lookupModel finds a model by name: f's own, then those of the files it uses.
func (s *State) lookupModel(f *ast.File, name string) *ast.Model {
	by := s.models[f]
	if by == nil {
		by = map[string]*ast.Model{}
		for _, g := range append([]*ast.File{f}, s.uses[f]...) {
			for _, m := range ownModels(g) {
				if by[m.Name.Name] == nil {
					by[m.Name.Name] = m
				}
			}
		}
		s.models[f] = by
	}
	return by[name]
}

func (s *State) modelNames(f *ast.File) []string {
	var names []string
	for _, g := range append([]*ast.File{f}, s.uses[f]...) {
		for _, m := range ownModels(g) {
			names = append(names, m.Name.Name)
		}
	}
	return names
}

func ownModels(f *ast.File) []*ast.Model {
	var out []*ast.Model
	for _, d := range f.Decls {
		if m, ok := d.(*ast.Model); ok {
			out = append(out, m)
		}
	}
	return out
}

func paramNames(m *ast.Model) []string {
	var out []string
	for _, p := range m.Params {
		out = append(out, p.Name.Name)
	}
	return out
}

// headSpan is the keyword at the start of a declaration, so that a message does not underline all of it.
func headSpan(s source.Span, word string) source.Span {
	if s.Valid() && s.End-s.Start > len(word) {
		s.End = s.Start + len(word)
	}
	return s
}
