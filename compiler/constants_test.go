package compiler

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
)

// rest is a body that uses none of the parameters under test.
const rest = ` { init one
  forward(tokens) { return head: linear(wte: embed(tokens, 8, 8), 8) } }
`

// consts checks a text and returns its parameters as "a = 1, b = 2.0".
func consts(t *testing.T, o Options) string {
	t.Helper()
	var out []string
	for _, c := range find(t, Check, o).Model.Consts {
		out = append(out, c.Name+" = "+c.Value.String())
	}
	return strings.Join(out, ", ")
}

// TestConstants is the arithmetic of constants: ints exact, floats where a float is.
func TestConstants(t *testing.T) {
	for _, c := range []struct{ expr, want string }{
		{"7 + 3 * 2", "13"},
		{"(7 + 3) * 2", "20"},
		{"12 / 4", "3"},
		{"-12 / 4", "-3"},
		{"-7 % 4", "-3"},
		{"7.0 / 2", "3.5"},
		{"7 / 2.0", "3.5"},
		{"1 / sqrt(4)", "0.5"},
		{"sqrt(16)", "4.0"},
		{"ceil(9, 4)", "12"},
		{"ceil(8, 4)", "8"},
		{"ceil(0, 4)", "0"},
		{"ceil(-9, 4)", "-8"},
		{"9223372036854775807", "9223372036854775807"},
		{"-9223372036854775807 - 1", "-9223372036854775808"},
		{"4611686018427387904 * 2 - 1", ""}, // overflows on the way
		{"3037000499 * 3037000499", "9223372030926249001"},
		{"-3 * 3074457345618258602", "-9223372036854775806"},
		{"1e308 / 10", "1e+307"},
		{"1 == 1.0", "true"},
		{"1 != 2 and 2 < 3", "true"},
		{"not (1 < 2)", "false"},
		{"1 <= 1 and 2 >= 3 or 5 > 4", "true"},
		{"none == none", "true"},
		{"none != 3", "true"},
		{"tanh == tanh", "true"},
		{"tanh == exact", "false"},
		{`"a" == "b"`, "false"},
		{"true != false", "true"},
		{"false and 1 / 0 == 1", "false"}, // the right side is not evaluated
		{"true or 1 / 0 == 1", "true"},
		{"if 1 < 2 then 10 else 1 / 0", "10"}, // nor the branch not taken
		{"if false then 1 else if true then 2 else 3", "2"},
		{"llama3(8, 1.0, 4.0, 8192)", "llama3(8.0, 1.0, 4.0, 8192.0)"},
		{"llama3(original = 8192, factor = 8, low = 1, high = 4)", "llama3(8.0, 1.0, 4.0, 8192.0)"},
		{"yarn(4.0, 8192)", "yarn(4.0, 8192.0, 32.0, 1.0, none)"},
		{"normal(0.02 / sqrt(2 * 8))", "normal(0.005)"},
		{"half", "half"},
		{"none", "none"},
		{`"text"`, `"text"`},
	} {
		o := Options{Path: "m.mt", Text: []byte("model m(a = " + c.expr + ")" + rest)}
		if c.want == "" {
			if l := checkText(o.Path, string(o.Text)); !l.HasErrors() {
				t.Errorf("%s: no error", c.expr)
			}
			continue
		}
		if got := consts(t, o); got != "a = "+c.want {
			t.Errorf("%s: %s, want %s", c.expr, got, c.want)
		}
	}
}

// TestWhereValuesComeFrom is the order default, preset, instance, --set; a later default
// follows an overridden value and an overridden default is not evaluated.
func TestWhereValuesComeFrom(t *testing.T) {
	files := map[string]string{
		"base.mt": "model base(D = 64, H = 4, hd = D / H, F = 4 * D, tied = false, bad = 1 / (H - 4)) {\n" +
			"preset wide { D = 128, H = 8 }\n" + rest[2:],
		"one.mt": "use \"base.mt\"\nmodel one = base(H = 2, tied)\n",
		"two.mt": "use \"one.mt\"\nmodel two = one(D = 256, F = 2 * D)\n",
	}
	read := func(path string) ([]byte, error) {
		if s, ok := files[strings.TrimPrefix(path, "dir/")]; ok {
			return []byte(s), nil
		}
		return nil, fs.ErrNotExist
	}
	for _, c := range []struct {
		path, preset string
		set          []string
		want         string
	}{
		{"dir/base.mt", "", []string{"bad=0"}, "D = 64, H = 4, hd = 16, F = 256, tied = false, bad = 0"},
		{"dir/base.mt", "wide", nil, "D = 128, H = 8, hd = 16, F = 512, tied = false, bad = ?"},
		{"dir/base.mt", "wide", []string{"D=256", "bad=D"}, "D = 256, H = 8, hd = 32, F = 1024, tied = false, bad = 256"},
		{"dir/one.mt", "", []string{"bad=1"}, "D = 64, H = 2, hd = 32, F = 256, tied = true, bad = 1"},
		{"dir/one.mt", "wide", []string{"bad=1"}, "D = 128, H = 2, hd = 64, F = 512, tied = true, bad = 1"},
		{"dir/two.mt", "wide", []string{"bad=1"}, "D = 256, H = 2, hd = 128, F = 512, tied = true, bad = 1"},
		{"dir/two.mt", "", []string{"bad=1", "D=512", "D=32", "tied=false"}, "D = 32, H = 2, hd = 16, F = 64, tied = false, bad = 1"},
	} {
		o := Options{Path: c.path, ReadFile: read, Preset: c.preset, Set: c.set}
		if strings.HasSuffix(c.want, "?") {
			// 1 / (8 - 4) leaves a rest: every evaluated default is checked, used or not.
			if l := checkOptions(o); !l.HasErrors() {
				t.Errorf("%v: no error", c)
			}
			continue
		}
		if got := consts(t, o); got != c.want {
			t.Errorf("%s %s %v:\n got %s\nwant %s", c.path, c.preset, c.set, got, c.want)
		}
	}
}

// TestT shows that T is a constant with a train block and an error without.
func TestT(t *testing.T) {
	model := "model m(D = 8, n = 2 * T) { init one\n forward(tokens) { return head: linear(wte: embed(tokens, 8, D) + wpe: embed(position, T, D), 8) } }\n"
	train := "train { seq = 16; batch = 32 tokens }\n"
	m := find(t, Check, Options{Path: "m.mt", Text: []byte(model + train)}).Model
	if got := fmt.Sprint(m.Consts[1].Value, m.Params[1].Shape, m.Batch, m.Seq); got != "32 [T, D = 8] 2 16" {
		t.Error(got)
	}
	if l := checkText("m.mt", model); !l.HasErrors() {
		t.Error("no error without a train block")
	}
	plain := strings.NewReplacer("2 * T", "3", "embed(position, T, D)", "embed(position, 9, D)").Replace(model)
	if m := find(t, Check, Options{Path: "m.mt", Text: []byte(plain)}).Model; m.Batch != 0 || m.Seq != 0 || m.Train != nil {
		t.Errorf("batch %d, seq %d without a train block", m.Batch, m.Seq)
	}
}
