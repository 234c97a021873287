package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGraphics: no GPU is nothing to mend; a GPU without what programs open is.
func TestGraphics(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("LD_LIBRARY_PATH", filepath.Join(root, "lib"))
	find := func(what string) finding {
		for _, f := range graphics(root) {
			if f.What == what {
				return f
			}
		}
		return finding{}
	}
	write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.03  Release Build\nGCC version: x\n")
	write("proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA H200\nIRQ: 5\n")
	write("lib/libcuda.so.1", "")
	if f := find("gpu"); !f.OK || f.Found != "NVIDIA H200, driver 580.159.03" {
		t.Errorf("gpu: %+v", f)
	}
	write("lib/libnvrtc.so.13", "")
	if f := find("nvrtc"); !f.OK || !strings.HasSuffix(f.Found, "lib/libnvrtc.so.13") {
		t.Errorf("nvrtc: %+v", f)
	}
	if f := find("cublaslt"); !f.OK && !strings.Contains(f.Help, "pip install nvidia-cublas") {
		t.Errorf("cublaslt: %+v", f)
	}
}
