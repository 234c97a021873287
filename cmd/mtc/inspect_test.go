package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/megatrain/mtc/compiler/schedule"
)

// built compiles nano without building its program.
func built(t *testing.T, args ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "build", "nano")
	var out, errw strings.Builder
	args = append([]string{"compile", "../../models/nano.mt", "-o", dir, "--no-build"}, args...)
	if code := run(args, nil, &out, &errw); code != exitOK {
		t.Fatalf("compile: exit %d\n%s", code, errw.String())
	}
	return dir
}

func inspected(t *testing.T, args ...string) (string, string, int) {
	t.Helper()
	var out, errw strings.Builder
	code := run(append([]string{"inspect"}, args...), nil, &out, &errw)
	return out.String(), errw.String(), code
}

func TestInspectShows(t *testing.T) {
	dir := built(t, "--placement", "stream")
	for _, c := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"nano: 1,049,728 parameters, stream", "compute |", "h2d     |", "prefetch", "overlap: ", "critical path: ", "costliest", "nano.mt:", "alive", "peak of the process"}},
		{[]string{"--memory"}, []string{"weight slots", "moments", "saved activations", "caches"}},
		{[]string{"--list", "steady"}, []string{"waits for", "update'", "layer[0]"}},
		{[]string{"--list", "drain"}, []string{"update'"}},
		{[]string{"--task", "0"}, []string{"does       feed", "reads      host.scalars"}},
	} {
		out, errs, code := inspected(t, append([]string{dir}, c.args...)...)
		if code != exitOK {
			t.Errorf("inspect %v: exit %d\n%s", c.args, code, errs)
		}
		for _, w := range c.want {
			if !strings.Contains(out, w) {
				t.Errorf("inspect %v does not show %q:\n%s", c.args, w, out)
			}
		}
	}
}

// The keys that other tools read.
func TestInspectJSON(t *testing.T) {
	dir := built(t)
	out, _, code := inspected(t, dir, "--json")
	if code != exitOK {
		t.Fatalf("exit %d", code)
	}
	var got map[string]json.RawMessage
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"model", "params", "placement", "lanes", "tasks", "memory"} {
		if _, ok := got[key]; !ok {
			t.Errorf("no key %q", key)
		}
	}
	var tasks []map[string]json.RawMessage
	if err := json.Unmarshal(got["tasks"], &tasks); err != nil || len(tasks) == 0 {
		t.Fatalf("tasks: %v", err)
	}
	for _, key := range []string{"id", "list", "kind", "lane", "layer", "micro", "template", "reads", "writes", "waits", "flops", "bytes"} {
		if _, ok := tasks[0][key]; !ok {
			t.Errorf("a task has no key %q", key)
		}
	}
	var memory map[string]json.RawMessage
	if err := json.Unmarshal(got["memory"], &memory); err != nil || memory["device_peak"] == nil || memory["host_peak"] == nil {
		t.Errorf("memory: %v %v", memory, err)
	}
	if _, err := schedule.Parse([]byte(out)); err != nil {
		t.Error(err)
	}
}

func TestInspectErrors(t *testing.T) {
	dir := built(t)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{filepath.Dir(dir) + "/nono"}, exitInput, "did you mean"},
		{[]string{dir, "--task", "99999"}, exitUsage, "there is no task 99999"},
		{[]string{dir, "--list", "steedy"}, exitUsage, "did you mean `steady`"},
		{[]string{dir, "--json", "--memory"}, exitUsage, "json"},
		{[]string{"../../models/nano.mt"}, exitInput, "not a build of one"},
	} {
		_, errs, code := inspected(t, c.args...)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("inspect %v: exit %d, wanted %d with %q:\n%s", c.args, code, c.code, c.want, errs)
		}
	}
}

