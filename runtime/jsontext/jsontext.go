// Package jsontext reads JSON that people or other programs may have written or damaged: nothing that is
// there twice, missing or null passes in silence, and errors have line and column and no names of
// Go's types.
package jsontext

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"
)

// Explain is err, which decoding text gave, in plain words; errors of others stay as they are.
func Explain(text []byte, err error) error {
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	var l *located
	switch {
	case err == nil:
		return nil
	case errors.As(err, &l):
		if k := find(text, l.path); k >= 0 {
			return at(text, k, err.Error())
		}
		return err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return at(text, len(bytes.TrimRight(text, " \t\r\n")), "unexpected end of the text")
	case errors.As(err, &syntax):
		if strings.HasPrefix(syntax.Error(), "unexpected end") {
			return at(text, len(bytes.TrimRight(text, " \t\r\n")), "unexpected end of the text")
		}
		return at(text, int(syntax.Offset)-1, syntaxWords(syntax.Error()))
	case errors.As(err, &wrong):
		return at(text, begin(text, int(wrong.Offset), wrong.Value), typeWords(wrong))
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		words := "there is no field " + name
		if bytes.Count(text, []byte(name)) == 1 {
			return at(text, bytes.Index(text, []byte(name)), words)
		}
		return errors.New(words)
	}
	return err
}

// Part decodes a part of a text, whose place in it is not known, with errors in plain words.
func Part(text []byte, v any) error {
	err := json.Unmarshal(text, v)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return errors.New(typeWords(wrong))
	}
	return err
}

// at puts line and column of a byte before words.
func at(text []byte, offset int, words string) error {
	before := text[:max(0, min(offset, len(text)))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return fmt.Errorf("line %d, column %d: %s", line, column, words)
}

// places says in plain words where encoding/json found a character.
var places = map[string]string{
	"looking for beginning of value":             "where a value should begin",
	"looking for beginning of object key string": "where a name in quotes should begin",
	"after object key":                           "where a `:` should follow the name",
	"after object key:value pair":                "where `,` or `}` should follow",
	"after array element":                        "where `,` or `]` should follow",
	"after top-level value":                      "behind the end of the text",
	"in string literal":                          "in a string",
	"in string escape code":                      "behind a `\\` in a string",
}

func syntaxWords(msg string) string {
	rest, ok := strings.CutPrefix(msg, "invalid character ")
	if !ok {
		return msg
	}
	for from, to := range places {
		if what, ok := strings.CutSuffix(rest, "' "+from); ok {
			return what + "' " + to
		}
	}
	return rest
}

func typeWords(e *json.UnmarshalTypeError) string {
	name := "the text"
	if e.Field != "" {
		name = e.Field
	}
	is, want := e.Value, "another kind of value"
	switch e.Type.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		want = "a whole number"
	case reflect.Float32, reflect.Float64:
		want = "a number"
	case reflect.String:
		want = "a string"
	case reflect.Bool:
		want = "true or false"
	case reflect.Slice, reflect.Array:
		want = "a list"
	case reflect.Struct, reflect.Map:
		want = "an object"
	}
	switch e.Value {
	case "number", "string":
		is = "a " + e.Value
	case "bool":
		is = "true or false"
	case "object":
		is = "an object"
	case "array":
		is = "a list"
	default:
		is = strings.TrimPrefix(is, "number ")
		if strings.HasSuffix(want, "number") {
			want += " within the bounds"
		}
	}
	return fmt.Sprintf("%s is %s, not %s", name, is, want)
}

// begin is where a value begins that encoding/json had read up to offset.
func begin(text []byte, offset int, value string) int {
	at := max(0, min(offset, len(text))) - 1
	switch {
	case value == "object" || value == "array":
		return at // the bracket
	case value == "string":
		for k := at - 1; k >= 0; k-- {
			if text[k] == '"' && (k == 0 || text[k-1] != '\\') {
				return k
			}
		}
	default:
		for at > 0 && bytes.IndexByte([]byte(" \t\r\n,:["), text[at-1]) < 0 {
			at--
		}
	}
	return at
}
