package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestLoad: what others take of the processors that may be used is told, and that a control group held the
// process back; what is idle, or runs on processors that are not needed, is not.
func TestLoad(t *testing.T) {
	at := func(seconds int, own time.Duration, files map[string]string) usage {
		root := t.TempDir()
		for name, text := range files {
			p := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(p, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		u := usageNow(root)
		u.at, u.own = time.Unix(int64(seconds), 0), own
		return u
	}
	const group = "0::/a/b\n"
	before := map[string]string{
		"proc/stat":                "cpu 300 0 0 0 0 0 0 0 0 0\ncpu0 100 0 0 50 5 0 0 0 0 0\ncpu1 100 0 0 0 0 0 0 0 0 0\ncpu2 100 0 0 0 0 0 0 0 0 0\nintr 5\n",
		"proc/self/status":         "Name:\tbench\nCpus_allowed_list:\t0-1\n",
		"proc/self/cgroup":         group,
		"sys/fs/cgroup/a/cpu.stat": "usage_usec 5\nthrottled_usec 1000000\n",
	}
	for _, c := range []struct {
		name, stat, throttled string
		own                   time.Duration
		threads               int
		want                  string
	}{
		// In 10 s: processors 0 and 1 have 2,000 ticks.
		{"idle but for this", "cpu0 1050 0 0 50 5 0 0 0 0 0\ncpu1 1100 0 0 0 0 0 0 0 0 0\ncpu2 9999 0 0 0 0 0 0 0 0 0\n", "1000000", 19 * time.Second, 2, ""},
		{"another process", "cpu0 1100 0 0 50 5 0 0 0 0 0\ncpu1 600 0 500 0 0 0 0 0 0 0\n", "1000000", 12 * time.Second, 2, "other processes took 0.8 of 2 processors"},
		{"taken by a hypervisor", "cpu0 100 0 0 50 5 0 0 1000 0 0\ncpu1 1100 0 0 0 0 0 0 0 0 0\n", "1000000", 10 * time.Second, 2, "took 1.0 of 2"},
		{"waiting for a disk is idle", "cpu0 100 0 0 50 900 0 0 0 0 0\ncpu1 1100 0 0 0 0 0 0 0 0 0\n", "1000000", 10 * time.Second, 2, ""},
		{"there is one to spare", "cpu0 1100 0 0 50 5 0 0 0 0 0\ncpu1 1100 0 0 0 0 0 0 0 0 0\n", "1000000", 10 * time.Second, 1, ""},
		{"held back", "cpu0 100 0 0 50 5 0 0 0 0 0\ncpu1 1100 0 0 0 0 0 0 0 0 0\n", "4000000", 10 * time.Second, 2, "a control group held it back for 30 % of the time"},
	} {
		after := map[string]string{
			"proc/stat": c.stat, "proc/self/status": before["proc/self/status"], "proc/self/cgroup": group,
			"sys/fs/cgroup/a/cpu.stat": "usage_usec 5\nthrottled_usec " + c.throttled + "\n",
		}
		got := load(at(0, 0, before), at(10, c.own, after), c.threads)
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if got := load(usage{}, usage{at: time.Now()}, 2); got != "" {
		t.Errorf("where nothing is known: %q", got)
	}
}
