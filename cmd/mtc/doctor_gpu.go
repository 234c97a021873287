package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/megatrain/mtc/codegen"
	"github.com/megatrain/mtc/runtime/device/cuda/libs"
)

// graphics is what doctor says about NVIDIA GPUs below root, and about building for them. A
// machine without a GPU lacks nothing; one with a GPU has to have what programs open.
func graphics(root string) []finding {
	f := finding{What: "gpu", OK: true, Found: "none", Missing: "programs for CUDA"}
	driver, _ := os.ReadFile(filepath.Join(root, "proc/driver/nvidia/version"))
	names := gpuNames(root)
	lib := libs.Driver.Find()
	switch {
	case len(driver) == 0 && lib == "":
		return append([]finding{f}, sdk())
	case lib == "":
		f.OK, f.Found = false, "the driver is loaded, but its library libcuda.so.1 is not found"
		f.Help = "install the user part of the driver; in a container, pass the GPUs through (--gpus all)"
	case len(names) == 0:
		f.Found = "a driver (" + lib + "), but no GPU that the system shows"
	default:
		f.Found = strings.Join(names, ", ")
	}
	if v := driverVersion(string(driver)); v != "" {
		f.Found += ", driver " + v
		cuda := 13000
		if n, err := strconv.Atoi(v[:strings.IndexByte(v, '.')]); err == nil && n < 580 {
			cuda = 12000
		}
		libs.For(cuda)
	}
	out := []finding{f}
	for _, l := range []libs.Lib{libs.NVRTC, libs.CublasLt} {
		f := finding{What: strings.ToLower(l.Name), Missing: "programs for CUDA", Found: l.Find()}
		if f.OK = f.Found != ""; !f.OK {
			f.Found, f.Help = "not found", l.Missing()
		}
		out = append(out, f)
	}
	return append(out, sdk())
}

// gpuNames reads the driver's own list.
func gpuNames(root string) []string {
	var out []string
	files, _ := filepath.Glob(filepath.Join(root, "proc/driver/nvidia/gpus/*/information"))
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if v, ok := strings.CutPrefix(line, "Model:"); ok {
				out = append(out, strings.TrimSpace(v))
			}
		}
	}
	return out
}

// driverVersion picks the number out of /proc/driver/nvidia/version.
func driverVersion(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	for _, w := range strings.Fields(line) {
		if w[0] >= '0' && w[0] <= '9' && strings.Count(w, ".") >= 1 {
			return w
		}
	}
	return ""
}

// sdk says whether programs for CUDA can be built here.
func sdk() finding {
	f := finding{What: "cuda sdk", OK: true}
	m, err := codegen.FindModule("")
	if err != nil || m.Dir == "" {
		f.Found = "programs for CUDA are built from a checkout of mtc"
		return f
	}
	if _, err := os.Stat(filepath.Join(m.Dir, ".sdk", "cuda.env")); err != nil {
		f.Found, f.Help = "not prepared", "`make cuda-sdk` in "+m.Dir+" makes `mtc compile --target cuda` work, with or without a GPU"
		return f
	}
	f.Found = "prepared: mtc compile --target cuda works"
	return f
}
