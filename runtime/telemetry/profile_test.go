package telemetry

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func goodProfile() *Profile {
	return &Profile{
		Version: 1, Model: "m", Hash: "abc", Tasks: 4, Compiler: "devel", Target: "cpu", Device: "cpu (2 threads)", Machine: "a \"fast\" one",
		Unit: "ns", Untimed: []float64{0.5, 0.25}, HostBytes: 1 << 40, Steps: []ProfileStep{
			{5, "steady", 0.125, []ProfileTask{{2, 0, 10}, {3, 10, 10}}},
			{6, "steady", 1e-7, []ProfileTask{{2, 20, 1 << 40}}},
		},
	}
}

func writeProfile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), ProfileFile)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func profileText(t *testing.T, p *Profile) string {
	t.Helper()
	var b strings.Builder
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestProfileRoundTrip(t *testing.T) {
	want := goodProfile()
	got, err := ReadProfile(writeProfile(t, profileText(t, want)))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\ngot  %+v\nwant %+v", err, got, want)
	}
}

func TestProfileRefused(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*Profile)
		want   string
	}{
		"version":      {func(p *Profile) { p.Version = 7 }, "its version is 7"},
		"no hash":      {func(p *Profile) { p.Hash = "" }, "names no plan"},
		"memory":       {func(p *Profile) { p.DeviceBytes = -5 }, "line 15, column 19: -5 bytes of the device"},
		"much memory":  {func(p *Profile) { p.HostBytes = 1 << 62 }, "of the host were in use"},
		"target":       {func(p *Profile) { p.Target = "zzz" }, `its target is "zzz"`},
		"escape":       {func(p *Profile) { p.Device = "\x1b[31m<b>" }, "a terminal acts on"},
		"lines":        {func(p *Profile) { p.Machine = "a\nb" }, "is not a line of text"},
		"no time":      {func(p *Profile) { p.Steps[0].Seconds = 0 }, "takes 0 seconds"},
		"no untimed":   {func(p *Profile) { p.Untimed[1] = 0 }, "a step of 0 seconds"},
		"no steps":     {func(p *Profile) { p.Steps = nil }, "column 12: it has no steps"},
		"order":        {func(p *Profile) { p.Steps[1].Step = 5 }, "step 5 stands behind step 5"},
		"no step":      {func(p *Profile) { p.Steps[0].Step = -5 }, "column 14: a step of the number -5"},
		"other list":   {func(p *Profile) { p.Steps[0].List = "first" }, "step 5 is one of the list"},
		"other task":   {func(p *Profile) { p.Steps[0].Tasks[0][0] = 4 }, "has a task 4"},
		"negative":     {func(p *Profile) { p.Steps[0].Tasks[0][0] = -1 }, "has a task -1"},
		"twice":        {func(p *Profile) { p.Steps[0].Tasks[1][0] = 2 }, "has task 2 twice"},
		"backwards":    {func(p *Profile) { p.Steps[0].Tasks[0][2] = -1 }, "runs from 0 to -1"},
		"huge":         {func(p *Profile) { p.Steps[1].Tasks[0][2] = 1 << 62 }, "runs from 20"},
		"empty step":   {func(p *Profile) { p.Steps[0].Tasks = nil }, "no tasks"},
		"wall time":    {func(p *Profile) { p.Steps[0].Seconds = -1 }, "takes -1 seconds"},
		"untimed time": {func(p *Profile) { p.Untimed[0] = 1e30 }, "a step of 1e+30 seconds"},
	} {
		p := goodProfile()
		c.change(p)
		if _, err := ReadProfile(writeProfile(t, profileText(t, p))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, wanted %q", what, err, c.want)
		}
	}
	good := profileText(t, goodProfile())
	for n := range len(good) - 2 {
		if _, err := ReadProfile(writeProfile(t, good[:n])); err == nil {
			t.Fatalf("a profile cut to %d of %d bytes is read", n, len(good))
		}
	}
	for _, text := range []string{"", "null", "[]", "NaN", strings.Replace(good, "0.125", "NaN", 1), strings.Replace(good, "[2, 0, 10]", "[2, 0, 1e400]", 1), strings.Replace(good, "[2, 0, 10]", "[2]", 1)} {
		if p, err := ReadProfile(writeProfile(t, text)); err == nil && p.Steps[0].Tasks[0][2] != 0 {
			t.Errorf("%q is read", text)
		}
	}
	if _, err := ReadProfile(filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "MT0628") {
		t.Error(err)
	}
}
