package hf

import (
	"fmt"
	"strings"

	"github.com/megatrain/mtc/runtime/plan"
)

// Differences lists where a description differs from the family that a program is of.
func Differences(d *Description, f plan.Family) (out []string) {
	if d.Family != f.Name {
		return []string{fmt.Sprintf("family %s there and %s here", d.Family, f.Name)}
	}
	here := values(f.Values)
	for _, v := range d.Values {
		// The weight of the balance loss is a setting of training, as the learning rate is.
		if mine := here[v.Name]; normal(mine) != normal(v.Text) && v.Name != "alpha" {
			out = append(out, fmt.Sprintf("%s is %s there and %s here", v.Name, v.Text, mine))
		}
	}
	return out
}

// normal writes a value with the defaults that may be left out of it.
func normal(text string) string {
	if s, ok := strings.CutPrefix(text, "yarn("); ok {
		for n := strings.Count(s, ","); n < 3; n++ {
			s = strings.TrimSuffix(s, ")") + []string{"", ", 32)", ", 1)"}[n]
		}
		return "yarn(" + s
	}
	return text
}
