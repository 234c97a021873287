package jsontext

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Rule is what Read demands of a text besides that encoding/json takes it.
type Rule int

const (
	// Whole: every field is there, but those with omitempty or omitzero in their tag, and pointers.
	Whole Rule = 1 << iota
	// Known: there are no other fields.
	Known
)

// Read decodes text into v, a pointer, and refuses what encoding/json lets pass in silence: a field twice,
// one whose name has other capitals, null where that would leave a field as it was, text that a terminal
// acts on, and what the rules say; without rules the first three alone. Errors have line and column and are in plain words, as those of Explain.
func Read(text []byte, v any, rules Rule) error {
	if err := json.Unmarshal(text, v); err != nil {
		return Explain(text, err)
	}
	r := &reader{text: text, rules: rules, structs: map[reflect.Type]*fields{}}
	return r.value("", reflect.TypeOf(v).Elem())
}

// In is err about the value at a path, such as `steps[2].seconds`: Explain puts its line and column
// before it.
func In(path string, err error) error { return &located{path, err} }

type located struct {
	path string
	err  error
}

func (l *located) Error() string { return l.err.Error() }
func (l *located) Unwrap() error { return l.err }

// find is where the value at a path begins in a text that is JSON, -1 where there is none.
func find(text []byte, path string) int {
	r := &reader{text: text, wanted: path, found: -1}
	_ = r.value("", nil) // without a type and rules nothing but a name that stands twice is wrong
	return r.found
}

// reader walks a text that is known to be JSON beside the type that it was decoded into.
type reader struct {
	text    []byte
	at      int
	rules   Rule
	structs map[reflect.Type]*fields
	wanted  string // a path, and where its value begins
	found   int
}

// fields are those of a struct by name, and of them the ones that have to be there.
type fields struct {
	types  map[string]reflect.Type
	needed []string
}

func (r *reader) fields(t reflect.Type) *fields {
	if f := r.structs[t]; f != nil {
		return f
	}
	f := &fields{types: map[string]reflect.Type{}}
	for _, x := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(x.Tag.Get("json"), ",")
		if !x.IsExported() || x.Anonymous && name == "" || name == "-" {
			continue
		}
		if name == "" {
			name = x.Name
		}
		f.types[name] = x.Type
		if !strings.Contains(options, "omit") && x.Type.Kind() != reflect.Pointer {
			f.needed = append(f.needed, name)
		}
	}
	r.structs[t] = f
	return f
}

var decodes = reflect.TypeFor[json.Unmarshaler]()

// value passes a value of type t, nil where its type does not matter.
func (r *reader) value(path string, t reflect.Type) error {
	r.space()
	begin := r.at
	if path == r.wanted && r.wanted != "" {
		r.found = begin
	}
	optional := false
	for t != nil && t.Kind() == reflect.Pointer {
		t, optional = t.Elem(), true
	}
	if t != nil && reflect.PointerTo(t).Implements(decodes) {
		t = nil // it has rules of its own
	}
	switch r.text[r.at] {
	case '{':
		return r.object(path, t)
	case '[':
		return r.list(path, t)
	case '"':
		if s := r.str(); r.rules != 0 && strings.ContainsFunc(s, acts) {
			return at(r.text, begin, fmt.Sprintf("%s is %.40q, which holds characters that a terminal acts on", or(path, "the text"), s))
		}
		return nil
	}
	for r.at < len(r.text) && strings.IndexByte(",]} \t\r\n", r.text[r.at]) < 0 {
		r.at++
	}
	if string(r.text[begin:r.at]) == "null" && t != nil && !optional && !slices.Contains([]reflect.Kind{reflect.Slice, reflect.Map, reflect.Interface}, t.Kind()) {
		return at(r.text, begin, or(path, "the text")+" is null")
	}
	return nil
}

// acts reports whether a terminal takes a character for a command, or draws others elsewhere for it.
func acts(c rune) bool {
	return unicode.IsControl(c) && c != '\n' && c != '\t' || unicode.Is(unicode.Bidi_Control, c)
}

func (r *reader) object(path string, t reflect.Type) error {
	begin := r.at
	var own *fields
	var elem reflect.Type
	switch {
	case t == nil:
	case t.Kind() == reflect.Struct:
		own = r.fields(t)
	case t.Kind() == reflect.Map:
		elem = t.Elem()
	}
	seen := map[string]bool{}
	for r.at++; r.next('}'); {
		place := r.at
		name := r.str()
		if r.rules != 0 && strings.ContainsFunc(name, acts) {
			return at(r.text, place, fmt.Sprintf("the name %.40q holds characters that a terminal acts on", name))
		}
		if seen[name] {
			return at(r.text, place, fmt.Sprintf("%s has `%s` twice", or(path, "the text"), name))
		}
		seen[name] = true
		typ := elem
		if own != nil {
			var ok bool
			if typ, ok = own.types[name]; !ok {
				if known := own.like(name); known != "" {
					return at(r.text, place, fmt.Sprintf("there is no field `%s`; it is written `%s`", join(path, name), known))
				}
				if r.rules&Known != 0 {
					return at(r.text, place, fmt.Sprintf("there is no field `%s`", join(path, name)))
				}
			}
		}
		r.space()
		r.at++ // the colon
		if err := r.value(join(path, name), typ); err != nil {
			return err
		}
	}
	if own == nil || r.rules&Whole == 0 {
		return nil
	}
	for _, name := range own.needed {
		if !seen[name] {
			return at(r.text, begin, fmt.Sprintf("%s has no `%s`", or(path, "the text"), name))
		}
	}
	return nil
}

// like is the field that encoding/json would take a name for, since it does not look at capitals.
func (f *fields) like(name string) string {
	for known := range f.types {
		if strings.EqualFold(known, name) {
			return known
		}
	}
	return ""
}

func (r *reader) list(path string, t reflect.Type) error {
	begin, n := r.at, 0
	var elem reflect.Type
	if t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) {
		elem = t.Elem()
	}
	for r.at++; r.next(']'); n++ {
		if err := r.value(path+"["+strconv.Itoa(n)+"]", elem); err != nil {
			return err
		}
	}
	if elem != nil && t.Kind() == reflect.Array && n != t.Len() {
		return at(r.text, begin, fmt.Sprintf("%s has %d elements, not %d", or(path, "the text"), n, t.Len()))
	}
	return nil
}

// next goes to the next element of an object or a list, past a comma; false at its end.
func (r *reader) next(end byte) bool {
	if r.space(); r.text[r.at] == ',' {
		r.at++
		r.space()
	}
	if r.text[r.at] == end {
		r.at++
		return false
	}
	return true
}

func (r *reader) space() {
	for r.at < len(r.text) && strings.IndexByte(" \t\r\n", r.text[r.at]) >= 0 {
		r.at++
	}
}

// str passes a string and gives what it says.
func (r *reader) str() string {
	begin := r.at
	plain := true
	for r.at++; r.text[r.at] != '"'; r.at++ {
		if r.text[r.at] == '\\' {
			plain = false
			r.at++
		}
	}
	r.at++
	if plain {
		return string(r.text[begin+1 : r.at-1])
	}
	var s string
	_ = json.Unmarshal(r.text[begin:r.at], &s) // it was decoded before
	return s
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
