// Package models holds the .mt files of whole families, whose sizes are parameters: an import
// writes an instance of one, and a compiled model is compared with them to see as what other
// programs can have it.
package models

import (
	_ "embed"
	"strings"
)

// Family is a model with sizes to fill in.
type Family struct {
	Name string // of the model
	Text string // of the .mt, without a train block: its sizes are not those of an instance
}

//go:embed llama.mt
var llama string

//go:embed gpt2.mt
var gpt2 string

//go:embed mixtral.mt
var mixtral string

//go:embed qwen3-moe.mt
var qwen3moe string

// Families lists the families.
var Families = []Family{{"llama", model(llama)}, {"gpt2", model(gpt2)}, {"mixtral", model(mixtral)}, {"qwen3_moe", model(qwen3moe)}}

// model is a text up to its train block.
func model(text string) string {
	text, _, _ = strings.Cut(text, "\ntrain {")
	return text
}

// Lookup finds a family by name.
func Lookup(name string) (Family, bool) {
	for _, f := range Families {
		if f.Name == name {
			return f, true
		}
	}
	return Family{}, false
}
