#!/usr/bin/env bash
# Runs the tests of fedbits.torch with today's PyTorch from PyPI; run_tests.sh runs them with Debian's.
#
#   tests/python/run_torch_tests.sh WHEEL      WHEEL: the package, as run_tests.sh leaves it in build/python-tests/wheel
#
# FEDBITS_TORCH_ENV=FOLDER      the environment with PyTorch, by default ~/.cache/fedbits/torch-VERSION, which all checkouts share
# FEDBITS_CI_TORCH=install      makes the environment where it is missing: PyPI's wheels for Linux hold CUDA, a download of 3 GB that takes 6 GB
#
# Without an environment nothing is tested, which a line TORCH 2 SKIPPED says, and the script succeeds.
set -euo pipefail
if [ $# -ne 1 ] || [ ! -f "$1" ]; then
  echo "usage: tests/python/run_torch_tests.sh WHEEL" >&2
  exit 2
fi
wheel=$(realpath "$1")
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

readonly version=2.15.0 longest_install_s=1200
environment=${FEDBITS_TORCH_ENV:-$HOME/.cache/fedbits/torch-$version}
python=$environment/bin/python

skip() { echo "TORCH 2 SKIPPED: $*"; exit 0; }

is_complete() { "$python" -c 'import torch, matplotlib, pytest, nbclient, ipykernel' 2>&1; }

# Downloads go to a folder that is removed, also after pip was stopped.
install_torch() {
  local downloads=$environment.downloads status=0
  mkdir -p "$downloads" && python3 -m venv "$environment" || return
  TMPDIR=$downloads timeout "$longest_install_s" \
    "$python" -m pip install --quiet --no-cache-dir "torch==$version" numpy matplotlib pytest nbclient ipykernel || status=$?
  rm -rf "$downloads"
  return "$status"
}

# Checkouts that install at the same time take turns; what was installed before is found complete.
prepare_environment() {
  local lock=$environment.lock
  mkdir -p "$(dirname "$lock")"
  exec 9>"$lock" && flock 9
  is_complete >/dev/null || install_torch || skip "pip could not install PyTorch $version into $environment within $longest_install_s s"
  exec 9>&-
}

[ "${FEDBITS_CI_TORCH:-}" != install ] || prepare_environment
[ -x "$python" ] || skip "there is no environment $environment; FEDBITS_CI_TORCH=install makes it (6 GB)"
why=$(is_complete) || skip "$environment does not work: $(tail -n 1 <<<"$why")"

# The package lies beside the environment, which other checkouts use too.
package=$(mktemp -d)
trap 'rm -rf "$package"' EXIT
"$python" -m pip install --quiet --no-deps --target "$package" "$wheel"
export PYTHONPATH=$package
"$python" -c 'import torch, fedbits; print(f"PyTorch {torch.__version__}, {fedbits.__file__}")'
cd "$package"
"$python" -m pytest -q -rs -p no:cacheprovider "$tests/test_torch.py" "$tests/test_torch_model.py" "$tests/test_torch_processes.py" \
  "$tests/test_notebooks.py::test_a_notebook_runs[ddp]" "$tests/test_notebooks.py::test_a_notebook_runs[torch_model]"
