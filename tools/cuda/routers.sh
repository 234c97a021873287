# The part of on-device.sh about mixtures of experts. Sourced by it. Over the emulation, one test of
# the whole models runs.

# part_routers runs every test of whole models with routers, the ops' own tests, and times one layer.
part_routers() {
  local d=$work/routers start rc line state room memory=$((16 << 30))
  [ -z "$wrap" ] || memory=$((256 << 20))
  start=$(now)
  (cd "$root/e2e/routers" && MTC_PROGRAMS=$d timeout "$limit" $wrap "$d/e2e__routers.test" -test.v -test.parallel "${MTC_PARALLEL:-8}" ${wrap:+-test.run=Prefill}) >"$OUT/routers.log" 2>&1
  rc=$?
  while read -r line; do
    [[ $line == *PASS* ]] && state=ok || state=FAIL
    line=${line#*: }
    row "routers: ${line%% (*}" $state "$(sed 's/.*(\(.*\)s)/\1/' <<<"$line")" ""
  done < <(grep -E -- '^ *--- (PASS|FAIL)' "$OUT/routers.log")
  row "routers: all" "$([ $rc -eq 0 ] && echo ok || echo FAIL)" "$(since "$start")" "$(grep -c -- '--- FAIL' "$OUT/routers.log") failed"
  for room in moe grouped; do
    start=$(now)
    (cd "$root/runtime/ops/$room" && timeout "$limit" "$d/$room.test" -test.v) >"$OUT/routers-$room.log" 2>&1
    rc=$?
    row "routers: runtime/ops/$room" "$([ $rc -eq 0 ] && echo ok || echo FAIL)" "$(since "$start")" "$(grep -c -- '--- PASS' "$OUT/routers-$room.log") passed, $(grep -c -- '--- SKIP' "$OUT/routers-$room.log") skipped"
  done
  start=$(now)
  timeout 90 "$d/opbench" -moe ${wrap:+-emu} -memory $memory >"$OUT/moe-layer.txt" 2>&1
  cat "$OUT/moe-layer.txt"
  grep -q '^forward and backward' "$OUT/moe-layer.txt" || row "routers: one layer" FAIL "$(since "$start")" "$(tail -1 "$OUT/moe-layer.txt")"
  while read -r line; do
    [[ -n $wrap || $line == *within* ]] && state=ok || state=FAIL
    row "routers: one layer" $state "$(since "$start")" "$line"
  done < <(grep '^forward and backward' "$OUT/moe-layer.txt")
}
