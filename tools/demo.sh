#!/usr/bin/env bash
# The demo: compile models/nano.mt, train it on the Go standard library's own source, sample.
#   tools/demo.sh bin/mtc /usr/local/go/src
set -euo pipefail
mtc=$1
src=$2
start=$SECONDS
step() { printf '\n== %s   [%d s]\n\n' "$1" $((SECONDS - start)); }

step "mtc compile models/nano.mt"
"$mtc" compile models/nano.mt -o build/nano
step "mtc run build/nano: training on $src"
rm -rf runs/nano
"$mtc" run build/nano --data "$src/**/*.go" --holdout 0.1 --out runs/nano
step "mtc generate runs/nano"
"$mtc" generate runs/nano --prompt $'package main\n\nimport (\n\t"fmt"\n' --tokens 400 --temperature 0.7 --top-k 40 --seed 7
step "done"
cat <<EOF
What to look at next:
  models/nano.mt                      the model, and the train block this run used
  build/nano/template_layer_gen.go    one layer as generated Go, every launch with its .mt line
  $mtc inspect build/nano            the schedule: lanes, memory, work by task kind
  runs/nano/metrics.jsonl             loss, norm and speed of every step
  $mtc generate runs/nano --prompt 'func '
EOF
