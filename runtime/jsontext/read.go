package jsontext

import (
	"bytes"
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
	return r.value(reflect.TypeOf(v).Elem())
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
	_ = r.value(nil) // without a type and rules nothing but a name that stands twice is wrong
	return r.found
}

// reader walks a text that is known to be JSON beside the type that it was decoded into.
type reader struct {
	text []byte
	at   int
	path []byte // of the value that is passed
	// names are those of objects by how deep they lie, and which of all objects had one last.
	names          []map[string]*int
	objects, depth int
	rules          Rule
	structs        map[reflect.Type]*fields
	wanted         string // a path, and where its value begins
	found          int
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
func (r *reader) value(t reflect.Type) error {
	r.space()
	begin := r.at
	if r.wanted != "" && string(r.path) == r.wanted {
		r.found = begin
	}
	optional := false
	for t != nil && t.Kind() == reflect.Pointer {
		t, optional = t.Elem(), true
	}
	if t != nil && (t.PkgPath() != "" || t.Kind() == reflect.Struct) && reflect.PointerTo(t).Implements(decodes) {
		t = nil // it has rules of its own
	}
	switch r.text[r.at] {
	case '{':
		return r.object(t)
	case '[':
		return r.list(t)
	case '"':
		if s := r.str(); r.rules != 0 && bytes.ContainsFunc(s, acts) {
			return at(r.text, begin, fmt.Sprintf("%s is %.40q, which holds characters that a terminal acts on", r.here(), s))
		}
		return nil
	}
	for r.at < len(r.text) && strings.IndexByte(",]} \t\r\n", r.text[r.at]) < 0 {
		r.at++
	}
	if string(r.text[begin:r.at]) == "null" && t != nil && !optional && !slices.Contains([]reflect.Kind{reflect.Slice, reflect.Map, reflect.Interface}, t.Kind()) {
		return at(r.text, begin, r.here()+" is null")
	}
	return nil
}

// acts reports whether a terminal takes a character for a command, or draws others elsewhere for it.
func acts(c rune) bool {
	if ' ' <= c && c < 0x7f {
		return false
	}
	return unicode.IsControl(c) && c != '\n' && c != '\t' || unicode.Is(unicode.Bidi_Control, c)
}

func (r *reader) object(t reflect.Type) error {
	begin, above := r.at, len(r.path)
	var own *fields
	var elem reflect.Type
	switch {
	case t == nil:
	case t.Kind() == reflect.Struct:
		own = r.fields(t)
	case t.Kind() == reflect.Map:
		elem = t.Elem()
	}
	if r.objects, r.depth = r.objects+1, r.depth+1; r.depth > len(r.names) {
		r.names = append(r.names, map[string]*int{})
	}
	seen, me := r.names[r.depth-1], r.objects
	for r.at++; r.next('}'); {
		place := r.at
		name := r.str()
		if r.rules != 0 && bytes.ContainsFunc(name, acts) {
			return at(r.text, place, fmt.Sprintf("the name %.40q holds characters that a terminal acts on", name))
		}
		last := seen[string(name)]
		if last == nil {
			last = new(int)
			seen[string(name)] = last
		}
		if *last == me {
			return at(r.text, place, fmt.Sprintf("%s has `%s` twice", r.here(), name))
		}
		*last = me
		if above > 0 {
			r.path = append(r.path, '.')
		}
		r.path = append(r.path, name...)
		typ := elem
		if own != nil {
			var ok bool
			if typ, ok = own.types[string(name)]; !ok {
				if known := own.like(string(name)); known != "" {
					return at(r.text, place, fmt.Sprintf("there is no field `%s`; it is written `%s`", r.path, known))
				}
				if r.rules&Known != 0 {
					return at(r.text, place, fmt.Sprintf("there is no field `%s`", r.path))
				}
			}
		}
		r.space()
		r.at++ // the colon
		if err := r.value(typ); err != nil {
			return err
		}
		r.path = r.path[:above]
	}
	r.depth--
	if own == nil || r.rules&Whole == 0 {
		return nil
	}
	for _, name := range own.needed {
		if last := seen[name]; last == nil || *last != me {
			return at(r.text, begin, fmt.Sprintf("%s has no `%s`", r.here(), name))
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

func (r *reader) list(t reflect.Type) error {
	begin, above, n := r.at, len(r.path), 0
	var elem reflect.Type
	if t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) {
		elem = t.Elem()
	}
	for r.at++; r.next(']'); n++ {
		r.path = append(strconv.AppendInt(append(r.path, '['), int64(n), 10), ']')
		if err := r.value(elem); err != nil {
			return err
		}
		r.path = r.path[:above]
	}
	if elem != nil && t.Kind() == reflect.Array && n != t.Len() {
		return at(r.text, begin, fmt.Sprintf("%s has %d elements, not %d", r.here(), n, t.Len()))
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
func (r *reader) str() []byte {
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
		return r.text[begin+1 : r.at-1]
	}
	var s string
	_ = json.Unmarshal(r.text[begin:r.at], &s) // it was decoded before
	return []byte(s)
}

// here is the path of the value that is passed, in words.
func (r *reader) here() string {
	if len(r.path) == 0 {
		return "the text"
	}
	return string(r.path)
}
