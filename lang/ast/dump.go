package ast

import (
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/megatrain/mtc/lang/source"
)

// Dump prints a tree for people: one node a line, children indented, with the place each starts
// at when places is true. Without places, two texts that mean the same print the same, which
// is how the formatter is checked.
func Dump(w io.Writer, n any, places bool) {
	d := &dumper{w: w, places: places}
	d.value("", reflect.ValueOf(n), 0)
}

type dumper struct {
	w      io.Writer
	places bool
}

var (
	spanType    = reflect.TypeOf(source.Span{})
	fileType    = reflect.TypeOf((*source.File)(nil))
	commentType = reflect.TypeOf([]Comment(nil))
)

// value prints one value under a field name. Empty fields are left out.
func (d *dumper) value(name string, v reflect.Value, depth int) {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	if name != "" {
		name += ": "
	}
	switch v.Kind() {
	case reflect.Struct:
		d.node(name, v, depth)
	case reflect.Slice:
		if v.Len() == 0 {
			return
		}
		d.line(depth, "%s", strings.TrimSuffix(name, " "))
		for i := range v.Len() {
			d.value("", v.Index(i), depth+1)
		}
	default:
		d.line(depth, "%s%s", name, scalar(v))
	}
}

// node prints a struct: its small fields on one line, the others below.
func (d *dumper) node(name string, v reflect.Value, depth int) {
	t := v.Type()
	head := name + t.Name()
	var rest []int
	at := ""
	for i := range t.NumField() {
		f := v.Field(i)
		switch {
		case f.Type() == fileType || f.Type() == commentType:
		case f.Type() == spanType:
			if d.places && t.Field(i).Name == "Span" {
				s := f.Interface().(source.Span)
				if s.Valid() {
					line, col := s.File.Position(s.Start)
					at = fmt.Sprintf(" @%d:%d", line, col)
				}
			}
		case f.Kind() == reflect.String || f.Kind() == reflect.Bool || f.CanInt() || f.CanFloat():
			if t.Name() == "Float" && t.Field(i).Name == "Text" || f.IsZero() && f.Kind() != reflect.Int64 && t.NumField() > 2 {
				continue
			}
			head += " " + scalar(f)
			if f.Kind() == reflect.Bool && t.Name() != "Bool" {
				head = strings.TrimSuffix(head, "true") + t.Field(i).Name
			}
		case f.Type() == reflect.TypeOf(Ident{}):
			head += " " + f.Interface().(Ident).Name
		case f.Type() == reflect.TypeOf((*Ident)(nil)):
			if !f.IsNil() {
				head += fmt.Sprintf(" %s=%s", strings.ToLower(t.Field(i).Name), f.Interface().(*Ident).Name)
			}
		default:
			rest = append(rest, i)
		}
	}
	if d.places {
		head += at
	}
	d.line(depth, "%s", head)
	for _, i := range rest {
		d.value(t.Field(i).Name, v.Field(i), depth+1)
	}
}

func scalar(v reflect.Value) string {
	switch v.Kind() {
	case reflect.String:
		return strconv.Quote(v.String())
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	}
	return fmt.Sprint(v.Interface())
}

func (d *dumper) line(depth int, format string, args ...any) {
	fmt.Fprintf(d.w, "%s%s\n", strings.Repeat("  ", depth), fmt.Sprintf(format, args...))
}
