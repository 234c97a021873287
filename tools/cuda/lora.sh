#!/usr/bin/env bash
# Adapters on a GPU: the same bits from memory and streamed on a tiny model, and the step of 7B.
#
#   tools/cuda/lora.sh build     into build/cuda/lora.tar.xz; MTC is the compiler to use
#   tools/cuda/lora.sh run       on a machine with a GPU and python3, about 3 minutes; files in $OUT
set -euo pipefail
cd "$(dirname "$0")/../.."
out=build/cuda

program() { # name, .mt, flags
  "$mtc" compile "$2" -o "$out/lora/src" --target cuda --set train.eval=none "${@:3}" >/dev/null
  find "$out/lora/src" -maxdepth 1 -type f -perm -u+x -exec mv {} "$out/lora/$1" \;
  strip "$out/lora/$1"
  rm -rf "$out/lora/src"
}

build() {
  . tools/cuda/env.sh
  mkdir -p $out/lora
  mtc=${MTC:-$out/lora-mtc}
  [ -n "${MTC:-}" ] || CGO_ENABLED=0 go build -o "$mtc" ./cmd/mtc
  local tiny=e2e/invariants/testdata/models/lora.mt
  program tiny.resident $tiny --micro-batch 4 --groups 1
  program tiny.stream $tiny --micro-batch 4 --placement stream --resident 'layer[0]'
  program 7b.resident models/qwen2.5-7b-lora.mt --placement resident --micro-batch 2 --recompute all
  program 7b.stream models/qwen2.5-7b-lora.mt --placement stream --micro-batch 2 --recompute all
  cp -r runtime/hf/testdata/llama3 $out/lora/base
  (cd $out && tar -cf - lora | xz -T1 --lzma2=preset=1,dict=64MiB >lora.tar.xz)
  du -h $out/lora.tar.xz
}

run() {
  OUT=${OUT:-$PWD/$out/out}
  mkdir -p "$OUT"
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  tar -xf $out/lora.tar.xz -C "$work"
  cd "$work/lora"
  python3 -c "open('ids.bin', 'wb').write(b''.join((i * i % 48).to_bytes(2, 'little') for i in range(4000)))"
  for p in resident stream; do
    ${EMU:-} ./tiny.$p --from base --data ids.bin --out $p >"$OUT/tiny.$p.txt" 2>&1 || tail -5 "$OUT/tiny.$p.txt"
  done
  cmp resident/step-000012/weights.safetensors stream/step-000012/weights.safetensors && echo "tiny: resident and stream have the same bits" >"$OUT/lora.txt"
  grep -h '^step 12/' "$OUT"/tiny.*.txt >>"$OUT/lora.txt"
  if [ "${1:-}" != tiny ]; then
    began=$SECONDS
    python3 "$OLDPWD/tools/cuda/lorabase.py" 7b ids7b.bin
    echo "7b: the folder took $((SECONDS - began)) s" >>"$OUT/lora.txt"
    for p in resident stream; do
      timeout 120 ./7b.$p --from 7b --data ids7b.bin --set train.width=2 --steps 5 --no-save --out run-$p >"$OUT/7b.$p.txt" 2>&1 &
      pid=$!
      peak=0
      while kill -0 $pid 2>/dev/null; do
        # The program is a child of timeout's.
        rss=$(awk '/VmRSS/ {print $2}' "/proc/$(cat /proc/$pid/task/$pid/children 2>/dev/null | cut -d' ' -f1)/status" 2>/dev/null || true)
        [ "${rss:-0}" -gt $peak ] && peak=$rss
        sleep 0.5
      done
      echo "7b.$p: most of the process in host memory $((peak >> 10)) MiB" >>"$OUT/lora.txt"
      grep -E 'start-up|memory|^step|error|help' "$OUT/7b.$p.txt" >>"$OUT/lora.txt" || true
    done
  fi
  cat "$OUT/lora.txt"
}

"$@"
