package hostmem

import (
	"os"
	"path/filepath"
	"testing"
)

// TestAvailable: every limit on the path counts, in both versions of control groups.
func TestAvailable(t *testing.T) {
	const gib = 1 << 30
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
