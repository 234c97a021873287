//go:build cuda

package emu

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/megatrain/mtc/runtime/device/cuda/kit"
)

//go:embed emu.h
var header string

// sharedArray is dynamic shared memory of a kernel.
var sharedArray = regexp.MustCompile(`extern __shared__ (?:__align__\(\d+\) )?(\w+) (\w+)\[\];`)

var entryPoint = regexp.MustCompile(`extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\(Args a\)`)

func compiler() string {
	if c := os.Getenv("CXX"); c != "" {
		return c
	}
	return "g++"
}

// Text is what the host compiler gets: emu.h, the kernels' header, the kernels, and for each of
// them a function that runs it.
func Text(kernels string, f32 bool, spec [4]int64) (string, error) {
	const one = `asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));`
	const exp2 = `asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));`
	const recip = `asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));`
	const tanh = `asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));`
	const two = `asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));`
	for _, known := range []string{one, two, exp2, recip, tanh} {
		if !strings.Contains(kit.Header, known) {
			return "", errors.New("mtc.cuh converts, or approximates, otherwise than this emulation knows")
		}
	}
	base := strings.NewReplacer(one, "r.bits = emu_bf16(x);", two, "r = (u32)emu_bf16(lo) | (u32)emu_bf16(hi) << 16;",
		exp2, "y = exp2f(x);", recip, "y = 1.0f / x;", tanh, "y = tanhf(x);", "#pragma once", "").Replace(kit.Header)
	var b strings.Builder
	if f32 {
		b.WriteString("#define MTC_F32\n")
	}
	for i, n := range spec {
		fmt.Fprintf(&b, "#define S%d %d\n", i, n)
	}
	if !sharedArray.MatchString(kernels) {
		b.WriteString("#define EMU_SHARED 16\n")
	}
	b.WriteString(header)
	b.WriteString(base)
	b.WriteString("#line 1 \"kernels.cu\"\n")
	kernels = strings.ReplaceAll(kernels, `#include "mtc.cuh"`, "")
	b.WriteString(sharedArray.ReplaceAllString(kernels, "static $1* $2 = ($1*)emu_shared;"))
	b.WriteString("\nstatic Args emu_a;\n")
	for _, m := range entryPoint.FindAllStringSubmatch(kernels, -1) {
		fmt.Fprintf(&b, `extern "C" const char* run_%[1]s(const Args* a, unsigned x, unsigned y, unsigned z, int threads, int back) {
    emu_a = *a;
    return emu_launch({x, y, z}, threads, back != 0, [] { %[1]s(emu_a); });
}
`, m[1])
	}
	return b.String(), nil
}

// Build compiles a text to a shared library, or finds what an earlier run compiled.
func Build(key, text string) (string, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("mtc-emu-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(dir, key+".so")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	tmp, err := os.MkdirTemp(dir, "build-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	src, out := filepath.Join(tmp, "k.cpp"), filepath.Join(tmp, "k.so")
	if err := os.WriteFile(src, []byte(text), 0o600); err != nil {
		return "", err
	}
	cmd := exec.Command(compiler(), "-std=c++17", "-O1", "-fno-strict-aliasing", "-fPIC", "-shared", "-w",
		"-fsanitize=alignment", "-fsanitize-undefined-trap-on-error", "-o", out, src)
	if log, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the kernel does not compile for the CPU: %w\n%s", err, log)
	}
	return path, os.Rename(out, path)
}
