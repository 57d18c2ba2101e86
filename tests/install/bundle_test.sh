#!/usr/bin/env bash
# Tests the bundle of scripts/gpu_bundle.sh on a machine that has only glibc. The bundle is unpacked into an empty root with the files of
# glibc alone. Each of its programs starts and reports that there is no GPU, and a run on the CPU works. GPUs of this machine are hidden.
#
#   tests/install/bundle_test.sh build-bundle/fedbits-gpu.tar.xz
set -euo pipefail

archive=$(realpath "$1")
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
tar -xJf "$archive" -C "$root"
bundle=$root/fedbits-gpu

for library in ld-linux-x86-64.so.2 libc.so.6 libm.so.6 libpthread.so.0 libdl.so.2 librt.so.1; do
  file=$( (ls /lib64/$library /lib/x86_64-linux-gnu/$library 2>/dev/null || true) | head -n 1)
  [ -n "$file" ] || { echo "TOOL MISSING: $library of glibc"; exit 77; }
  folder=$root/lib/x86_64-linux-gnu
  [ "$library" != ld-linux-x86-64.so.2 ] || folder=$root/lib64
  mkdir -p "$folder" && cp -L "$file" "$folder/"
done
mkdir -p "$root/tmp"

# A root of one's own: as root, or as anybody in a user namespace.
enter=(chroot)
if [ "$(id -u)" != 0 ]; then
  enter=(unshare -r chroot)
  "${enter[@]}" / true 2>/dev/null || { echo "TOOL MISSING: neither root nor user namespaces"; exit 77; }
fi
failed=0
# says TEXT CODE COMMAND...: the command, in that root, prints the text within its time and ends with the code.
says() {
  local text=$1 expected=$2 code=0 said
  shift 2
  said=$(timeout 120 "${enter[@]}" "$root" "$@" 2>&1) || code=$?
  if [ "$code" != "$expected" ] || ! grep -qF -- "$text" <<<"$said"; then
    printf 'FAILED: %s ended with %s, not %s, or did not say "%s":\n%s\n' "$*" "$code" "$expected" "$text" "$(tail -n 20 <<<"$said")" >&2
    failed=1
  fi
}
# The environment is passed on: an empty root has no env(1).
unset LD_LIBRARY_PATH LD_PRELOAD FEDBITS_DATA
export CUDA_VISIBLE_DEVICES=""

cat >"$root/tmp/study.toml" <<'STUDY'
name = "small"
rounds = 5
[data]
kind = "synthetic"
clients = 4
features = 10
classes = 3
[model]
kind = "logistic_regression"
[local]
kind = "sgd"
batch = 4
steps = 2
learning_rate = 0.1
[compressor.up]
kind = "top_k"
ratio = 0.2
[feedback.up]
kind = "ef14"
[evaluate]
gradient = "never"
optimum = false
STUDY
top=/fedbits-gpu
says "fedbits " 0 $top/fedbits --version
says "top_k" 0 $top/fedbits list compressors
says "train_loss" 0 $top/fedbits run /tmp/study.toml --out /tmp/results
says "--status: this fedbits was built without the network (FL_NET=OFF)" 2 $top/fedbits run /tmp/study.toml --out /tmp/other --status 0
says "--status: this fedbits was built without the network (FL_NET=OFF)" 2 $top/fedbits sweep /tmp/study.toml --out /tmp/other --status 0
says "this fedbits was built without the network (FL_NET=OFF), which \`fedbits serve\` needs" 2 $top/fedbits serve /tmp/study.toml
says "shard: this fedbits was built without the network (FL_NET=OFF)" 2 $top/fedbits data shard /tmp/study.toml --clients 0 --out /tmp/0.shard
says "finds no GPU" 2 $top/fedbits run /tmp/study.toml --out /tmp/other --device cuda
says "cannot download" 2 $top/fedbits data fetch fashion-mnist --data /tmp/data
says "no GPU is visible" 0 $top/fedbits_gpu_parity
says "no GPU" 3 $top/gpu_bench
ln -s fedbits "$bundle/other"
says "usage:" 2 $top/other
says "no GPU" 3 $top/other gpu_bench

# The check itself needs Python, which that root has not.
code=0
"$bundle/bench/gpu_check.sh" --json "$root/table.json" --stage kernels >"$root/table.txt" 2>&1 || code=$?
[ "$code" = 3 ] || { echo "FAILED: gpu_check.sh ended with $code, not 3 (no GPU):" >&2; tail -n 20 "$root/table.txt" >&2; failed=1; }
grep -q "^kernels *top_k *not run *on cpu,cuda" "$root/table.txt" || { echo "FAILED: gpu_check.sh does not list top_k:" >&2; cat "$root/table.txt" >&2; failed=1; }
[ "$failed" = 0 ] && echo "the bundle starts with glibc alone: fedbits, the GPU tests and the benchmarks"
exit "$failed"
