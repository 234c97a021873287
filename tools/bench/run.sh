#!/usr/bin/env bash
# Kernels and training steps against PyTorch on this CPU.
#
#   PYTHON=/path/to/python tools/bench/run.sh [arguments of compare.py]
#
# PYTHON needs torch (the CPU build will do). Programs are built in a temporary folder.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${PYTHON:-python3}
if ! "$python" -c 'import torch' 2>/dev/null; then
	echo "bench: $python has no torch; set PYTHON to one that has (python3 -m venv v && v/bin/pip install torch)" >&2
	exit 3
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
GOEXPERIMENT=simd go build -o "$tmp/bench" ./tools/bench
go build -o "$tmp/mtc" ./cmd/mtc
for m in nano gpt2; do
	"$tmp/mtc" compile "models/$m.mt" -o "$tmp/$m" --set "train.batch=1024 tokens" --set train.seq=256 >/dev/null
done
"$python" tools/bench/compare.py "$tmp/bench" --step "nano=$tmp/nano/nano" --step "gpt2=$tmp/gpt2/gpt2" "$@"
