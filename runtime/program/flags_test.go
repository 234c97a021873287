package program

import (
	"errors"
	"flag"
	"reflect"
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
	} {
		_, _, _, _, _, err := parseTrain(c.arg)
		var u *usageError
		if !errors.As(err, &u) || !strings.Contains(u.msg+" | "+strings.Join(u.help, " | "), c.want) {
			t.Errorf("%s: got %+v, want %s", c.arg, err, c.want)
		}
	}
}
