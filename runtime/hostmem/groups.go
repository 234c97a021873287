package hostmem

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Group is one control group: its folder, which need not be there, its name and its version.
type Group struct {
	Dir, Name string
	V2        bool
}

// Groups lists the control groups of the process that count for a controller, from its own up to the
// root, of both versions.
func Groups(root, controller string) (out []Group) {
	text, _ := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3) // hierarchy:controllers:path
		if len(parts) != 3 {
			continue
		}
		v2 := parts[0] == "0" && parts[1] == ""
		mounts := []string{"", "unified"}
		if !v2 {
			if !slices.Contains(strings.Split(parts[1], ","), controller) {
				continue
			}
			mounts = slices.Compact([]string{controller, parts[1]})
		}
		for _, m := range mounts {
			// Inside a container the path may be that of the host, of which only the end,
			// or nothing, is mounted: folders that are not there are passed over.
			for p := path.Clean("/" + parts[2]); ; p = path.Dir(p) {
				out = append(out, Group{filepath.Join(root, "sys/fs/cgroup", m, p), p, v2})
				if p == "/" {
					break
				}
			}
		}
	}
	return out
}
