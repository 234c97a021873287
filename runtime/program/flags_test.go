package program

import (
	"errors"
	"flag"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func parseTrain(args ...string) (steps int64, sets []string, which string, rest []string, fs *flagSet, err error) {
	fs = newFlagSet("train", TrainFlags)
	for _, f := range TrainFlags {
		fs.bind(f.Name, new(string))
	}
	fs.bind("steps", &steps)
	fs.bind("set", &sets)
	fs.bind("resume", &which)
	fs.bind("holdout", new(float64))
	rest, err = fs.parse(args, &strings.Builder{})
	return
}

func TestFlags(t *testing.T) {
	steps, sets, which, rest, fs, err := parseTrain("--steps", "12", "x", "--resume", "-set=a=1", "--set", "b=2", "--", "--steps")
	if err != nil || steps != 12 || which != "" || !fs.given("resume") || fs.given("out") {
		t.Errorf("steps %d, resume %q, %v", steps, which, err)
	}
	if !reflect.DeepEqual(sets, []string{"a=1", "b=2"}) || !reflect.DeepEqual(rest, []string{"x", "--steps"}) {
		t.Errorf("sets %q, rest %q", sets, rest)
	}
	if _, _, which, _, _, _ = parseTrain("--resume=7"); which != "7" {
		t.Errorf("resume %q", which)
	}
	if _, _, _, _, _, err = parseTrain("--help"); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("help: %v", err)
	}
}

func TestFlagErrors(t *testing.T) {
	for _, c := range []struct{ arg, want string }{
		{"--stpes=1", "did you mean `--steps`?"},
		{"--steps", "`--steps` needs a value"},
		{"--steps=ten", "`--steps` cannot be `ten` | write a whole number"},
		{"--steps=1x", "cannot be `1x`"},
		{"--steps=", "cannot be ``"},
		{"--holdout=a", "write a number"},
		{"--stop-at-seq=perhaps", "write true or false"},
	} {
		fs := newFlagSet("all", append(slices.Clone(TrainFlags), GenerateFlags...))
		for _, f := range fs.list {
			fs.bind(f.Name, new(string))
		}
		fs.bind("steps", new(int64))
		fs.bind("holdout", new(float64))
		fs.bind("stop-at-seq", new(bool))
		_, err := fs.parse([]string{c.arg}, &strings.Builder{})
		var u *usageError
		if !errors.As(err, &u) || !strings.Contains(u.msg+" | "+strings.Join(u.help, " | "), c.want) {
			t.Errorf("%s: got %+v, want %s", c.arg, err, c.want)
		}
	}
}

// TestFlagWithoutValue takes no word behind it.
func TestFlagWithoutValue(t *testing.T) {
	for _, c := range []struct {
		args []string
		want bool
		rest int
	}{
		{[]string{"--stop-at-seq", "run"}, true, 1},
		{[]string{"--stop-at-seq=false"}, false, 0},
		{[]string{"run"}, false, 1},
	} {
		var got bool
		fs := newFlagSet("generate", GenerateFlags)
		fs.bind("stop-at-seq", &got)
		rest, err := fs.parse(c.args, &strings.Builder{})
		if err != nil || got != c.want || len(rest) != c.rest {
			t.Errorf("%q: %t, rest %q, %v", c.args, got, rest, err)
		}
	}
}

// TestFlagHelp keeps to 80 columns and names every flag.
func TestFlagHelp(t *testing.T) {
	for _, list := range [][]Flag{TrainFlags, GenerateFlags, debugFlags} {
		var b strings.Builder
		newFlagSet("x", list).help(&b)
		for _, line := range strings.Split(b.String(), "\n") {
			if len(line) > 80 {
				t.Errorf("%d columns: %s", len(line), line)
			}
		}
		for _, f := range list {
			if !strings.Contains(b.String(), "\n  --"+f.Name) {
				t.Errorf("no --%s in\n%s", f.Name, b.String())
			}
		}
	}
}