// A build that was planned for a machine is shown on it, with the memory that it was given.
func TestInspectPlannedMachine(t *testing.T) {
	dir := built(t, "--machine", "rtx4090", "--host-memory", "100TiB", "--device-memory", "100TiB")
	for _, c := range []struct{ machine, want, not string }{
		{"", "predicted for rtx4090:", "lacks"},
		{"rtx4090", "predicted for rtx4090:", "lacks"},
		{"l40s", "predicted for l40s:", "lacks"},
	} {
		args := []string{dir}
		if c.machine != "" {
			args = append(args, "--machine", c.machine)
		}
		out, errs, code := inspected(t, args...)
		if code != exitOK || !strings.Contains(out, c.want) || strings.Contains(out, c.not) {
			t.Errorf("inspect %v: exit %d\n%s%s", args, code, out, errs)
		}
	}
	if s, err := loadSchedule([]string{dir}); err != nil {
		t.Fatal(err)
	} else if m, err := s.machine(""); err != nil || m.HostMemory.Value != 100<<40 || m.DeviceMemory.Value != 100<<40 {
		t.Errorf("the machine of the build has %+v of memory, %v; wanted what was given", m, err)
	} else if m, err = s.machine("l40s"); err != nil || m.HostMemory.Value >= 100<<40 {
		t.Errorf("another machine has the memory of the build's: %+v, %v", m, err)
	}
	// A run folder has the build's schedule.json, and nothing else of it.
	text, err := os.ReadFile(filepath.Join(dir, scheduleFile))
	if err != nil {
		t.Fatal(err)
	}
	alone := t.TempDir()
	if err := os.WriteFile(filepath.Join(alone, scheduleFile), text, 0o666); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := inspected(t, alone); code != exitOK || !strings.Contains(out, "predicted for rtx4090:") {
		t.Errorf("a folder with schedule.json alone: exit %d\n%s%s", code, out, errs)
	}
	var out, errw strings.Builder
	if run([]string{"diff", dir, built(t, "--target", "cuda", "--placement", "stream")}, nil, &out, &errw); !strings.Contains(out.String(), "rtx4090") {
		t.Errorf("diff does not predict for the machine of its first build:\n%s%s", out.String(), errw.String())
	}
}

// A build whose machine's profile is gone says so.
func TestInspectPlannedMachineGone(t *testing.T) {
	text, err := os.ReadFile("../../compiler/cost/profiles/l40s.json")
	if err != nil {
		t.Fatal(err)
	}
	profile := filepath.Join(t.TempDir(), "mine.json")
	if err := os.WriteFile(profile, text, 0o666); err != nil {
		t.Fatal(err)
	}
	dir := built(t, "--machine", profile)
	if err := os.Remove(profile); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := inspected(t, dir); code != exitInput || !strings.Contains(errs, "was planned for a machine") || !strings.Contains(errs, "--machine") {
		t.Errorf("exit %d\n%s", code, errs)
	}
	if out, _, code := inspected(t, dir, "--machine", "h200"); code != exitOK || !strings.Contains(out, "predicted for h200") {
		t.Errorf("exit %d with another machine", code)
	}
}

// Without a folder the newest build is meant.
func TestInspectNewest(t *testing.T) {
	if _, _, code := inspectedIn(t, t.TempDir()); code != exitUsage {
		t.Errorf("no build: exit %d", code)
	}
	dir := built(t)
	out, errs, code := inspectedIn(t, filepath.Dir(filepath.Dir(dir)))
	if code != exitOK || !strings.Contains(out, "nano: 1,049,728 parameters") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}

func inspectedIn(t *testing.T, dir string) (string, string, int) {
	t.Helper()
	back, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chdir(dir); err != nil {
		t.Fatal(err)
	}
	defer os.Chdir(back)
	return inspected(t)
}

// TestPartsNameTheirFolder: a file of a build or run, and a checkpoint, stand for the folder that they are in.
func TestPartsNameTheirFolder(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, d := range []string{"build", "run/step-000010", "run/best", "other/step-000010"} {
		if err := os.MkdirAll(in(d), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"build/schedule.json", "build/build.json", "run/schedule.json", "run/run.json", "run/profile.json", "run/metrics.jsonl", "other/step-000010/weights.safetensors"} {
		if err := os.WriteFile(in(f), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		"build": "build", "build/build.json": "build", "run/": "run/", "run/profile.json": "run", "run/run.json": "run", "run/metrics.jsonl": "run",
		"run/step-000010": "run", "run/best": "run", "run/step-000010/": "run",
		"run/schedule.json": "run/schedule.json", "other/step-000010": "other/step-000010", "nowhere": "nowhere", "nowhere/profile.json": "nowhere/profile.json",
	} {
		if got := homeOf(dir + "/" + path); got != dir+"/"+want {
			t.Errorf("%s is of %s, not of %s", path, got, want)
		}
	}
}
