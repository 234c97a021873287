#!/usr/bin/env bash
# Counts the lines of Go in runtime/ outside ops, tests and generated files (the emulation of CUDA is one), by package, against a budget: the
# runtime stays lean, what grows is ops.
set -euo pipefail
budget=${MTC_RUNTIME_BUDGET:-16000}
total=0
for dir in $(find runtime -type d -not -path 'runtime/ops*' -not -path 'runtime/device/cuda/emu*' | sort); do
  n=$(find "$dir" -maxdepth 1 -name '*.go' ! -name '*_test.go' -exec awk 'FNR == 1 { generated = /^\/\/ Code generated/ } !generated' {} + 2>/dev/null | wc -l)
  [ "$n" -gt 0 ] || continue
  printf '%7d  %s\n' "$n" "$dir"
  total=$((total + n))
done
printf '%7d  total of a budget of %d\n' "$total" "$budget"
[ "$total" -le "$budget" ]
