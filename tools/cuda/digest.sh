#!/usr/bin/env bash
# Pairs of programs that must have the same bits, compared value by value (tools/digest.py): of
# each pair the first value that differs, with its layer, op and line. For when a row `same bits` of
# tools/cuda/on-device.sh fails.
#
#   tools/cuda/digest.sh build [NAME]   into build/cuda/digest.tar.xz, with NAME before each program's;
#                                       MTC is the compiler to use. What was built under other names stays
#   tools/cuda/digest.sh run            on a machine with a GPU, or with MTC_EMU=1; files in $OUT
set -euo pipefail
cd "$(dirname "$0")/../.."
out=build/cuda
pairs=("nano.many nano.saved" "nano.many nano.second" "mistral.microgroups mistral.groups")

program() { # name, .mt, flags
  "$mtc" compile "$2" -o "$out/digest/src" --target cuda --set train.precision=bf16 --check-nan "${@:3}" >/dev/null
  find "$out/digest/src" -maxdepth 1 -type f -perm -u+x -exec mv {} "$out/digest/$1" \;
  strip "$out/digest/$1"
  rm -rf "$out/digest/src"
}

build() {
  . tools/cuda/env.sh
  mkdir -p $out/digest
  mtc=${MTC:-$out/digest-mtc}
  [ -n "${MTC:-}" ] || CGO_ENABLED=0 go build -o "$mtc" ./cmd/mtc
  local many=(--placement stream --micro-batch 1 --set train.eval=none --set "train.batch=2 rows")
  program "$1nano.many" models/nano.mt "${many[@]}"
  program "$1nano.saved" models/nano.mt "${many[@]}" --recompute all --save-inputs all
  program "$1nano.second" models/nano.mt "${many[@]}" --recompute all --input-every 2 --grad-home device
  program "$1mistral.microgroups" e2e/testdata/fixtures/mistral.mt --micro-batch 2 --groups 2
  program "$1mistral.groups" e2e/testdata/fixtures/mistral.mt --placement stream --micro-batch 2 --groups 2 --recompute all --slots 3 --grad-slots 3
  (cd $out && tar -cf - digest | xz -T1 --lzma2=preset=1,dict=64MiB >digest.tar.xz)
  du -h $out/digest.tar.xz
}

run() {
  OUT=${OUT:-$PWD/$out/out}
  mkdir -p "$OUT"
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  python=${PYTHON:-python3}
  $python -c "import lzma, tarfile; tarfile.open(fileobj=lzma.open('$out/digest.tar.xz')).extractall('$work')"
  $python tools/cuda/text.py 60000 >"$work/text.txt"
  export XDG_CACHE_HOME=$work/cache
  wrap=
  [ -z "${MTC_EMU:-}" ] || wrap=$PWD/tools/cuda/emu.sh
  for p in "$work"/digest/*; do
    local name=${p##*/} args=(--data "$work/text.txt" --eval-every 0 --save-every 0 --no-save --steps 2 --out "$work/run.$RANDOM")
    case $name in *mistral*) args=(debug-step --fixture e2e/testdata/fixtures/mistral.safetensors --dump "$work/$name.dump") ;; esac
    MTC_DIGEST=$OUT/$name.jsonl timeout "${LIMIT:-30}" $wrap "$p" "${args[@]}" >"$work/$name.log" 2>&1 || { echo "$name: exit $?"; tail -3 "$work/$name.log"; }
  done
  for prefix in $(ls "$work/digest" | sed -E 's/(nano|mistral)\..*//' | sort -u | sed 's/^$/-/'); do
    for pair in "${pairs[@]}"; do
      read -r a b <<<"$pair"
      a=${prefix#-}$a b=${prefix#-}$b
      echo "== $a and $b"
      $python tools/digest.py -n3 "$OUT/$a.jsonl" "$OUT/$b.jsonl" || true
      $python tools/digest.py -n3 "$OUT/$b.jsonl" || true
    done
  done
}

case ${1:-} in
build) build "${2:-}" ;;
run) run ;;
*) sed -n '2,9p' "$0" && exit 2 ;;
esac
