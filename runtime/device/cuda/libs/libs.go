// Package libs finds the shared libraries of CUDA that a program opens while it runs. It is
// plain Go: it names paths to try, in order, and opens nothing.
package libs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
)

// Lib is a library that is opened at run time.
type Lib struct {
	Name    string    // as in messages
	Sonames []string  // names of the file, the newest first
	Wheel   string    // Python package that brings it
	Apt     string    // package of NVIDIA's repository that brings it
	Older   [2]string // both, of CUDA 12
}

// driver is the CUDA version of the driver, 13000; 0 while it is not known.
var driver atomic.Int32

// For says for which driver libraries are looked for from now on. Those of CUDA 13 do not run on one of CUDA 12,
// which has to be of version 580 for them.
func For(version int) { driver.Store(int32(version)) }

// old tells whether the driver takes no libraries of CUDA 13.
func old() bool { return driver.Load() != 0 && driver.Load() < 13000 }

// Names are the file's names that the driver takes.
func (l Lib) Names() []string {
	if !old() {
		return l.Sonames
	}
	return slices.DeleteFunc(slices.Clone(l.Sonames), func(so string) bool { return strings.HasSuffix(so, ".so.13") })
}

// The libraries.
var (
	Driver   = Lib{Name: "the NVIDIA driver", Sonames: []string{"libcuda.so.1"}, Apt: "nvidia-driver"}
	NVRTC    = Lib{Name: "NVRTC", Sonames: []string{"libnvrtc.so.13", "libnvrtc.so.12"}, Wheel: "nvidia-cuda-nvrtc", Apt: "cuda-nvrtc-13-0", Older: [2]string{"nvidia-cuda-nvrtc-cu12", "cuda-nvrtc-12-9"}}
	CublasLt = Lib{Name: "cuBLASLt", Sonames: []string{"libcublasLt.so.13", "libcublasLt.so.12"}, Wheel: "nvidia-cublas", Apt: "libcublas-13-0", Older: [2]string{"nvidia-cublas-cu12", "libcublas-12-9"}}
	Cudnn    = Lib{Name: "cuDNN", Sonames: []string{"libcudnn.so.9"}, Wheel: "nvidia-cudnn-cu13", Apt: "libcudnn9-cuda-13"}
)

// Candidates are what to give to dlopen, in order: the bare name, which the loader looks up in
// its own paths; the toolkit in CUDA_HOME and /usr/local/cuda; the folders of NVIDIA's Python
// packages; and the SDK that `make cuda-sdk` unpacked, below the working folder or beside the
// program. Paths are listed only when the file is there.
//
// MTC_CUDA_HIDE=libnvrtc,libcublasLt leaves none for the libraries named: for tests of what is
// said then.
func (l Lib) Candidates() []string {
	if l.hidden() {
		return nil
	}
	out := slices.Clone(l.Names())
	for _, dir := range Dirs() {
		for _, so := range l.Names() {
			if path := filepath.Join(dir, so); isFile(path) {
				out = append(out, path)
			}
		}
	}
	return out
}

func (l Lib) hidden() bool {
	name, _, _ := strings.Cut(l.Sonames[0], ".")
	return slices.Contains(strings.Split(os.Getenv("MTC_CUDA_HIDE"), ","), name)
}

// Why joins what the loader said of each candidate.
func (l Lib) Why(said []string) string {
	if l.hidden() {
		return "hidden by MTC_CUDA_HIDE"
	}
	return strings.Join(said, "; ")
}

// Missing says how to get the library.
func (l Lib) Missing() string {
	wheel, apt, why, ways := l.Wheel, l.Apt, "", []string(nil)
	if l.Older[0] != "" && old() {
		wheel, apt, why = l.Older[0], l.Older[1], "the driver is of CUDA 12 and takes none of CUDA 13: "
	}
	if wheel != "" {
		ways = append(ways, "`pip install "+wheel+"`")
	}
	if apt != "" {
		ways = append(ways, "the system package "+apt)
	}
	ways = append(ways, "or set CUDA_HOME to a toolkit that has it")
	return why + strings.Join(ways, ", ")
}

// Dirs are the folders to look in after the loader's own.
func Dirs() []string {
	var out []string
	add := func(dirs ...string) {
		for _, d := range dirs {
			if st, err := os.Stat(d); err == nil && st.IsDir() && !slices.Contains(out, d) {
				out = append(out, d)
			}
		}
	}
	for _, home := range []string{os.Getenv("CUDA_HOME"), os.Getenv("CUDA_PATH"), "/usr/local/cuda"} {
		if home != "" {
			add(filepath.Join(home, "lib64"), filepath.Join(home, "lib"), filepath.Join(home, "targets/x86_64-linux/lib"))
		}
	}
	for _, site := range sitePackages() {
		for _, pattern := range []string{"nvidia/cu13/lib", "nvidia/*/lib"} {
			found, _ := filepath.Glob(filepath.Join(site, pattern))
			add(found...)
		}
	}
	for _, root := range roots() {
		found, _ := filepath.Glob(filepath.Join(root, ".sdk/cuda-*/lib"))
		add(found...)
	}
	return out
}

// sitePackages are the folders of Python packages: those of the active environment, of the
// python3 on the path, of the system, and of the user.
func sitePackages() []string {
	var homes []string
	if v := os.Getenv("VIRTUAL_ENV"); v != "" {
		homes = append(homes, v)
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		python := filepath.Join(dir, "python3")
		if isFile(python) {
			homes = append(homes, filepath.Dir(dir))
			if real, err := filepath.EvalSymlinks(python); err == nil {
				homes = append(homes, filepath.Dir(filepath.Dir(real)))
			}
		}
	}
	if h, err := os.UserHomeDir(); err == nil {
		homes = append(homes, filepath.Join(h, ".local"))
	}
	homes = append(homes, "/usr/local", "/usr")
	var out []string
	for _, h := range homes {
		for _, kind := range []string{"site-packages", "dist-packages"} {
			found, _ := filepath.Glob(filepath.Join(h, "lib*/python3*", kind))
			out = append(out, found...)
		}
	}
	out = append(out, filepath.SplitList(os.Getenv("PYTHONPATH"))...)
	return slices.Compact(out)
}

// roots are the working folder and those above it, and the program's own.
func roots() []string {
	var starts, out []string
	if wd, err := os.Getwd(); err == nil {
		starts = append(starts, wd)
	}
	if exe, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(exe))
	}
	for _, dir := range starts {
		for {
			out = append(out, dir)
			up := filepath.Dir(dir)
			if up == dir {
				break
			}
			dir = up
		}
	}
	return out
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}
