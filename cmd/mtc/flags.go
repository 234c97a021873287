package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/megatrain/mtc/lang/diag/suggest"
)

// enumFlag defines a flag that takes one of a few words; *value holds its default, or the
// first word when empty. A misspelt word is a usage error that names the nearest one.
func enumFlag(fs *pflag.FlagSet, value *string, name, short, usage string, words ...string) {
	if *value == "" {
		*value = words[0]
	}
	fs.VarP(&enumValue{value, words}, name, short, usage+": "+strings.Join(words, ", "))
}

type enumValue struct {
	p     *string
	words []string
}

func (v *enumValue) String() string {
	if v.p == nil {
		return ""
	}
	return *v.p
}

func (v *enumValue) Type() string { return "WORD" }

func (v *enumValue) Set(s string) error {
	for _, w := range v.words {
		if s == w {
			*v.p = s
			return nil
		}
	}
	return &enumError{v.words}
}

// enumError carries the words a flag takes to flagError, which knows the flag.
type enumError struct{ words []string }

func (e *enumError) Error() string { return fmt.Sprintf("takes %s", suggest.List(e.words)) }
