#!/usr/bin/env bash
# make cuda-build: vet and build all packages for CUDA, run the CUDA tests that need no GPU, and
# compile every kernel for sm_80, sm_90 and sm_120. Needs `make cuda-sdk`, no GPU.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tools/cuda/env.sh
say() { printf '%4d s  %s\n' "$SECONDS" "$*"; }
say "vet"
go vet -tags cuda ./runtime/... ./tools/cuda/...
say "kernels"
go run -tags cuda ./tools/cuda/nvcheck
say "tests of the device"
go test -tags cuda ./runtime/device/cuda/...
say "done"
