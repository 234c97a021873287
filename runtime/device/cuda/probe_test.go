//go:build cuda

package cuda

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/fault"
)

func args() []string { return os.Args }

// TestProbe is run by TestErrors in other surroundings; by itself it wants a GPU.
func TestProbe(t *testing.T) {
	want := os.Getenv("MTC_WANT")
	_, err := New(Options{})
	var f *fault.Error
	switch {
	case want == "" && err != nil:
		t.Fatal(err)
	case want == "":
	case !errors.As(err, &f) || f.Code != want || f.ExitCode() != 3 || f.Hint == "":
		t.Errorf("got %v, want %s with a hint", err, want)
	}
	if v, set := os.LookupEnv("CUDA_VISIBLE_DEVICES"); set && want != "" && !strings.Contains(f.Hint, fmt.Sprintf("CUDA_VISIBLE_DEVICES is %q", v)) {
		t.Errorf("the hint does not say what hides GPUs: %s", f.Hint)
	}
}

// TestErrors: what is missing is told apart.
func TestErrors(t *testing.T) {
	if !fake() {
		t.Skip("the stand-in only")
	}
	again(t, "TestProbe", "MTC_FAKE_CUDA=none", "MTC_WANT="+codeNoGPU)
	again(t, "TestProbe", "MTC_FAKE_CUDA=old", "MTC_WANT="+codeOldDriver)
	for _, visible := range []string{"", "-1", "7", "none", "GPU-0123"} {
		again(t, "TestProbe", "CUDA_VISIBLE_DEVICES="+visible, "MTC_WANT="+codeNoGPU)
	}
	again(t, "TestProbe", "CUDA_VISIBLE_DEVICES=0,7")
	if out := again(t, "TestProbe", "LD_LIBRARY_PATH=", "MTC_NO_FAKE=1", "MTC_WANT="+codeNoDriver); !strings.Contains(out, "PASS") {
		t.Error(out)
	}
}

// TestMemoryIsShort says how much there is.
func TestMemoryIsShort(t *testing.T) {
	d := open(t, Options{})
	_, total := d.Free()
	_, err := d.Alloc(device.DeviceMemory, 2*total)
	var m *device.MemoryError
	if !errors.As(err, &m) || m.Want != 2*total || m.Have <= 0 || m.Have > total || m.Memory != device.DeviceMemory {
		t.Errorf("got %v", err)
	}
	if _, err := d.Alloc(device.DeviceMemory, 1<<20); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestCache: machine code is kept on disk, and a damaged file is made again.
func TestCache(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	run := func() {
		d := open(t, Options{F32: true})
		x := alloc(t, d, device.DeviceMemory, 256)
		if err := d.Warm(func(q device.Queue) { q.Launch(add, addArgs(x, x, 64, 1)) }); err != nil {
			t.Fatal(err)
		}
		d.Queue(device.Compute).Launch(add, addArgs(x, x, 64, 1))
		if err := d.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	run()
	files, _ := filepath.Glob(filepath.Join(dir, "mtc/cuda/*"))
	if len(files) != 1 || filepath.Ext(files[0]) != ".cubin" {
		t.Fatalf("the cache holds %v", files)
	}
	before, _ := os.Stat(files[0])
	run()
	if after, err := os.Stat(files[0]); err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the second run did not use the cache: %v", err)
	}
	for what, put := range map[string]func(path string) error{
		"a pipe":   func(path string) error { return syscall.Mkfifo(path, 0o666) },
		"a device": func(path string) error { return os.Symlink("/dev/zero", path) },
		"a folder": func(path string) error { return os.Mkdir(path, 0o777) },
		"huge": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o666), os.Truncate(path, 1<<40))
		},
	} {
		if err := errors.Join(os.RemoveAll(files[0]), put(files[0])); err != nil {
			t.Fatal(err)
		}
		t.Log(what) // which a run would never end of
		run()
	}
	if err := os.RemoveAll(files[0]); err != nil {
		t.Fatal(err)
	}
	run()
	good, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Clone(good)
	changed[len(changed)/2] ^= 1
	for name, damaged := range map[string][]byte{"other text": []byte("damaged"), "empty": nil, "half": good[:len(good)/2], "a changed bit": changed} {
		if err := os.WriteFile(files[0], damaged, 0o666); err != nil {
			t.Fatal(err)
		}
		run()
		if now, err := os.ReadFile(files[0]); err != nil || !bytes.Equal(now, good) {
			t.Errorf("%s: the damaged file was not made again: %v", name, err)
		}
	}
}

// TestCacheCannotBeWritten: it only costs time, whatever is in the folder's place.
func TestCacheCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, home := range []string{file, filepath.Join(file, "below"), "/proc/self", "relative", ""} {
		t.Setenv("XDG_CACHE_HOME", home)
		if home == "" {
			t.Setenv("HOME", "")
		}
		d := open(t, Options{F32: true})
		x := alloc(t, d, device.DeviceMemory, 256)
		d.Queue(device.Compute).Launch(add, addArgs(x, x, 64, 1))
		if err := d.Sync(); err != nil {
			t.Errorf("XDG_CACHE_HOME=%q: %v", home, err)
		}
	}
}
