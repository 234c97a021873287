// Package hostmem says how much memory and how many processors this process may use: the
// least of what the machine has free, what every control group above the process allows, and its own
// limits. On systems that do not tell, nothing is known, which is not an error.
package hostmem

import (
	"bufio"
	"bytes"
	"os"
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
	for _, g := range Groups(root, "memory") {
		most, now, cache := "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
		if g.V2 {
			most, now, cache = "memory.max", "memory.current", "inactive_file"
		}
		limit, found := number(filepath.Join(g.Dir, most))
		if !found { // "max" in version 2
			continue
		}
		used, _ := number(filepath.Join(g.Dir, now))
		// Pages of files can be dropped, so they do not stand in the way.
		used -= field(filepath.Join(g.Dir, "memory.stat"), cache)
		if free := max(0, limit-used); !ok || free < f.Bytes {
			f, ok = Free{free, "memory limit of control group " + g.Name}, true
		}
	}
	mapped, _ := meminfo(filepath.Join(root, "proc/self/status"), "VmSize")
	if free := max(0, addressSpace()-mapped); free < 1<<62 && (!ok || free < f.Bytes) {
		f, ok = Free{free, "limit of the address space, `ulimit -v`"}, true
	}
	return f, ok
}

// Total is the memory of the machine, 0 when it does not tell.
func Total() int64 {
	n, _ := meminfo("/proc/meminfo", "MemTotal")
	return n
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
