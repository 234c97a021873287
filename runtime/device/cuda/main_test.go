//go:build cuda

package cuda

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/device"
)

// On a machine without a GPU the tests run over emu/standin/driver.c and blaslt.c, which are built
// and put in the libraries' place in a process of its own. MTC_FAKE_CUDA is then set.
func TestMain(m *testing.M) {
	if code, _ := driverStatus(); code != 0 && os.Getenv("MTC_FAKE_CUDA") == "" && os.Getenv("MTC_NO_FAKE") == "" {
		os.Exit(overFake())
	}
	os.Exit(m.Run())
}

// fakeDir holds the stand-in's library, "" when there is none.
var fakeDir = os.Getenv("MTC_FAKE_DIR")

// overFake runs this executable again over the stand-in.
func overFake() int {
	dir, err := os.MkdirTemp("", "mtc-fake-cuda-")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	if _, err := exec.LookPath("gcc"); err != nil {
		fmt.Println("skipped: there is no GPU, and no gcc to build a stand-in for its driver")
		return 0
	}
	driver, blas := filepath.Join(dir, "libcuda.so.1"), filepath.Join(dir, "libcublasLt.so.13")
	for _, args := range [][]string{
		{"-O1", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", driver, "emu/standin/driver.c", "-lpthread"},
		{"-O1", "-shared", "-fPIC", "-o", blas, "emu/standin/blaslt.c", driver},
	} {
		if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
			fmt.Printf("the stand-in does not build: %v\n%s", err, out)
			return 1
		}
	}
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Env = append(os.Environ(), "MTC_FAKE_CUDA=on", "MTC_FAKE_DIR="+dir, "LD_LIBRARY_PATH="+dir)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		if x, ok := err.(*exec.ExitError); ok {
			return x.ExitCode()
		}
		fmt.Println(err)
		return 1
	}
	return 0
}

func fake() bool { return fakeDir != "" }

// again runs one test of this executable in a process of its own, with more in its
// environment, and returns what it printed.
func again(t *testing.T, test string, env ...string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.v")
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+test) {
		t.Errorf("%s with %v: %v\n%s", test, env, err, out)
	}
	return string(out)
}

func open(t testing.TB, o Options) *Device {
	t.Helper()
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func alloc(t testing.TB, d *Device, m device.Memory, n int64) device.Ptr {
	t.Helper()
	p, err := d.Alloc(m, n)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const testText = `#include "mtc.cuh"
extern "C" __global__ void test_add(Args a) {
    const float* x = (const float*)a.p[0];
    float* y = (float*)a.p[1];
    for (i64 k = thread_id(); k < a.i[0]; k += num_threads()) y[k] = x[k] + a.f[0];
}
extern "C" __global__ void test_partial(Args a) {
    float s = 0;
    for (i64 k = threadIdx.x; k < a.i[0]; k += 256) s += ((const float*)a.p[0])[k];
    s = block_sum<256>(s);
    if (threadIdx.x == 0) *(float*)a.work = s;
}
extern "C" __global__ void test_total(Args a) { *(float*)a.p[1] = *(float*)a.work; }
extern "C" __global__ void test_fault(Args a) { *(volatile int*)(8 + a.i[0]) = 1; }
`

func one(threads int32) func(*device.Args) device.Grid {
	return func(*device.Args) device.Grid { return device.Grid{X: 1, Threads: threads} }
}

// add is y = x + f, on the GPU and on the host.
var add = &device.Kernel{
	Name: "test.add",
	CUDA: &device.Source{Text: testText, Func: "test_add", Grid: one(256)},
	CPU: func(c device.CPU, a *device.Args) {
		x, y := c.F32(a.P[0], a.I[0]), c.F32(a.P[1], a.I[0])
		c.Parallel(a.I[0], 16, func(lo, hi int64) {
			for i := lo; i < hi; i++ {
				y[i] = x[i] + a.F[0]
			}
		})
	},
}

func addArgs(x, y device.Ptr, n int64, f float32) (a device.Args) {
	a.P[0], a.P[1], a.I[0], a.F[0] = x, y, n, f
	return a
}
