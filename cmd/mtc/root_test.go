package main

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/fault"
)

// call runs mtc in-process.
func call(args ...string) (code int, out, errw string) {
	var o, e strings.Builder
	code = run(args, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

// with runs a test with one verb more.
func with(t *testing.T, f func() error) (code int, errw string) {
	t.Helper()
	old := verbs
	defer func() { verbs = old }()
	verbs = append(append([]func(*env) *cobra.Command{}, verbs...), func(*env) *cobra.Command {
		return &cobra.Command{Use: "trial", RunE: func(*cobra.Command, []string) error { return f() }}
	})
	code, _, errw = call("trial")
	return code, errw
}

func TestExitCodes(t *testing.T) {
	list := func(codes ...string) error {
		l := &diag.List{}
		for _, c := range codes {
			l.Errorf(c, source.Span{}, "found")
		}
		return l
	}
	for _, c := range []struct {
		name string
		err  error
		code int
		text string
	}{
		{"nothing wrong", nil, 0, ""},
		{"plain error", errors.New("disk on fire"), 1, "error[MT0702]: disk on fire\n"},
		{"input", inputErrorf("no").hint("do"), 1, "error[MT0702]: no\n  help: do\n"},
		{"usage", usageErrorf("no"), 2, "error[MT0701]: no\n"},
		{"machine", machineErrorf("no"), 3, "error[MT0703]: no\n"},
		{"of a child", exitStatus(130), 130, ""},
		{"diagnostics", list("MT0301"), 1, "error[MT0301]: found\n"},
		{"memory", list("MT0410"), 3, "error[MT0410]: found\n"},
		{"an option of the plan", list("MT0411"), 1, "error[MT0411]: found\n"},
		{"device", list("MT0501"), 3, "error[MT0501]: found\n"},
		{"memory and input", list("MT0410", "MT0201"), 1, "error[MT0410]: found\n\nerror[MT0201]: found\n"},
		{"internal", list("MT0201", "MT0001"), 4, "error[MT0201]: found\n\nerror[MT0001]: found\n"},
		{"fault", fault.New("MT0601", "a.txt", "no files"), 1, "error[MT0601]: no files\n  --> a.txt\n"},
		{"fault of the machine", fault.New("MT0410", "", "full").OnMachine(), 3, "error[MT0410]: full\n"},
	} {
		code, text := with(t, func() error { return c.err })
		if code != c.code || text != c.text {
			t.Errorf("%s: exit %d %q, want %d %q", c.name, code, text, c.code, c.text)
		}
	}
}

func TestPanicIsInternalError(t *testing.T) {
	code, text := with(t, func() error {
		var list *diag.List
		return list.Err()
	})
	if code != exitInternal || !strings.Contains(text, "internal error: runtime error: invalid memory address") ||
		!strings.Contains(text, "TestPanicIsInternalError") {
		t.Errorf("exit %d\n%s", code, text)
	}
}

// TestEverySlipIsNamed misspells every verb, every flag and every word that a flag takes: each is a
// usage error that names the right one.
func TestEverySlipIsNamed(t *testing.T) {
	root := newRootCmd(&env{})
	slips := 0
	check := func(want string, args ...string) {
		slips++
		code, _, errw := call(args...)
		if code != exitUsage || !strings.Contains(errw, "did you mean `"+want+"`?") {
			t.Errorf("mtc %s: exit %d\n%swant 2 and `%s`", strings.Join(args, " "), code, errw, want)
		}
	}
	for _, c := range root.Commands() {
		name := c.Name()
		check(name, swapped(name))
		c.InitDefaultHelpFlag()
		flags := func(f *pflag.Flag) {
			if len(f.Name) > 1 {
				check("--"+f.Name, name, "--"+swapped(f.Name))
			}
			if v, ok := f.Value.(*enumValue); ok {
				for _, w := range v.words {
					if len(w) > 1 {
						check(w, name, "--"+f.Name, swapped(w))
					}
				}
			}
		}
		c.LocalFlags().VisitAll(flags)
		c.InheritedFlags().VisitAll(flags)
	}
	if slips < 50 {
		t.Errorf("only %d slips tried", slips)
	}
}

// swapped is a word with two neighbouring letters swapped.
func swapped(w string) string {
	b := []byte(w)
	for i := len(b)/2 - 1; i+1 < len(b); i++ {
		if i >= 0 && b[i] != b[i+1] && b[i] != '-' && b[i+1] != '-' {
			b[i], b[i+1] = b[i+1], b[i]
			return string(b)
		}
	}
	return w + w[len(w)-1:]
}

// TestHelpListsEveryVerb in the order of verbs, each with a line.
func TestHelpListsEveryVerb(t *testing.T) {
	_, out, _ := call()
	at := 0
	for _, v := range verbs {
		c := v(&env{})
		i := strings.Index(out[at:], "\n  "+c.Name()+" ")
		if i < 0 {
			t.Errorf("%s is not in the help, or out of order:\n%s", c.Name(), out)
			continue
		}
		at += i
		if c.Short == "" || c.Short[len(c.Short)-1] == '.' {
			t.Errorf("%s: short text %q", c.Name(), c.Short)
		}
		code, help, _ := call(c.Name(), "--help")
		if code != exitOK || !strings.Contains(help, "usage: mtc "+c.Name()) {
			t.Errorf("mtc %s --help: exit %d\n%s", c.Name(), code, help)
		}
	}
	for _, line := range strings.Split(out, "\n") {
		if len(line) > 80 {
			t.Errorf("a line of %d columns: %s", len(line), line)
		}
	}
}

var flagStart = regexp.MustCompile("\n +(-., )?--")

// TestHelpIsNeat: the help of every verb keeps to 80 columns, names each value in capitals, and
// shows no default that is none.
func TestHelpIsNeat(t *testing.T) {
	for _, v := range verbs {
		name := v(&env{}).Name()
		_, text, _ := call(name, "--help")
		for _, line := range strings.Split(text, "\n") {
			if len(line) > helpWidth {
				t.Errorf("%s: a line of %d columns: %s", name, len(line), line)
			}
		}
		for _, slip := range []string{"[]", "\x00", "`", " string ", " int ", "(default )", "default \"\""} {
			if strings.Contains(text, slip) {
				t.Errorf("%s: %q in the help:\n%s", name, slip, text)
			}
		}
		// A text that tells its default itself is not told it twice.
		for _, doc := range flagStart.Split(text, -1) {
			if strings.Count(doc, "(default") > 1 {
				t.Errorf("%s: two defaults: --%s", name, doc)
			}
		}
	}
	_, text, _ := call("run", "--help")
	for _, form := range []string{"--resume[=WHICH]  ", "--set K=V  ", "--out DIR  ", "-h, --help  "} {
		if !strings.Contains(text, form) {
			t.Errorf("no %q in\n%s", form, text)
		}
	}
}
