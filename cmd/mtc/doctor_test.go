package main

import (
	"strings"
	"testing"
)

// Without a go command doctor says what cannot be done, and that the machine is at fault.
func TestDoctorWithoutGo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var out, errs strings.Builder
	if code := run([]string{"doctor"}, strings.NewReader(""), &out, &errs); code != exitMachine {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"go         not found", "missing for: mtc compile", "install Go 1.26"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

func TestAtLeast(t *testing.T) {
	for version, want := range map[string]bool{"go1.26": true, "go1.26.8": true, "go1.25.9": false, "go1.9": false, "go2.0": true, "devel": false, "go1.x": false} {
		if atLeast(version, 1, 26) != want {
			t.Errorf("%s", version)
		}
	}
}
