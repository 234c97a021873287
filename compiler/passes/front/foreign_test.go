package front

import (
	"regexp"
	"testing"

	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/all"
)

// Hints about foreign names lead to names that there are: none of them is one of this language itself, the ops
// and fields that they quote exist, and parameters are those of an op or of what ops take.
func TestForeignNames(t *testing.T) {
	fields := map[string]bool{}
	for _, f := range fieldNames() {
		fields[f] = true
	}
	params, calls := map[string]bool{}, map[string]bool{"sqrt": true, "split": true}
	var ctors func(list []op.Ctor)
	note := func(list []op.Param) {
		for i := range list {
			params[list[i].Name] = true
			ctors(list[i].Ctors)
		}
	}
	ctors = func(list []op.Ctor) {
		for _, c := range list {
			calls[c.Name] = true
			note(c.Params)
		}
	}
	for _, d := range all.Names() {
		calls[d] = true
		note(all.Lookup(d).Params)
	}
	for _, f := range trainFields {
		note([]op.Param{f.param})
	}
	ctors(initCtors)
	quoted := regexp.MustCompile("`[^`]*`")
	call := regexp.MustCompile(`([a-z_0-9]+)\(`)
	field := regexp.MustCompile("^`([a-z]+) = ")
	check := func(name, hint string) {
		for _, q := range quoted.FindAllString(hint, -1) {
			for _, m := range call.FindAllStringSubmatch(q, -1) {
				if !calls[m[1]] {
					t.Errorf("%s: %q names `%s`, which there is not", name, hint, m[1])
				}
			}
		}
	}
	for name, hint := range foreignOps {
		if calls[name] && name != "split" && !all.Lookup(name).Hidden {
			t.Errorf("`%s` is a name of this language", name)
		}
		check(name, hint)
	}
	for name, param := range foreignParams {
		if !params[param] {
			t.Errorf("`%s`: nothing has a parameter `%s`", name, param)
		}
	}
	for name, hint := range foreignFields {
		if fields[name] {
			t.Errorf("`%s` is a field", name)
		}
		check(name, hint)
		for _, q := range quoted.FindAllString(hint, -1) {
			if m := field.FindStringSubmatch(q); m != nil && !fields[m[1]] {
				t.Errorf("%s: %q names no field", name, hint)
			}
		}
	}
}
