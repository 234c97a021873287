#!/usr/bin/env bash
# Runs every fuzz target of the repo for the given time each: tools/fuzz.sh 30s
set -euo pipefail
time=${1:-30s}
found=0
while IFS=: read -r file name; do
  dir=./$(dirname "$file")
  echo "== $name in $dir"
  go test "$dir" -run '^$' -fuzz "^$name\$" -fuzztime "$time" -fuzzminimizetime 20x
  found=$((found + 1))
done < <(grep -rnoE --include='*_test.go' 'func (Fuzz[A-Za-z0-9_]+)' . | sed -E 's/^\.\///; s/:[0-9]+:func /:/' | sort)
echo "$found fuzz targets, $time each"
[ "$found" -gt 0 ]
