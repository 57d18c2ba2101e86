#!/usr/bin/env bash
# Tests that runs on a GPU, or on the emulated one, have the same checksum whatever the variables of fl_core/ops/cuda/diagnosis.hpp ask for: late
# streams, blocks of memory of their own, and each of the ways between which a measurement chooses. A wrong value is an error that names
# its variable.
#
#   tests/emulator/variables_test.sh build-emulator/fedbits
set -euo pipefail
fedbits=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
failed=0

# scenario NAME MODEL COMPRESSOR FEEDBACK...: twenty rounds, with lines for the tables of the model and both ends of the uplink.
scenario() {
  cat >"$1.toml" <<TOML
name = "$1"
rounds = 20
[data]
kind = "synthetic"
clients = 6
features = 16
classes = 3
[model]
$2
[local]
kind = "sgd"
batch = 5
steps = 2
learning_rate = 0.05
[compressor.up]
$3
[feedback.up]
$4
[evaluate]
every = 20
gradient = "never"
optimum = false
TOML
}
regression='kind = "logistic_regression"'
perceptron=$'kind = "mlp"\nhidden = [8]'
scenario top_k "$regression" $'kind = "top_k"\nratio = 0.1' 'kind = "ef14"'
scenario hard_threshold "$perceptron" $'kind = "hard_threshold"\nthreshold = 0.01' 'kind = "ef21"'
scenario qsgd "$perceptron" $'kind = "qsgd"\nlevels = 15' 'kind = "diana"'
scenario natural "$regression" 'kind = "natural"' 'kind = "none"'
scenario ef_sign "$perceptron" 'kind = "ef_sign"' 'kind = "econtrol"'
scenario random_k "$regression" $'kind = "random_k"\nratio = 0.2\nscaled = true' 'kind = "none"'
scenario powersgd "$perceptron" $'kind = "powersgd"\nrank = 2\nscope = "tensor"' 'kind = "ef14"'
# A convolution, which can be done in several ways, on a few pictures.
if [ -d "${FEDBITS_DATA:-/nowhere}/fashion-mnist" ]; then
  scenario convolution $'kind = "neural_network"\nlayers = ["mean_pool(4)", "conv2d(3, 3)", "relu", "flatten", "dense(classes)"]' $'kind = "top_k"\nratio = 0.1' 'kind = "ef14"'
  sed -i '/^kind = "synthetic"/,/^classes/d; s/^\[data\]/[data]\nname = "fashion-mnist"\nrows = 60\ntest = "none"\n[partition]\nkind = "shuffled"\nclients = 3/; s/^rounds = 20/rounds = 5/' convolution.toml
else
  echo "DATA MISSING: fashion-mnist, for the convolution"
fi

# checksum_of SCENARIO VARIABLE=VALUE...: of the run's model, on the GPU.
checksum_of() {
  local scenario=$1
  shift
  rm -rf results
  env "$@" "$fedbits" run "$scenario.toml" --device cuda --out results -q >said 2>&1 || { cat said >&2; return 1; }
  "$fedbits" export results --runs runs.csv >/dev/null 2>&1
  python3 -c 'import csv; print(next(csv.DictReader(open("runs.csv", newline="")))["checksum"])'
}

for file in *.toml; do
  name=${file%.toml}
  expected=$(checksum_of "$name" LC_ALL=C) || { failed=1; continue; }
  for variables in FEDBITS_CUDA_DELAY=1 FEDBITS_CUDA_DELAY=2 FEDBITS_CUDA_DELAY=3 FEDBITS_CUDA_POOL=off \
    "FEDBITS_CUDA_POOL=off FEDBITS_CUDA_DELAY=4" FEDBITS_CUDA_WAY=0 FEDBITS_CUDA_WAY=1 FEDBITS_CUDA_WAY=2; do
    # shellcheck disable=SC2086
    found=$(checksum_of "$name" $variables) || { echo "FAILED: $name with $variables does not run"; failed=1; continue; }
    [ "$found" = "$expected" ] || { echo "FAILED: $name has the checksum $found with $variables, and $expected without"; failed=1; }
  done
done

# Times of kernels are written at the end, and change no result.
expected=$(checksum_of hard_threshold LC_ALL=C) && found=$(checksum_of hard_threshold FEDBITS_CUDA_TIMES=times.csv) || failed=1
[ "$found" = "$expected" ] || { echo "FAILED: hard_threshold has the checksum $found where kernels are timed, and $expected otherwise"; failed=1; }
{ [ "$(head -n 1 times.csv)" = kernel,blocks,threads,launches,ms,us_each ] && grep -qE '^"mark_kept",[0-9]+,256,[1-9][0-9]*,' times.csv; } ||
  { echo "FAILED: the table of times is not as it should be:"; head -n 3 times.csv; failed=1; }

# Clients whose local update has no half for a GPU train on the CPU, and a run says so.
"$fedbits" run top_k.toml --set local.kind=scaffold --set feedback.up.kind=scaffold --device cuda --out on_cpu >said 2>&1 || true
grep -qF 'clients train on the CPU' said || { echo "FAILED: a run does not say that its clients train on the CPU:"; cat said; failed=1; }

# refuses VARIABLE=VALUE TEXT
refuses() {
  local code=0
  env "$1" "$fedbits" run top_k.toml --device cuda --out other -q >said 2>&1 || code=$?
  [ "$code" = 2 ] && grep -qF -- "$2" said || { echo "FAILED: $1 ended with $code:"; cat said; failed=1; }
}
refuses FEDBITS_CUDA_POOL=no 'FEDBITS_CUDA_POOL is "no", and has to be "on" or "off"'
refuses FEDBITS_CUDA_DELAY=0 'FEDBITS_CUDA_DELAY is "0", and has to be a whole number of at least 1'
refuses FEDBITS_CUDA_WAY=fast 'FEDBITS_CUDA_WAY is "fast", and has to be a whole number of at least 0'

[ "$failed" = 0 ] &&
  echo "$(ls ./*.toml | wc -l) methods have one checksum each, with late streams, without a pool, and in every way"
exit "$failed"
