#!/usr/bin/env bash
# make html: the pages of `mtc inspect --html` and `--moe` in a headless Chromium: console, keys, mouse,
# search, both themes, contrast, narrow windows, print; and the traces of `--trace` in the trace
# viewer that comes with Go, and in Perfetto's trace processor. Screenshots go to build/html. Skips with
# a reason where there is no browser; MTC_BROWSER=required makes that a failure, and
# MTC_BROWSER=install lets it install Debian's, as CI does.
set -euo pipefail
cd "$(dirname "$0")/../.."
find_browser() {
  for b in chromium chromium-browser google-chrome; do
    if command -v "$b" >/dev/null; then command -v "$b"; return; fi
  done
  return 1
}
if ! find_browser >/dev/null && [ "${MTC_BROWSER:-}" = install ] && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } >/dev/null 2>&1 || true
fi
if ! browser=$(find_browser); then
  echo "html: skipped, there is no Chromium: \`apt-get install chromium\` on Debian"
  [ "${MTC_BROWSER:-}" != required ] || exit 1
  exit 0
fi
out=build/html
rm -rf "$out"
mkdir -p "$out"
mtc=$out/mtc
# What is shown is predicted for profiles that ship, not for one that was measured here.
export XDG_CONFIG_HOME=$PWD/$out/config
CGO_ENABLED=0 go build -o "$mtc" ./cmd/mtc
go build -o "$out/browser" ./tools/html/browser
page() { # name, options of compile
  local name=$1
  shift
  "$mtc" compile "$@" --no-build -o "$out/$name" >/dev/null
  "$mtc" inspect "$out/$name" --html "$out/$name.html" >/dev/null
  "$mtc" inspect "$out/$name" --trace "$out/$name.json" >/dev/null
}
page nano models/nano.mt --placement stream
# Tens of thousands of tasks.
page qwen2.5-72b models/qwen2.5-72b.mt --target cuda --placement stream --recompute all
# A mixture of experts that stays on the device: many lines and kernels, and a lane without tasks.
page moe-resident models/et_moe_nano.mt --placement resident
# Names that would like to be markup; a module holds no file of such a name.
cp tools/html/testdata/hostile.mt "$out/a<script>.mt"
page hostile "$out/a<script>.mt" --placement stream
timeout 300 "$out/browser" -chromium "$browser" -out "$out" "$out"/*.html "$out"/*.json
# The same traces in Perfetto's trace processor, where its page and node can be had.
timeout 300 python3 tools/trace/check.py "$mtc" "$out"/{nano,qwen2.5-72b,moe-resident,hostile}
# A run that measured: the program is built for it.
if [ "${MTC_BROWSER:-}" = required ] || [ "${MTC_BROWSER:-}" = install ]; then
  "$mtc" compile models/nano.mt --placement stream -o "$out/build" >/dev/null
  "$mtc" run "$out/build" --data 'models/*.mt' --steps 12 --eval-every 0 --no-save --profile --out "$out/run" >/dev/null
  "$mtc" inspect "$out/run" --html "$out/run.html" >/dev/null
  "$mtc" inspect "$out/run" --trace "$out/run.json" >/dev/null
  timeout 300 "$out/browser" -chromium "$browser" -out "$out" "$out"/run.{html,json}
  timeout 300 python3 tools/trace/check.py "$mtc" "$out/run"
  # What the routers of a run did: thresholds, with experts by token loss, and top-k with its biases and losses.
  "$mtc" compile models/et_moe_nano.mt --set L=3 --set D=64 --set train.seq=64 --set "train.batch=8 rows" -o "$out/moe" >/dev/null
  "$mtc" run "$out/moe" --data 'models/*.mt' --steps 40 --eval-every 20 --out "$out/moe-run" >/dev/null
  "$mtc" inspect "$out/moe-run" --moe "$out/routing.html" --data 'models/*.mt' >/dev/null
  "$mtc" compile e2e/invariants/testdata/models/topk.mt -o "$out/topk" >/dev/null
  "$mtc" run "$out/topk" --data 'models/*.mt' --steps 40 --eval-every 20 --no-save --out "$out/topk-run" >/dev/null
  "$mtc" inspect "$out/topk-run" --moe "$out/routing-topk.html" >/dev/null
  timeout 300 "$out/browser" -chromium "$browser" -out "$out" "$out"/routing{,-topk}.html
fi
