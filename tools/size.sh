#!/usr/bin/env bash
# Counts the lines of Go in runtime/ outside ops, tests and generated files (the emulation of CUDA is
# one), by package, against two budgets: the core, without which no step runs, stays lean; what
# surrounds it (text, messages about JSON, conversations, other tools' files, measuring) may be larger, and a step runs
# none of it.
set -euo pipefail
core_budget=${MTC_RUNTIME_BUDGET:-23000}
around_budget=${MTC_AROUND_BUDGET:-15300}
core=0 around=0
for dir in $(find runtime -type d -not -path 'runtime/ops*' -not -path 'runtime/device/cuda/emu*' | sort); do
  n=$(find "$dir" -maxdepth 1 -name '*.go' ! -name '*_test.go' -exec awk 'FNR == 1 { generated = /^\/\/ Code generated/ } !generated' {} + 2>/dev/null | wc -l)
  [ "$n" -gt 0 ] || continue
  case $dir in
  runtime/bench | runtime/fold | runtime/jsontext | runtime/chat* | runtime/data/pack* | runtime/hf* | runtime/telemetry/export | runtime/tokenizer*)
    around=$((around + n)) what=around ;;
  *) core=$((core + n)) what=core ;;
  esac
  printf '%7d  %-7s %s\n' "$n" $what "$dir"
done
printf '%7d  core, of a budget of %d\n%7d  around it, of %d\n' "$core" "$core_budget" "$around" "$around_budget"
[ "$core" -le "$core_budget" ] && [ "$around" -le "$around_budget" ]
