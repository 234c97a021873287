package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/runtime/bench"
	"github.com/megatrain/mtc/runtime/hostmem"
	"github.com/megatrain/mtc/runtime/telemetry"
)

// hardware is what doctor says about the machine below root, besides its GPUs: what the system's
// files tell, and what is missing for which command.
func hardware(root string) []finding {
	return append([]finding{cpuModel(root), coreLimits(root), lockable(root), numa(root)}, links(root)...)
}

// cpuModel names the processor.
func cpuModel(root string) finding {
	f := finding{What: "cpu", OK: true, Found: runtime.GOARCH + "; the system does not tell more"}
	text, err := os.ReadFile(filepath.Join(root, "proc/cpuinfo"))
	if err != nil {
		return f
	}
	for line := range strings.Lines(string(text)) {
		k, v, ok := strings.Cut(line, ":")
		if k = strings.TrimSpace(k); ok && (k == "model name" || k == "Model") {
			f.Found = strings.TrimSpace(v)
			return f
		}
	}
	return f
}

// coreLimits says what keeps the process from cores: its cpuset, and the least quota of the
// control groups above it, of both versions.
func coreLimits(root string) finding {
	f := finding{What: "limits", OK: true}
	var parts []string
	if set := statusField(root, "Cpus_allowed_list"); set != "" {
		parts = append(parts, fmt.Sprintf("cpuset %s: %s", set, count(len(bench.Processors(set)), "core")))
	}
	if quota, group, ok := cpuQuota(root); ok {
		parts = append(parts, fmt.Sprintf("quota of control group %s: %.4g cores", group, quota))
	}
	if len(parts) == 0 {
		f.Found = "no limit on cores that the system tells of"
		return f
	}
	f.Found = strings.Join(parts, ", ")
	return f
}

// statusField is a line of /proc/self/status.
func statusField(root, key string) string {
	text, err := os.ReadFile(filepath.Join(root, "proc/self/status"))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, key+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// cpuQuota is the least number of cores that a control group on the way to the root allows.
func cpuQuota(root string) (cores float64, group string, ok bool) {
	for _, g := range hostmem.Groups(root, "cpu") {
		quota, period := smallFile(filepath.Join(g.Dir, "cpu.cfs_quota_us")), smallFile(filepath.Join(g.Dir, "cpu.cfs_period_us"))
		if f := strings.Fields(smallFile(filepath.Join(g.Dir, "cpu.max"))); g.V2 && len(f) == 2 {
			quota, period = f[0], f[1]
		}
		q, err1 := strconv.ParseFloat(strings.TrimSpace(quota), 64)
		p, err2 := strconv.ParseFloat(strings.TrimSpace(period), 64)
		// "max" and -1 are no limit.
		if err1 == nil && err2 == nil && q > 0 && p > 0 && (!ok || q/p < cores) {
			cores, group, ok = q/p, g.Name, true
		}
	}
	return cores, group, ok
}

// smallFile is a small file's text, "" when it cannot be read.
func smallFile(name string) string {
	text, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	return string(text)
}

// lockable says how much memory may be locked: what a GPU's copies read and write.
func lockable(root string) finding {
	f := finding{What: "lockable", OK: true, Found: "the system does not tell"}
	for line := range strings.Lines(smallFile(filepath.Join(root, "proc/self/limits"))) {
		v, ok := strings.CutPrefix(line, "Max locked memory")
		if !ok {
			continue
		}
		words := strings.Fields(v)
		if len(words) == 0 {
			return f
		}
		if words[0] == "unlimited" {
			f.Found = "any amount of memory"
			return f
		}
		n, err := strconv.ParseInt(words[0], 10, 64)
		if err != nil {
			return f
		}
		f.Found = telemetry.Bytes(n) + " of memory"
		if n < 1<<30 {
			f.Help = "a stream's copies to a GPU then go through a small locked ring, slower: `ulimit -l unlimited`, or a container with --ulimit memlock=-1"
		}
	}
	return f
}

// numa lists the nodes, their cores and memory.
func numa(root string) finding {
	f := finding{What: "numa", OK: true}
	dirs, _ := filepath.Glob(filepath.Join(root, "sys/devices/system/node/node[0-9]*"))
	var parts []string
	for _, d := range dirs {
		text := strings.TrimPrefix(filepath.Base(d), "node")
		if cpus := strings.TrimSpace(smallFile(filepath.Join(d, "cpulist"))); cpus != "" {
			text += ": cores " + cpus
		} else {
			text += ": no cores"
		}
		for line := range strings.Lines(smallFile(filepath.Join(d, "meminfo"))) {
			w := strings.Fields(line) // Node 0 MemTotal:  65536 kB
			if len(w) >= 4 && w[2] == "MemTotal:" {
				if n, err := strconv.ParseInt(w[3], 10, 64); err == nil {
					text += ", " + telemetry.Bytes(n<<10)
				}
			}
		}
		parts = append(parts, text)
	}
	switch len(parts) {
	case 0:
		f.Found = "the system does not tell"
	case 1:
		f.Found = "one node"
	default:
		f.Found = fmt.Sprintf("%d nodes (%s)", len(parts), strings.Join(parts, "; "))
	}
	return f
}

// links are the PCIe links of NVIDIA GPUs, as they are and as they could be.
func links(root string) []finding {
	var out []finding
	dirs, _ := filepath.Glob(filepath.Join(root, "proc/driver/nvidia/gpus/*"))
	for _, d := range dirs {
		dev := filepath.Join(root, "sys/bus/pci/devices", filepath.Base(d))
		read := func(name string) string { return strings.TrimSpace(smallFile(filepath.Join(dev, name))) }
		f := finding{What: "link", OK: true}
		width, most := read("current_link_width"), read("max_link_width")
		if width == "" {
			continue
		}
		f.Found = fmt.Sprintf("x%s at %s (up to x%s at %s)", width, read("current_link_speed"), most, read("max_link_speed"))
		if n := read("numa_node"); n != "" && n != "-1" {
			f.Found += ", NUMA node " + n
		}
		if width != most {
			f.Help = "the card is in a slot with fewer lanes than it has: copies are slower for it"
		}
		out = append(out, f)
	}
	return out
}

// profiles says for which targets this machine was measured.
func profiles() finding {
	f := finding{What: "profile", OK: true}
	var known []string
	for _, target := range []string{"cpu", "cuda"} {
		m, err := cost.Cached(target)
		if err != nil {
			f.Found, f.Help = err.Error(), "`mtc bench --target "+target+"` writes it anew"
			return f
		}
		if m != nil {
			known = append(known, fmt.Sprintf("%s (%s)", target, m.Link.H2D.Source))
		}
	}
	if len(known) == 0 {
		f.Found, f.Help = "this machine was never measured", "`mtc bench` makes mtc plan and mtc inspect predict for it"
		return f
	}
	f.Found = strings.Join(known, ", ")
	return f
}
