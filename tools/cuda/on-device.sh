#!/usr/bin/env bash
# Runs what tools/cuda/test-all.sh built, on a machine with a GPU, and prints a table last:
#
#   tools/cuda/on-device.sh [PART...]     parts: device ops programs curves (default: all)
#
# Logs go to $OUT (default build/cuda/out). Needs the driver, NVRTC, cuBLASLt and Python with
# numpy; no Go and no compiler.
set -uo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
OUT=${OUT:-$root/build/cuda/out}
mkdir -p "$OUT"
parts=" ${*:-device ops programs curves} "
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -c "
import lzma, sys, tarfile
with tarfile.open(fileobj=lzma.open('build/cuda/on-device.tar.xz')) as t: t.extractall('$work')" || exit 3
export XDG_CACHE_HOME=$work/cache
table=$work/table
: >"$table"
row() { printf '%-44s %-5s %6s s  %s\n' "$1" "$2" "$3" "$4" | cut -c1-150 | tee -a "$table"; }
now() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.1f", b - a }'; }

nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>&1 | head -1 | tee "$OUT/machine.txt"

one_test() { # binary
  local bin=$1 name rel start log
  name=$(basename "$bin" .test)
  rel=${name//__//}
  log=$work/$name.log
  start=$(now)
  (cd "$root/$rel" && timeout 240 "$bin" -test.v -test.timeout 230s) >"$log" 2>&1
  local rc=$? state=ok note
  [ $rc -eq 0 ] || state=FAIL
  note="$(grep -c -- '--- PASS' "$log") passed, $(grep -c -- '--- SKIP' "$log") skipped, $(grep -c -- '--- FAIL' "$log") failed"
  { echo "=== $rel: exit $rc"; if [ $rc -eq 0 ]; then grep -E -- '--- (SKIP)|allowance|GB/s|skipped:' "$log"; else tail -c 20000 "$log"; fi; } >>"$OUT/tests.log"
  row "$rel" $state "$(since "$start")" "$note"
}

if [[ $parts == *" device "* ]]; then
  for b in "$work"/tests/runtime__device__*.test; do [ -f "$b" ] && one_test "$b"; done
fi
if [[ $parts == *" ops "* ]]; then
  export -f one_test row now since
  export work root table OUT
  find "$work/tests" -name 'runtime__op*.test' -print0 | sort -z | xargs -0 -P 6 -I{} bash -c 'one_test {}'
fi
if [[ $parts == *" programs "* ]]; then
  for p in "$work"/programs/*.{f32,bf16}.*; do
    name=$(basename "$p")
    family=${name%%.*}
    fixture=e2e/testdata/fixtures/$family.safetensors
    [ -f "$fixture" ] || continue
    tol=1e-4
    case $name in *.bf16.*) tol=bf16 ;; esac
    start=$(now)
    timeout 120 "$p" debug-step --fixture "$fixture" --dump "$work/$name.safetensors" >"$work/$name.log" 2>&1
    rc=$?
    if [ $rc -eq 0 ]; then
      note=$(python3 tools/cuda/compare.py "$work/$name.safetensors" "$fixture" $tol 2>>"$OUT/programs.log")
      rc=$?
    else
      note=$(tail -4 "$work/$name.log" | tr '\n' ' ')
    fi
    { echo "=== $name: exit $rc"; cat "$work/$name.log"; echo "$note"; } >>"$OUT/programs.log"
    row "$name" "$([ $rc -eq 0 ] && echo ok || echo FAIL)" "$(since "$start")" "$note"
  done
  for d in "$work"/*.stream.safetensors; do # streamed and resident: the same steps, bit for bit
    [ -f "$d" ] || continue
    again=$work/again.safetensors
    name=$(basename "$d" .safetensors)
    timeout 120 "$work/programs/$name" debug-step --fixture "e2e/testdata/fixtures/${name%%.*}.safetensors" --dump "$again" >/dev/null 2>&1
    cmp -s "$d" "$again" && row "$name twice" ok 0 "same bits" || row "$name twice" FAIL 0 "other bits"
  done
fi
if [[ $parts == *" curves "* ]]; then
  cat lang/*/*.go runtime/*/*.go compiler/*/*.go >"$work/corpus.txt"
  for name in nano.cpu nano.f32.resident nano.f32.stream nano.bf16.resident nano.bf16.stream; do
    [ -f "$work/programs/$name" ] || continue
    start=$(now)
    timeout 200 "$work/programs/$name" --data "$work/corpus.txt" --steps 60 --eval-every 0 --save-every 0 --out "$work/run-$name" >"$work/$name.log" 2>&1
    rc=$?
    note=$(python3 tools/cuda/compare.py --curve "$work/run-$name/metrics.jsonl" "$work/run-nano.cpu/metrics.jsonl" 2>&1 | tail -1)
    { echo "=== $name: exit $rc"; cat "$work/$name.log"; } >>"$OUT/programs.log"
    [ $rc -eq 0 ] || note=$(tail -4 "$work/$name.log" | tr '\n' ' ')
    row "$name, 60 steps" "$([ $rc -eq 0 ] && echo ok || echo FAIL)" "$(since "$start")" "$note"
    cp "$work/run-$name/metrics.jsonl" "$OUT/$name.jsonl" 2>/dev/null
  done
fi

echo
sort "$table" | tee "$OUT/table.txt"
echo "$(grep -c ' ok ' "$table") ok, $(grep -c ' FAIL ' "$table") failed"
! grep -q ' FAIL ' "$table"
