package main

import (
	"os"
	"path/filepath"
	"testing"
)

// tree writes files below a new root.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestHardware(t *testing.T) {
	const limits = "Limit                     Soft Limit           Hard Limit           Units\n" +
		"Max cpu time              unlimited            unlimited            seconds\n"
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  map[string]string // by finding
		help  string            // a finding that has help
	}{
		{"nothing is told", nil, map[string]string{
			"limits": "no limit on cores that the system tells of", "lockable": "the system does not tell", "numa": "the system does not tell",
		}, ""},
		{"version 2: the least quota on the way up", map[string]string{
			"proc/cpuinfo":                    "processor : 0\nmodel name\t: Some Processor 9000 @ 3 GHz\nprocessor : 1\nmodel name\t: Other\n",
			"proc/self/status":                "Name:\tx\nCpus_allowed_list:\t0-3,8\nMems_allowed_list:\t0\n",
			"proc/self/cgroup":                "0::/a/b\n",
			"sys/fs/cgroup/a/b/cpu.max":       "max 100000\n",
			"sys/fs/cgroup/a/cpu.max":         "250000 100000\n",
			"sys/fs/cgroup/cpu.max":           "400000 100000\n",
			"proc/self/limits":                limits + "Max locked memory         8388608              8388608              bytes\n",
			"sys/devices/system/node/node0/x": "",
		}, map[string]string{
			"cpu": "Some Processor 9000 @ 3 GHz", "limits": "cpuset 0-3,8: 5 cores, quota of control group /a: 2.5 cores",
			"lockable": "8.0 MiB of memory", "numa": "one node",
		}, "lockable"},
		{"version 1, two nodes, any memory locked", map[string]string{
			"proc/self/cgroup":                                    "4:cpu,cpuacct:/job\n3:memory:/job\n",
			"sys/fs/cgroup/cpu/job/cpu.cfs_quota_us":              "-1\n",
			"sys/fs/cgroup/cpu/job/cpu.cfs_period_us":             "100000\n",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us":                  "800000\n",
			"sys/fs/cgroup/cpu/cpu.cfs_period_us":                 "100000\n",
			"proc/self/limits":                                    limits + "Max locked memory         unlimited            unlimited            bytes\n",
			"sys/devices/system/node/node0/cpulist":               "0-15\n",
			"sys/devices/system/node/node0/meminfo":               "Node 0 MemTotal:       67108864 kB\nNode 0 MemFree: 5 kB\n",
			"sys/devices/system/node/node1/cpulist":               "\n",
			"proc/driver/nvidia/gpus/0000:01:00.0/x":              "",
			"sys/bus/pci/devices/0000:01:00.0/numa_node":          "0\n",
			"sys/bus/pci/devices/0000:01:00.0/max_link_width":     "16\n",
			"sys/bus/pci/devices/0000:01:00.0/max_link_speed":     "32.0 GT/s PCIe\n",
			"sys/bus/pci/devices/0000:01:00.0/current_link_width": "8\n",
			"sys/bus/pci/devices/0000:01:00.0/current_link_speed": "16.0 GT/s PCIe\n",
		}, map[string]string{
			"limits": "quota of control group /: 8 cores", "lockable": "any amount of memory",
			"numa": "2 nodes (0: cores 0-15, 64.0 GiB; 1: no cores)", "link": "x8 at 16.0 GT/s PCIe (up to x16 at 32.0 GT/s PCIe), NUMA node 0",
		}, "link"},
		{"files that say nonsense", map[string]string{
			"proc/cpuinfo": "model name", "proc/self/status": "Cpus_allowed_list:\tx-y\n", "proc/self/cgroup": "what\n0::/\n",
			"sys/fs/cgroup/cpu.max": "a b\n", "proc/self/limits": "Max locked memory\n",
		}, map[string]string{"limits": "cpuset x-y: 0 cores", "lockable": "the system does not tell"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := map[string]finding{}
			for _, f := range hardware(tree(t, tc.files)) {
				got[f.What] = f
			}
			for what, want := range tc.want {
				if f := got[what]; f.Found != want || !f.OK {
					t.Errorf("%s: %q, want %q", what, f.Found, want)
				}
			}
			for what, f := range got {
				if (f.Help != "") != (what == tc.help) {
					t.Errorf("%s: help %q", what, f.Help)
				}
			}
		})
	}
}
