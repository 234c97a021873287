package codegen

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// BuildCUDA builds a program for CUDA, with what `make cuda-sdk` prepared in the module's
// source: headers, and a link stub in the place of the driver. It needs a C compiler and no
// GPU.
func BuildCUDA(ctx context.Context, dir, model string, m *Module) (string, error) {
	env, err := cudaEnv(m)
	if err != nil {
		return "", err
	}
	return build(ctx, dir, model, "cuda", env)
}

// cudaEnv is the environment of a build for CUDA.
func cudaEnv(m *Module) ([]string, error) {
	if m == nil || m.Dir == "" {
		return nil, &BuildError{
			Message: "a program for CUDA is built from a checkout of mtc, and this mtc is none",
			Hint:    "name a checkout in which `make cuda-sdk` was run with `--mtc-source DIR`",
			Machine: true,
		}
	}
	text, err := os.ReadFile(filepath.Join(m.Dir, ".sdk", "cuda.env"))
	if err != nil {
		return nil, &BuildError{
			Message: "what a build for CUDA needs has not been prepared",
			Hint:    fmt.Sprintf("run `make cuda-sdk` in %s; no GPU is needed to build", m.Dir),
			Machine: true,
		}
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n"), nil
}
