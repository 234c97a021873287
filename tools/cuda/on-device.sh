#!/usr/bin/env bash
# Runs what tools/cuda/test-all.sh built, on a machine with a GPU, and prints a table last:
#
#   tools/cuda/on-device.sh [PART...]
#
#   device ops  tests of the device and of every op's kernels
#   programs    losses and gradients of a model of each family against PyTorch's
#   curves      losses of nano and GPT-2 beside those of the CPU
#   same        streamed equals resident, bit for bit
#   jitter      lanes delayed at random: the same bits
#   resume      checkpoints: resumed, killed, moved between CPU and GPU
#   lost        a GPU that fails in a step
#   errors      what is missing is named
#   pinned      little memory that can be locked
#   sanitize    compute-sanitizer on nano and smaller: memcheck, initcheck, synccheck, racecheck (SANITIZER: which one)
#   seven       Qwen2.5 7B, streamed, 20 steps: needs `test-all.sh seven`
#   peers       GPT-2 124M beside PyTorch: needs `test-all.sh peers` and tools/cuda/corpus.py's shard
#   routers     models with a mixture of experts, and one such layer timed: needs `test-all.sh routers`
#
# Without a name all but the last three run. Logs go to $OUT (default build/cuda/out). Needs the driver, NVRTC,
# cuBLASLt and Python with numpy; no Go and no compiler. With MTC_EMU=1 programs run over
# tools/cuda/emu.sh, on a machine without a GPU: use it with what `MTC_SMALL=1
# tools/cuda/test-all.sh` built.
set -uo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
OUT=${OUT:-$root/build/cuda/out}
mkdir -p "$OUT"
parts=" ${*:-device ops programs curves same jitter resume lost errors pinned sanitize} "
python=${PYTHON:-python3}
wrap=  under=  limit=120  long=200  fail_at=900
[ -z "${MTC_EMU:-}" ] || { wrap=$root/tools/cuda/emu.sh limit=600 long=8; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
$python -c "
import glob, lzma, tarfile
for name in glob.glob('${MTC_OUT:-build/cuda}/on-device*.tar.xz'):
    with tarfile.open(fileobj=lzma.open(name)) as t: t.extractall('$work')" || exit 3
export XDG_CACHE_HOME=$work/cache
table=$work/table
: >"$table"
row() { printf '%-52s %-5s %6s s  %s\n' "$1" "$2" "$3" "$4" | cut -c1-${width:-170} | tee -a "$table"; }
now() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.1f", b - a }'; }

nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>&1 | head -1 | tee "$OUT/machine.txt"

# program NAME ARGS...: runs a program; its output is in $work/log.
program() {
  local name=$1
  shift
  timeout -k 10 "$limit" $under $wrap "$work/programs/$name" "$@" >"$work/log" 2>&1
}
. tools/cuda/correct.sh
. tools/cuda/routers.sh
"$python" tools/cuda/text.py 400000 >"$work/text.txt"

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
      note=$("$python" tools/cuda/compare.py "$work/$name.safetensors" "$fixture" $tol 2>>"$OUT/programs.log")
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
if [[ $parts == *" curves "* ]]; then part_curves; fi
for p in same jitter resume lost errors pinned sanitize seven peers routers; do
  if [[ $parts == *" $p "* ]]; then part_$p; fi
done

echo
sort "$table" | tee "$OUT/table.txt"
echo "$(grep -c ' ok ' "$table") ok, $(grep -c ' FAIL ' "$table") failed"
! grep -q ' FAIL ' "$table"
