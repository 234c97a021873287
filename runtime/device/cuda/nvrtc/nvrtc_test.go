//go:build cuda

package nvrtc

import (
	"errors"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/device/cuda/kit"
)

// TestCompile: a kernel becomes machine code, and one that does not compile shows why.
func TestCompile(t *testing.T) {
	if _, _, err := Version(); errors.Is(err, ErrMissing) {
		t.Skip(err)
	}
	const good = "#include \"mtc.cuh\"\nextern \"C\" __global__ void f(Args a) { *(float*)a.p[0] = S0; }\n"
	code, _, err := Compile("good.cu", good, kit.HeaderName, kit.Header, kit.Options("sm_90a", true, [4]int64{7}))
	if err != nil || !strings.HasPrefix(string(code), "\x7fELF") {
		t.Errorf("%d bytes, %v", len(code), err)
	}
	_, _, err = Compile("bad.cu", "int x = y;", kit.HeaderName, kit.Header, kit.Options("sm_80", false, [4]int64{}))
	var e *Error
	if !errors.As(err, &e) || !strings.Contains(e.Log, `bad.cu(1): error: identifier "y" is undefined`) {
		t.Errorf("got %v", err)
	}
}
