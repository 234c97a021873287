#!/usr/bin/env bash
# Runs on a GPU with --profile: what timing costs there, and steps to hold against the prediction.
#
#   tools/cuda/profile.sh build   programs and schedules, packed into build/cuda/profile.tar.xz
#   tools/cuda/profile.sh run     runs them where there is a GPU, about 60 s; profiles go to $OUT
#
# NAMES and STEPS choose among them and say how long.
#
# Afterwards `mtc compare $OUT/NAME --machine h200` compares, and `mtc inspect $OUT/NAME --html FILE`
# shows. The table gives the median wall time of steps with and without timing.
set -euo pipefail
cd "$(dirname "$0")/../.."
names=${NAMES:-gpt2-resident gpt2-stream nano-stream}
case "${1:-}" in
build)
  . tools/cuda/env.sh
  dir=build/cuda/profile
  rm -rf "$dir"
  mkdir -p "$dir"
  CGO_ENABLED=0 go build -o build/cuda/mtc ./cmd/mtc
  build/cuda/mtc compile models/gpt2.mt --target cuda --set train.eval=none --set 'train.batch=65536 tokens' -o "$dir/gpt2-resident" >/dev/null
  build/cuda/mtc compile models/gpt2.mt --target cuda --set train.eval=none --set 'train.batch=65536 tokens' --placement stream -o "$dir/gpt2-stream" >/dev/null
  build/cuda/mtc compile models/nano.mt --target cuda --placement stream -o "$dir/nano-stream" >/dev/null
  rm -f "$dir"/*/*.go "$dir"/*/go.*
  tar -C build/cuda -cJf build/cuda/profile.tar.xz profile
  ls -l build/cuda/profile.tar.xz
  ;;
run)
  out=${OUT:-build/cuda/profiled}
  mkdir -p "$out" build/cuda
  [ -d build/cuda/profile ] || python3 -c "import lzma,tarfile; tarfile.open(fileobj=lzma.open('build/cuda/profile.tar.xz')).extractall('build/cuda')"
  for name in $names; do
    program=$(find "build/cuda/profile/$name" -maxdepth 1 -type f -perm -u+x | head -1)
    if ! timeout 100 "$program" train --data 'compiler/**/*.go' --steps "${STEPS:-60}" --eval-every 0 --profile=10 --no-save --no-memory-check \
      --out "$out/$name" >"$out/$name.log" 2>&1; then
      tail -5 "$out/$name.log"
      continue
    fi
    rm -f "$out/$name/program"
    python3 - "$out/$name/profile.json" "$name" <<'PY'
import json, statistics as st, sys
p = json.load(open(sys.argv[1]))
timed = [s["seconds"] for s in p["steps"]]
print(f"{sys.argv[2]:<16} {len(p['steps'][0]['tasks']):>6} tasks  timed {st.median(timed)*1e3:9.3f} ms  untimed {st.median(p['untimed'])*1e3:9.3f} ms"
      f"  {100*(st.median(timed)/st.median(p['untimed'])-1):+6.2f} %  ({p['device']})")
PY
  done
  ;;
*)
  echo "usage: tools/cuda/profile.sh build|run" >&2
  exit 2
  ;;
esac
