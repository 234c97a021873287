// Package hostmem says how much memory and how many processors this process may use: the
// least of what the machine has free and what every control group above the process allows.
// On systems that do not tell, nothing is known, which is not an error.
package hostmem

import (
	"bufio"
	"bytes"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// Free is what may still be used.
type Free struct {
	Bytes int64
	// Limit is what sets it: "free memory of the machine", "memory limit of control group /a/b".
	Limit string
}

// Available reads the machine. ok is false when it does not tell.
func Available() (f Free, ok bool) { return available("/") }

// available reads /proc and /sys below root.
func available(root string) (f Free, ok bool) {
	if n, found := meminfo(filepath.Join(root, "proc/meminfo"), "MemAvailable"); found {
		f, ok = Free{n, "free memory of the machine"}, true
	}
	for _, g := range groups(root) {
		limit, found := number(filepath.Join(g.dir, g.limit))
		if !found { // "max" in version 2
			continue
		}
		used, _ := number(filepath.Join(g.dir, g.used))
		// Pages of files can be dropped, so they do not stand in the way.
		used -= field(filepath.Join(g.dir, "memory.stat"), g.cache)
		if free := max(0, limit-used); !ok || free < f.Bytes {
			f, ok = Free{free, "memory limit of control group " + g.name}, true
		}
	}
	return f, ok
}

// Total is the memory of the machine, 0 when it does not tell.
func Total() int64 {
	n, _ := meminfo("/proc/meminfo", "MemTotal")
	return n
}

// group is one control group that limits memory, in the terms of its version.
type group struct {
	dir, name          string
	limit, used, cache string
}

// groups lists the control groups of the process from its own up to the root, of both
// versions.
func groups(root string) []group {
	text, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return nil
	}
	var out []group
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		parts := strings.SplitN(line, ":", 3) // hierarchy:controllers:path
		if len(parts) != 3 {
			continue
		}
		g := group{limit: "memory.max", used: "memory.current", cache: "inactive_file"}
		var mounts []string
		switch {
		case parts[0] == "0" && parts[1] == "":
			mounts = []string{"sys/fs/cgroup", "sys/fs/cgroup/unified"}
		case has(parts[1], "memory"):
			g = group{limit: "memory.limit_in_bytes", used: "memory.usage_in_bytes", cache: "total_inactive_file"}
			mounts = []string{"sys/fs/cgroup/memory"}
		}
		for _, m := range mounts {
			// Inside a container the path may be that of the host, of which only the end,
			// or nothing, is mounted: folders that are not there are passed over.
			for p := path.Clean("/" + parts[2]); ; p = path.Dir(p) {
				g.dir, g.name = filepath.Join(root, m, p), p
				out = append(out, g)
				if p == "/" {
					break
				}
			}
		}
	}
	return out
}

func has(list, word string) bool {
	for _, w := range strings.Split(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}

// Peak is the most memory that this process had resident so far, 0 where that cannot be told.
func Peak() int64 {
	n, _ := meminfo("/proc/self/status", "VmHWM")
	return n
}

// meminfo is a line of /proc/meminfo, or of a process's status, in bytes.
func meminfo(file, key string) (int64, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		f := strings.Fields(s.Text()) // MemAvailable:  24142364 kB
		if len(f) >= 2 && f[0] == key+":" {
			n, err := strconv.ParseInt(f[1], 10, 64)
			return n << 10, err == nil
		}
	}
	return 0, false
}

// number reads a file that holds one number.
func number(file string) (int64, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// field reads one "key value" line of a file, 0 when it is not there.
func field(file, key string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		if v, ok := strings.CutPrefix(s.Text(), key+" "); ok {
			n, _ := strconv.ParseInt(v, 10, 64)
			return n
		}
	}
	return 0
}
