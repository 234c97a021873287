package jsontext

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
)

func TestExplain(t *testing.T) {
	type inner struct {
		N    int64   `json:"n"`
		Rate float64 `json:"rate"`
	}
	type file struct {
		Name  string           `json:"name"`
		On    bool             `json:"on"`
		Inner inner            `json:"inner"`
		List  []inner          `json:"list"`
		Rates map[string]inner `json:"rates"`
	}
	for text, want := range map[string]string{
		"":                                 "line 1, column 1: unexpected end of the text",
		"{\n\"name\": ":                    "line 2, column 8: unexpected end of the text",
		"{\n \"name\": ,\n}":               "line 2, column 10: ',' where a value should begin",
		"{\"name\": \"a\"\n \"on\": true}": "line 2, column 2: '\"' where `,` or `}` should follow",
		"{\"name\": \"a\",}":               "line 1, column 14: '}' where a name in quotes should begin",
		"{\"name\" 1}":                     "line 1, column 9: '1' where a `:` should follow the name",
		"{\"list\": [{} {}]}":              "line 1, column 14: '{' where `,` or `]` should follow",
		"{\"name\": \"é\", \"on\": tru}":   "line 1, column 24: '}' in literal true (expecting 'e')",
		"[]":                               "line 1, column 1: the text is a list, not an object",
		"{\"name\": 12}":                   "line 1, column 10: name is a number, not a string",
		"{\n \"on\": \"yes\"}":             "line 2, column 8: on is a string, not true or false",
		"{\"inner\": {\"n\": true}}":       "line 1, column 17: inner.n is true or false, not a whole number",
		"{\"inner\": {\"n\": 1.5}}":        "line 1, column 17: inner.n is 1.5, not a whole number within the bounds",
		"{\"inner\": {\"rate\": 1e999}}":   "line 1, column 20: inner.rate is 1e999, not a number within the bounds",
		"{\"list\": {}}":                   "line 1, column 10: list is an object, not a list",
		"{\"inner\": [1]}":                 "line 1, column 11: inner is a list, not an object",
		"{\"nmae\": 1}":                    "line 1, column 2: there is no field \"nmae\"",
	} {
		d := json.NewDecoder(bytes.NewReader([]byte(text)))
		d.DisallowUnknownFields()
		err := Explain([]byte(text), d.Decode(&file{}))
		if err == nil || err.Error() != want {
			t.Errorf("%q: got %v\nwanted %s", text, err, want)
		}
		if want[len(want)-1] == '"' {
			continue // Unmarshal takes unknown fields
		}
		if err := Explain([]byte(text), json.Unmarshal([]byte(text), &file{})); err == nil || err.Error() != want {
			t.Errorf("%q: Unmarshal gave %v\nwanted %s", text, err, want)
		}
	}
	if Explain(nil, nil) != nil {
		t.Error("no error became one")
	}
	other := errors.New("other")
	if Explain(nil, other) != other {
		t.Error("an error of others changed")
	}
}
