# Parts of on-device.sh that compare whole runs. Sourced by it; `program NAME ARGS...` runs a
# program of build/cuda/on-device.tar.xz, with a limit of time, and leaves its output in $work/log.

# train NAME RUN ARGS...: a run of nano; its folder is $work/run/RUN.
train() {
  local name=$1 run=$2
  shift 2
  program "$name" --data "$work/text.txt" --eval-every 0 --save-every 0 --out "$work/run/$run" "$@"
}

# same RUN RUN STEP: the two hold the same weights and moments at a step, to the bit.
same() {
  local a b f
  a=$work/run/$1/step-$(printf %06d "$3") b=$work/run/$2/step-$(printf %06d "$3")
  for f in weights optimizer; do cmp "$a/$f.safetensors" "$b/$f.safetensors" || return 1; done
}

# said [OPTION] PATTERN: grep in what a program said, whose messages may be broken anywhere between words.
said() { grep "$@" <<<"$(tr -s ' \n' ' ' <"$work/log")"; }

# check LABEL NOTE COMMAND...: a row of the table.
check() {
  local label=$1 note=$2 start rc
  shift 2
  start=$(now)
  rm -f "$work/note" "$work/log"
  "$@" >"$work/check.log" 2>&1
  rc=$?
  [ $rc -ne 0 ] || note="$note$(sed 's/^/: /' "$work/note" 2>/dev/null)"
  if [ $rc -ne 0 ]; then
    note=$(cat "$work/check.log" "$work/log" 2>/dev/null | grep -v '^ *$' | tail -3 | tr '\n' ' ')
    { echo "=== $label: exit $rc"; cat "$work/check.log"; tail -40 "$work/log"; } >>"$OUT/correct.log"
  fi
  row "$label" "$([ $rc -eq 0 ] && echo ok || echo FAIL)" "$(since "$start")" "$note"
}

steps=12

# ---- loss curves --------------------------------------------------------------------------------

curve() { # PROGRAM REFERENCE TOLERANCE ARGS...
  local name=$1 reference=$2 tolerance=$3
  shift 3
  program "$name" --data "$work/text.txt" --eval-every 0 --no-save --steps 20 --out "$work/run/$name.curve" "$@" || return 1
  cp "$work/run/$name.curve/metrics.jsonl" "$OUT/$name.jsonl"
  [ "$reference" = - ] || "$python" tools/cuda/compare.py --curve "$work/run/$name.curve/metrics.jsonl" "$reference" "$tolerance" | tee "$work/note"
  return "${PIPESTATUS[0]}"
}

part_curves() {
  local name
  check "20 steps: nano.cpu" "the reference" curve nano.cpu - 0
  for name in nano.f32.resident:1e-3 nano.f32.stream:1e-3 nano.bf16.resident:2e-2 nano.bf16.stream:2e-2; do
    check "20 steps: ${name%:*}" "within ${name#*:} of the CPU" curve "${name%:*}" "$work/run/nano.cpu.curve/metrics.jsonl" "${name#*:}"
  done
  for name in gpt2-124m.f32.resident:2e-3 gpt2-124m.bf16.resident:5e-2 gpt2-124m.bf16.stream:5e-2; do
    [ -f "$work/programs/${name%:*}" ] || continue
    check "20 steps: ${name%:*}" "within ${name#*:} of the CPU" curve "${name%:*}" tools/cuda/gpt2-curve.jsonl "${name#*:}"       --set 'train.lr=linear(peak = 6e-5, warmup = 10, final = 0)' --set train.eval=none
  done
}

# ---- streamed equals resident -------------------------------------------------------------------

pair_of_dumps() { # FAMILY.PRECISION, two placements
  local p
  for p in "$2" "$3"; do
    program "$1.$p" debug-step --fixture "e2e/testdata/fixtures/${1%%.*}.safetensors" --dump "$work/$1.$p.dump" || return 1
  done
  cmp "$work/$1.$2.dump" "$work/$1.$3.dump"
}

pair_of_runs() { # two programs
  have "$1" && have "$2" && same "$1" "$2" $steps
}

# have RUN: the program of that name has been trained.
have() { [ -d "$work/run/$1" ] || train "$1" "$1" --steps $steps; }

