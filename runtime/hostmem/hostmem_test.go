package hostmem

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

// TestAvailable: every limit on the path counts, in both versions of control groups.
func TestAvailable(t *testing.T) {
	const gib = 1 << 30
	defer func(old func() int64) { addressSpace = old }(addressSpace)
	for _, c := range []struct {
		name  string
		files map[string]string
		bytes int64
		limit string
	}{
		{"no groups", map[string]string{"proc/meminfo": "MemTotal: 9 kB\nMemAvailable:   1048576 kB\n"}, gib, "free memory of the machine"},
		{"nothing", nil, -1, ""},
		{"version 2, limit on a parent", map[string]string{
			"proc/meminfo":                        "MemAvailable:   8388608 kB\n",
			"proc/self/cgroup":                    "0::/user/run\n",
			"sys/fs/cgroup/user/run/memory.max":   "max\n",
			"sys/fs/cgroup/user/memory.max":       "3221225472\n",
			"sys/fs/cgroup/user/memory.current":   "2147483648\n",
			"sys/fs/cgroup/user/memory.stat":      "anon 1\ninactive_file 1073741824\n",
			"sys/fs/cgroup/user/run/memory.stat":  "inactive_file 5\n",
			"sys/fs/cgroup/user/run/memory.other": "",
		}, 2 * gib, "memory limit of control group /user"},
		{"version 1", map[string]string{
			"proc/meminfo":     "MemAvailable:   8388608 kB\n",
			"proc/self/cgroup": "4:cpu,memory:/job\n3:cpuset:/\n0::/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":     "9223372036854771712\n",
			"sys/fs/cgroup/memory/job/memory.limit_in_bytes": "1073741824\n",
			"sys/fs/cgroup/memory/job/memory.usage_in_bytes": "73741824\n",
		}, 1000000000, "memory limit of control group /job"},
		{"container whose path is not mounted", map[string]string{
			"proc/meminfo":                 "MemAvailable:   8388608 kB\n",
			"proc/self/cgroup":             "0::/docker/abc\n",
			"sys/fs/cgroup/memory.max":     "2147483648\n",
			"sys/fs/cgroup/memory.current": "1073741824\n",
		}, gib, "memory limit of control group /"},
		{"address space", map[string]string{
			"rlimit":           "as 1600000000\n",
			"proc/meminfo":     "MemAvailable:   8388608 kB\n",
			"proc/self/status": "Name:\tp\nVmSize:\t 1000000 kB\n",
		}, 576000000, "limit of the address space, `ulimit -v`"},
		{"address space above what is free", map[string]string{
			"rlimit": "as 1600000000\n", "proc/meminfo": "MemAvailable:   1048576 kB\n",
		}, gib, "free memory of the machine"},
		{"over the address space, and nothing else is told", map[string]string{
			"rlimit": "as 100\n", "proc/self/status": "VmSize:\t 1 kB\n",
		}, 0, "limit of the address space, `ulimit -v`"},
		{"over the limit", map[string]string{
			"proc/self/cgroup":             "0::/\n",
			"sys/fs/cgroup/memory.max":     "100\n",
			"sys/fs/cgroup/memory.current": "150\n",
		}, 0, "memory limit of control group /"},
	} {
		root := t.TempDir()
		for name, text := range c.files {
			p := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(p, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		addressSpace = func() int64 { return math.MaxInt64 }
		if limit := field(filepath.Join(root, "rlimit"), "as"); limit > 0 {
			addressSpace = func() int64 { return limit }
		}
		f, ok := available(root)
		if c.bytes < 0 {
			if ok {
				t.Errorf("%s: got %+v", c.name, f)
			}
			continue
		}
		if !ok || f != (Free{c.bytes, c.limit}) {
			t.Errorf("%s: got %+v, want %d (%s)", c.name, f, c.bytes, c.limit)
		}
	}
}

// TestPeak: memory that is written to shows in the peak, and stays in it.
func TestPeak(t *testing.T) {
	before := Peak()
	if before == 0 {
		t.Skip("this system does not tell it")
	}
	b := make([]byte, 64<<20)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	if got := Peak(); got < 64<<20 || got < before {
		t.Errorf("%d bytes after %d bytes were written, %d before", got, len(b), before)
	}
}
