#!/usr/bin/env bash
# Runs what needs a GPU, given a JRE and jars: no Maven, no network.
#
#   bench/gpu.sh tests [CLASS...]   the tests tagged cuda (needs junit-platform-console-standalone and the test jars or folders)
#   bench/gpu.sh semantics          when a NCCL operation is done, 1, 2 and 4 ranks; PyTorch's script beside it if PEERS is set
#   bench/gpu.sh overhead           host time of collectives and small operations, the two sides in turn
#   bench/gpu.sh golden             the recorded collectives through NCCL, 2 and 3 ranks (which share a GPU if there is one)
#   bench/gpu.sh gpus               several GPUs: tests, bandwidth beside bare NCCL, training on meshes; PyTorch's beside them
#
# Variables: JAVA (java), CLASSPATH or CP (jars and class folders), OUT (results; ./gpu-out), PYTHON and PEERS (the folder
# of gpu_work_semantics.py, gpu_host_overhead.py and compare.py; without it only our side runs), JVM_ARGS.
set -euo pipefail
java=${JAVA:-java}
cp=${CP:-${CLASSPATH:?set CP to the jars and class folders}}
out=${OUT:-gpu-out}
python=${PYTHON:-python3}
jvm=(-Xmx4g "-Dorg.bytedeco.javacpp.cachedir=${JAVACPP_CACHE:-/tmp/javacpp}" "-Dorg.bytedeco.javacpp.maxphysicalbytes=0")
read -ra more <<<"${JVM_ARGS:-}"
mkdir -p "$out"

run() { "$java" "${jvm[@]}" "${more[@]}" -cp "$cp" "$@"; }

case "${1:-}" in
  tests)
    shift
    select=()
    for c in "$@"; do select+=(--select-class "$c"); done
    [[ ${#select[@]} -gt 0 ]] || select=(--scan-classpath)
    run org.junit.platform.console.ConsoleLauncher execute --include-tag cuda --details=tree --details-theme=ascii \
      --disable-banner "${select[@]}" | tee "$out/tests.txt" ;;
  semantics)
    : >"$out/semantics-weft.jsonl"; : >"$out/semantics-torch.jsonl"
    for n in 1 2 4; do
      run dev.weft.c10d.nccl.WorkSemantics --ranks $n | tee -a "$out/semantics-weft.jsonl"
      if [[ -n ${PEERS:-} ]]; then
        "$python" "$PEERS/gpu_work_semantics.py" --ranks $n --port $((29620 + 10 * n)) | tee -a "$out/semantics-torch.jsonl"
      fi
    done ;;
  overhead)
    : >"$out/overhead-weft.jsonl"; : >"$out/overhead-torch.jsonl"
    run dev.weft.cli.Weft bench gpu-host | tee -a "$out/overhead-weft.jsonl"
    if [[ -n ${PEERS:-} ]]; then
      "$python" "$PEERS/gpu_host_overhead.py" | tee -a "$out/overhead-torch.jsonl"
      "$python" "$PEERS/compare.py" "$out/overhead-weft.jsonl" "$out/overhead-torch.jsonl" --stat best | tee "$out/overhead.txt"
    fi ;;
  golden)
    for n in 2 3; do
      run dev.weft.conformance.NcclCollectives --ranks $n "${GOLDEN:-conformance/src/test/resources/golden/c10d}/collectives.json.gz" |
        tee "$out/golden-$n.txt"
    done ;;
  gpus)
    # Code that uses NVLink multicast may disturb other tenants of a host.
    export NCCL_NVLS_ENABLE=0
    own=$(cd "$(dirname "$0")/peers" && pwd)
    n=$("$python" -c 'import torch; print(torch.cuda.device_count())')
    run org.junit.platform.console.ConsoleLauncher execute --include-tag cuda --details=tree --details-theme=ascii \
      --disable-banner --select-class dev.weft.tensor.cuda.SeveralGpusTest --select-class dev.weft.c10d.nccl.RankProcessesTest \
      --select-class dev.weft.c10d.nccl.RankThreadsTest | tee "$out/gpus-tests.txt"
    run dev.weft.cli.Weft bench nccl --ranks "$n" | tee "$out/nccl.jsonl"
    run dev.weft.cli.Weft bench nccl --ranks "$n" --in-process | tee "$out/nccl-threads.jsonl"
    "$python" "$own/nccl_bandwidth.py" --ranks "$n" | tee "$out/nccl-torch.jsonl"
    : >"$out/train-weft.jsonl"; : >"$out/train-torch.jsonl"
    meshes=("dp=$n" "dp=$n --sharded" "tp=$n" "pp=2")
    [[ $n -ge 4 ]] && meshes+=("dp=2,tp=$((n / 2))" "dp=2,tp=$((n / 2)) --sharded" "pp=2,tp=$((n / 2))" "dp=2,pp=$((n / 2)) --sharded")
    for m in "${meshes[@]}"; do
      read -ra options <<<"--mesh $m"
      run dev.weft.cli.Weft bench train-gpt --precisions bf16 "${options[@]}" | tee -a "$out/train-weft.jsonl"
      "$python" "$own/train_gpt_parallel.py" --precisions bf16 "${options[@]}" | tee -a "$out/train-torch.jsonl"
    done
    if [[ -n ${PEERS:-} ]]; then
      "$python" "$PEERS/compare.py" "$out/train-weft.jsonl" "$out/train-torch.jsonl" | tee "$out/train.txt"
    fi ;;
  *)
    sed -n '2,12p' "$0" >&2
    exit 2 ;;
esac