part_same() {
  local family precision what
  for family in gpt2 llama mistral qwen2 qwen3; do
    for precision in f32 bf16; do
      [ -f "$work/programs/$family.$precision.micro" ] || continue
      check "same bits: $family.$precision, stream" "losses, norms, gradients and weights of 10 steps" \
        pair_of_dumps "$family.$precision" micro stream
      # With a tied head the order of sums is another: the host adds sums of groups.
      [ -f "$work/programs/$family.$precision.microgroups" ] || continue
      check "same bits: $family.$precision, groups" "as resident with the same groups" \
        pair_of_dumps "$family.$precision" microgroups groups
    done
  done
  for what in f32 bf16 bf16-noclip; do
    check "same bits: nano.$what, stream" "weights and moments after $steps steps" pair_of_runs "nano.$what.resident" "nano.$what.stream"
  done
  check "same bits: nano.bf16, part on the device" "embedding and layers kept, the rest streams" pair_of_runs nano.bf16.resident nano.bf16.mixed
  check "same bits: nano.bf16, inputs saved" "all inputs of layers wait on the host" pair_of_runs nano.bf16.many nano.bf16.saved
  check "same bits: nano.bf16, every second input kept" "backward visits two layers together" pair_of_runs nano.bf16.many nano.bf16.second
  check "same bits: nano.bf16, gradients on the device" "they leave just before their update" pair_of_runs nano.bf16.many nano.bf16.home
  check "same bits: nano.bf16, rounded gradients" "on the host or on the device" pair_of_runs nano.bf16.rounded nano.bf16.roundedhome
}

# ---- what happens when must not matter ----------------------------------------------------------

jittered() {
  have "$1" || return 1
  MTC_CUDA_JITTER=$2 train "$1" "$1.jitter$2" --steps $steps && same "$1" "$1.jitter$2" $steps
}

part_jitter() {
  local name seed
  for name in nano.bf16.stream nano.bf16-noclip.stream nano.bf16.resident nano.bf16.saved nano.bf16.home nano.bf16.roundedhome nano.bf16.groups; do
    for seed in 1 2; do check "lanes delayed at random: $name, $seed" "same bits" jittered "$name" $seed; done
  done
}

# ---- checkpoints --------------------------------------------------------------------------------

# at RUN STEP NEW: a new run folder with that checkpoint alone.
at() {
  mkdir -p "$work/run/$3" && cp -r "$work/run/$1/step-$(printf %06d "$2")" "$work/run/$1/run.json" "$work/run/$3/"
}

resumed() { # PROGRAM: saved in the middle, gone on from there
  have "$1" || return 1
  local h=$((steps / 2))
  rm -rf "$work/run/$1.half" "$work/run/$1.rest"
  train "$1" "$1.half" --steps $steps --save-every $h && same "$1" "$1.half" $steps &&
    at "$1.half" $h "$1.rest" && train "$1" "$1.rest" --steps $steps --resume && same "$1" "$1.rest" $steps
}

moved() { # FROM TO: a checkpoint of one program, gone on by another
  local h=$((steps / 2))
  rm -rf "$work/run/$1.from" "$work/run/$1.to"
  train "$1" "$1.from" --steps $steps --save-every $h && at "$1.from" $h "$1.to" &&
    train "$2" "$1.to" --steps $steps --resume &&
    "$python" tools/cuda/compare.py --curve "$work/run/$1.to/metrics.jsonl" "$work/run/$1.from/metrics.jsonl" "$3" >"$work/note"
}

killed() { # PROGRAM: SIGKILL in the middle of a run, then gone on to the end
  local dir=$work/run/$1.killed n=$long pid i
  train "$1" "$1.long" --steps $n || return 1
  $wrap "$work/programs/$1" --data "$work/text.txt" --eval-every 0 --save-every 2 --out "$dir" --steps $n >"$work/log" 2>&1 &
  pid=$!
  for i in $(seq 2000); do
    [ -d "$dir/step-000004" ] && break
    sleep 0.02
  done
  kill -KILL $pid || return 1
  wait $pid
  [ ! -d "$dir/step-$(printf %06d $n)" ] || return 1
  train "$1" "$1.killed" --resume --steps $n && same "$1.long" "$1.killed" $n
}

