package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestNeverBenched: cores are what cpuset and quota leave, and rates follow them and the instruction set.
func TestNeverBenched(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	free := neverBenched(root, 16, "avx2")
	if free.Title != "16 cores with AVX2, never measured" || free.Cores.Value != 16 {
		t.Errorf("%s, %v cores", free.Title, free.Cores.Value)
	}
	write("proc/self/cgroup", "0::/user/job\n")
	write("sys/fs/cgroup/user/cpu.max", "250000 100000\n")
	for _, c := range []struct {
		isa     string
		product float64
		title   string
	}{
		{"avx512", 2.5 * 140e9, "2.5 cores with AVX-512, never measured"},
		{"", 2.5 * 3e9, "2.5 cores with portable code, never measured"},
	} {
		m := neverBenched(root, 16, c.isa)
		if err := m.Check(); err != nil {
			t.Error(err)
		}
		if got := m.Rates["f32"].Product.Points[0].Rate; got != c.product || m.Title != c.title {
			t.Errorf("%s: %v FLOP/s, want %v; %q", c.isa, got, c.product, m.Title)
		}
	}
	write("sys/fs/cgroup/user/cpu.max", "1 100000000\n")
	if err := neverBenched(root, 1, "avx2").Check(); err != nil {
		t.Errorf("a tiny quota: %v", err)
	}
}
