#!/usr/bin/env bash
# make cuda-build: what can be shown of the CUDA side on a machine without a GPU: everything is
# vetted and built, the device passes its tests over a stand-in for the driver, a program of each
# family of models is built, and every kernel compiles for sm_80, sm_90 and sm_120.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tools/cuda/env.sh
say() { printf '%4d s  %s\n' "$SECONDS" "$*"; }
out=build/cuda/check
say "vet"
go vet -tags cuda ./runtime/... ./tools/cuda/...
say "tests of the device"
go test -tags cuda ./runtime/device/cuda/
say "a program of each family"
CGO_ENABLED=0 go build -o build/cuda/mtc ./cmd/mtc
for family in gpt2 llama mistral qwen2 qwen3; do
  build/cuda/mtc compile e2e/testdata/fixtures/$family.mt --target cuda -o $out/$family >/dev/null
done
rm -rf $out
say "kernels"
go build -tags cuda -o build/cuda/nvcheck ./tools/cuda/nvcheck
build/cuda/nvcheck -mode bf16
build/cuda/nvcheck -mode f32 -arch sm_90a # the precision for debugging
say "done"