part_resume() {
  local name
  for name in nano.bf16.resident nano.bf16.stream nano.bf16-noclip.resident nano.bf16-noclip.stream nano.f32.stream; do
    check "resumed: $name" "same bits as uninterrupted" resumed $name
  done
  check "SIGKILL, then resumed: nano.bf16.stream" "same bits as uninterrupted" killed nano.bf16.stream
  check "checkpoint of the CPU goes on on the GPU, f32" "losses within 2e-3" moved nano.cpu nano.f32.resident 2e-3
  check "checkpoint of the CPU goes on on the GPU, bf16" "losses within 2e-2" moved nano.cpu nano.bf16.stream 2e-2
  check "checkpoint of the GPU goes on on the CPU, bf16" "losses within 2e-2" moved nano.bf16.resident nano.cpu 2e-2
}

# ---- a GPU that fails in a step -----------------------------------------------------------------

lost() { # PROGRAM
  local dir=$work/run/$1.lost rc
  have "$1" || return 1
  MTC_CUDA_FAIL=$fail_at program "$1" --data "$work/text.txt" --eval-every 0 --save-every 2 --out "$dir" --steps $steps --set train.save="every(2)"
  rc=$?
  [ $rc -eq 3 ] || { echo "exit $rc, wanted 3"; return 1; }
  said -q 'MT0510.*task [0-9]*: .*(nano.mt:[0-9]*)' || { echo "no task and line in the message"; return 1; }
  said -q -- '--resume' || return 1
  said -o 'task [0-9].*' | head -1 | cut -c1-90 >"$work/note"
  ls -d "$dir"/step-* && train "$1" "$1.lost" --resume --steps $steps && same "$1" "$1.lost" $steps
}

# overflow PROGRAM: the first value that is not finite is named, with its layer, op and line.
overflow() {
  local rc
  program "$1" --data "$work/text.txt" --eval-every 0 --save-every 0 --out "$work/run/$1"
  rc=$?
  said -o 'MT0631.*' | cut -c1-110 >"$work/note"
  [ $rc -eq 1 ] && said -q 'MT0631.* at overflow.mt:[0-9]* is .* in row' && said -q 'forward of layer\[1\], micro-batch 0'
}

part_lost() {
  local name
  for name in overflow.f32 overflow.bf16; do check "a value that is not finite: $name" "named" overflow $name; done
  for name in nano.bf16.resident nano.bf16.stream; do
    check "the GPU fails in a step: $name" "task and line named, exit 3, resumed to the same bits" lost $name
  done
}

# ---- machines that lack something ---------------------------------------------------------------

# refused CODE WORDS ENV... -- ARGS...: a program ends with exit 3, that code and those words.
refused() {
  local code=$1 words=$2 rc
  shift 2
  local set=()
  while [ "$1" != -- ]; do set+=("$1"); shift; done
  shift
  env "${set[@]}" timeout 60 "$@" --data "$work/text.txt" --eval-every 0 --save-every 0 --steps 1 --out "$work/run/refused" >"$work/log" 2>&1
  rc=$?
  cat "$work/log"
  [ $rc -eq 3 ] && said -q "error\[$code\]" && said -qi "$words" && said -q help:
}

# grouped MIB COMMAND...: runs it in a control group with that much memory; status 77 where none can be made.
grouped() {
  local limit=$1 dir=/sys/fs/cgroup file=memory.max rc
  shift
  [ -d $dir/memory ] && dir=$dir/memory file=memory.limit_in_bytes
  dir=$dir/mtc.$$
  { echo +memory >/sys/fs/cgroup/cgroup.subtree_control; } 2>/dev/null
  mkdir "$dir" 2>/dev/null && { echo $((limit << 20)) >"$dir/$file"; } 2>/dev/null || { rmdir "$dir" 2>/dev/null; return 77; }
  (echo $BASHPID >"$dir/cgroup.procs" && "$@")
  rc=$?
  rmdir "$dir"
  return $rc
}

# short KIND WORDS ...: refused where the host has too little memory.
short_of_memory() {
  local rc
  case $1 in
  group) grouped 256 refused MT0410 "control group" -- $wrap "$work/programs/nano.wide" ;;
  address) (ulimit -v 1500000 && refused 'MT0[45][01][0-9]' "memory\|address space" -- $wrap "$work/programs/nano.wide" --no-memory-check) ;;
  esac
  rc=$?
  [ $rc -ne 77 ] || { echo "not tried: no control group can be made here" >"$work/note"; return 0; }
  return $rc
}

