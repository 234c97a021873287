package libs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func touch(t *testing.T, path string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestCandidates: the loader's own choice first, then the toolkit, Python's packages, the SDK.
func TestCandidates(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	toolkit := touch(t, filepath.Join(root, "cuda/lib64/libnvrtc.so.12"))
	wheel := touch(t, filepath.Join(root, "venv/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13"))
	sdk := touch(t, filepath.Join(root, "work/.sdk/cuda-13.0/lib/libnvrtc.so.13"))
	touch(t, filepath.Join(root, "work/sub/x"))
	t.Setenv("CUDA_HOME", filepath.Join(root, "cuda"))
	t.Setenv("VIRTUAL_ENV", filepath.Join(root, "venv"))
	t.Chdir(filepath.Join(root, "work/sub"))
	got := NVRTC.Candidates()
	if !slices.Equal(got[:2], NVRTC.Sonames) {
		t.Errorf("the loader is not asked first: %v", got)
	}
	at := []int{slices.Index(got, toolkit), slices.Index(got, wheel), slices.Index(got, sdk)}
	if at[0] < 0 || !slices.IsSorted(at) {
		t.Errorf("%v at %v", got, at)
	}
	if got := NVRTC.Missing(); !strings.Contains(got, "pip install nvidia-cuda-nvrtc") {
		t.Error(got)
	}
}

// TestFind looks where the loader does.
func TestFind(t *testing.T) {
	root := t.TempDir()
	t.Setenv("LD_LIBRARY_PATH", filepath.Join(root, "a"))
	want := touch(t, filepath.Join(root, "a/libcudnn.so.9"))
	if got := Cudnn.Find(); got != want {
		t.Errorf("found %q, want %q", got, want)
	}
	touch(t, filepath.Join(root, "opt/nvidia/x.so"))
	conf := touch(t, filepath.Join(root, "etc/ld.so.conf.d/nvidia.conf"))
	if err := os.WriteFile(conf, []byte("# nvidia\n/opt/nvidia\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if dirs := loaderDirs(root); !slices.Contains(dirs, filepath.Join(root, "opt/nvidia")) {
		t.Errorf("no folder of ld.so.conf.d in %v", dirs)
	}
}

// A driver of CUDA 12 gets libraries of CUDA 12 alone, and the names of what brings them; a newer one takes both.
func TestOlderDriver(t *testing.T) {
	t.Cleanup(func() { For(0) })
	root := t.TempDir()
	t.Setenv("CUDA_HOME", filepath.Join(root, "cuda"))
	thirteen, twelve := touch(t, filepath.Join(root, "cuda/lib64/libcublasLt.so.13")), touch(t, filepath.Join(root, "cuda/lib64/libcublasLt.so.12"))
	for _, c := range []struct {
		driver  int
		both    bool
		missing string
	}{{0, true, "nvidia-cublas`"}, {12040, false, "nvidia-cublas-cu12`"}, {12090, false, "libcublas-12-9"}, {13000, true, "libcublas-13-0"}, {14000, true, "nvidia-cublas`"}} {
		For(c.driver)
		got := CublasLt.Candidates()
		if slices.Contains(got, thirteen) != c.both || slices.Contains(got, "libcublasLt.so.13") != c.both || !slices.Contains(got, twelve) {
			t.Errorf("driver %d: %v", c.driver, got)
		}
		if m := CublasLt.Missing(); !strings.Contains(m, c.missing) || strings.Contains(m, "CUDA 12") == c.both {
			t.Errorf("driver %d: %s", c.driver, m)
		}
	}
}