part_errors() {
  local nano="$wrap $work/programs/nano.bf16.resident" fake=$work/fake
  # Without CUDA_VISIBLE_DEVICES the stand-in of the driver would have to hide its own.
  [ -n "$wrap" ] || check "no GPU is visible" "MT0503" refused MT0503 "CUDA_VISIBLE_DEVICES" CUDA_VISIBLE_DEVICES= -- $nano
  check "a driver without GPUs" "MT0503" refused MT0503 "nvidia-smi" LD_LIBRARY_PATH=$fake MTC_FAKE_CUDA=none -- "$work/programs/nano.bf16.resident"
  check "an old driver" "MT0504, names 550" refused MT0504 "550" LD_LIBRARY_PATH=$fake MTC_FAKE_CUDA=old -- "$work/programs/nano.bf16.resident"
  check "no driver" "MT0502" refused MT0502 "libcuda.so.1" MTC_CUDA_HIDE=libcuda -- $nano
  check "no NVRTC" "MT0505, names the package" refused MT0505 "pip install nvidia-cuda-nvrtc" MTC_CUDA_HIDE=libnvrtc XDG_CACHE_HOME=$work/nocache -- $nano
  check "no cuBLASLt" "MT0505, names the package" refused MT0505 "pip install nvidia-cublas" MTC_CUDA_HIDE=libcublasLt -- $nano
  check "too little memory in the control group" "MT0410, before anything is touched" short_of_memory group
  check "too little address space" "named, exit 3" short_of_memory address
  check "too little memory of the GPU" "MT0506, says how much" refused MT0506 "are free" LD_LIBRARY_PATH=$fake MTC_FAKE_CUDA=small -- "$work/programs/nano.big"
}

# ---- little memory that can be locked -----------------------------------------------------------

pinned() { # PROGRAM BYTES
  have "$1" || return 1
  rm -rf "$work/run/$1.pinned"
  train "$1" "$1.pinned" --steps $steps --pinned-memory "$2" && said -q 'could not be locked' && same "$1" "$1.pinned" $steps
}

# locked KIB: what a limit of the system on locked memory does.
locked() { # PROGRAM KIB
  have "$1" || return 1
  rm -rf "$work/run/$1.locked"
  (ulimit -l "$2" && train "$1" "$1.locked" --steps $steps) && same "$1" "$1.locked" $steps &&
    { said -o '[0-9.]* .iB could not be locked' || echo "the driver locks all the same"; } >"$work/note"
}

part_pinned() {
  local n
  for n in 64 65536; do check "ulimit -l $n: nano.bf16.stream" "same bits" locked nano.bf16.stream $n; done
  for n in 0 1MiB 3MiB; do check "$n of locked memory: nano.bf16.stream" "same bits, through a ring" pinned nano.bf16.stream $n; done
  check "1MiB of locked memory: nano.f32.stream" "same bits, through a ring" pinned nano.f32.stream 1MiB
}

# ---- compute-sanitizer --------------------------------------------------------------------------

# swept ends what a tool left behind when it was stopped: every process that runs one of our programs.
swept() {
  local p
  for p in /proc/[0-9]*; do
    case $(readlink "$p/exe" 2>/dev/null) in "$work"/*) kill -KILL "${p#/proc/}" 2>/dev/null ;; esac
  done
}

sanitized() { # TOOL PROGRAM STEPS
  local tool skip= name rc
  tool=${SANITIZER:-$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer /opt/nvidia/*/compute-sanitizer 2>/dev/null | head -1)}
  [ -n "$tool" ] || { echo "compute-sanitizer is not on this machine"; return 1; }
  # The library's products are not ours to check, and take most of racecheck's time.
  if [ "$1" = racecheck ] && "$tool" --help 2>&1 | grep -q -- --kernel-name-exclude; then
    for name in gemm nvjet cutlass cublas splitK ${SKIP:-}; do skip="$skip --kernel-name-exclude kns=$name"; done
    [ -z "${ONLY:-}" ] || skip="--kernel-name kns=$ONLY"
  fi
  MTC_CUDA_TUNE=0 limit=150 under="$tool --tool $1 --error-exitcode 9 --print-limit 5 --report-api-errors no $skip" \
    program "$2" --data "$work/text.txt" --eval-every 0 --no-save --out "$work/run/$2.$1" --steps "$3"
  rc=$?
  swept
  # Racecheck of CUDA 13.0 (2025.3.1) ends so within a product of cuBLASLt, which it was told to leave alone.
  ! grep -q 'Internal Sanitizer Error' "$work/log" || { "$tool" --version | grep Version; echo "failed by itself: 2026.4 does not (pip install nvidia-cuda-sanitizer-api; SANITIZER names it)"; return 1; }
  [ $rc -eq 0 ] && grep -q 'ERROR SUMMARY: 0 errors\|RACECHECK SUMMARY: 0 hazards' "$work/log"
}

part_sanitize() {
  local name
  for name in nano.bf16.stream nano.f32.resident tiny.bf16; do
    check "memcheck: $name" "0 errors in 2 steps" sanitized memcheck $name 2
  done
  check "initcheck: nano.bf16.stream" "0 errors in 2 steps" sanitized initcheck nano.bf16.stream 2
  check "synccheck: nano.bf16.stream" "0 errors in 2 steps" sanitized synccheck nano.bf16.stream 2
  # Heads of 16, 32 and 64 elements run in kernels of their own.
  for name in tiny.bf16 tiny.bf16.resident tiny.f32 tiny.bf16.wide nano.f32.resident nano.bf16.stream; do
    check "racecheck: $name" "0 hazards in 1 step" sanitized racecheck $name 1
  done
}

# ---- 7B: finite, falling, weights that move -----------------------------------------------------

# repeated FILE: 17 rows of 1024 tokens, of 500 words of the vocabulary: something to learn in 20
# steps of 16 rows.
repeated() {
  "$python" - "$1" <<'PY'
import random, struct, sys
r = random.Random(1)
words = [r.randrange(60000) for _ in range(500)]
ids = [words[min(r.randrange(500), r.randrange(500))] for _ in range(17 * 1024 + 1)]
with open(sys.argv[1], "wb") as f:
    f.write(struct.pack("<256i", 20240520, 1, len(ids), *[0] * 253) + struct.pack(f"<{len(ids)}H", *ids))
PY
}

seven() {
  repeated "$work/repeated.bin" || return 1
  limit=${seven_limit:-150} program 7b --data "$work/repeated.bin" --steps 20 --no-save --no-memory-check --moved --out "$work/run/7b" \
    --set "train.lr=constant(peak = 1e-5)" || return 1
  cp "$work/run/7b/metrics.jsonl" "$OUT/7b.jsonl"
  grep -E 'start-up|^moved|^step' "$work/log" >"$OUT/7b.txt"
  "$python" - "$work/run/7b/metrics.jsonl" "$work/log" >"$work/note" <<'PY'
import json, math, re, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
losses = [r["loss"] for r in rows if "loss" in r]
start = [r["start_s"] for r in rows if "start_s" in r]
moved = re.search(r"moved: (.*)", open(sys.argv[2]).read())
print(f"loss {losses[0]:.3f} to {losses[-1]:.3f} in {len(losses)} steps, start-up {start[0] if start else 0:.0f} s; {moved and moved[1]}")
ok = len(losses) == 20 and all(x is not None and math.isfinite(x) for x in losses) and losses[-1] < losses[0] - 0.1
sys.exit(0 if ok and moved and not moved[1].startswith("0.00 %") else 1)
PY
}

part_seven() { check "7B, 20 steps at lr 1e-5" "finite, falling, weights that move" seven; }

# ---- GPT-2 beside PyTorch -----------------------------------------------------------------------

part_peers() {
  local shard=$work/train.bin
  gzip -dc build/cuda/shard/train.bin.gz >"$shard" || { row "GPT-2 124M beside PyTorch" FAIL 0 "no build/cuda/shard/train.bin.gz"; return; }
  peers() {
    "$python" tools/cuda/train_peers.py "$work/programs/gpt2.peer" "$shard" "$work/peers" --steps "${PEER_STEPS:-600}" \
      --seconds 250 ${PEER_FLAGS:---compile} --set "train.lr=cosine(peak = 6e-4, warmup = 60, final = 6e-5)" >"$OUT/peers.txt" 2>&1
    local rc=$?
    cp "$work/peers/losses.csv" "$OUT/" 2>/dev/null
    cat "$OUT/peers.txt"
    tail -1 "$OUT/peers.txt" >"$work/note"
    return $rc
  }
  check "GPT-2 124M beside PyTorch" "${PEER_STEPS:-600} steps" peers
}
