#!/usr/bin/env bash
# From a fresh clone to the first comparison and its report: packages, build, run, report.
#
#   ./quickstart.sh [option of `fedbits run` ...]     e.g. ./quickstart.sh --set rounds=50 --again
#
# FEDBITS_JOBS=N builds with N compilers at a time (default: one per core and per 1.5 GiB of memory).
# FEDBITS_NATIVE=0 builds for any x86-64-v3 processor in place of this one.
# FEDBITS_NET=1 also builds the network: `fedbits serve`, `join` and `certs`, and the option --status.
set -euo pipefail
case ${1:-} in
  -h | --help)
    sed -n '2,/^set /{/^set /!p}' "${BASH_SOURCE[0]}" | sed 's/^# \?//'
    exit 0
    ;;
esac
source "$(dirname "${BASH_SOURCE[0]}")/scripts/steps.sh"

# The tests of a folder that is configured already stay on.
configure_binary() {
  if [ -f "$fl_root/build/CMakeCache.txt" ]; then
    local network=()
    [ "${FEDBITS_NET:-0}" != 1 ] || network=(-DFL_NET=ON)
    configure release "${network[@]}"
  else
    configure release "${fl_quickstart_options[@]}"
  fi
}

# Prints the folder of the results: what --out says, seen from the top of the checkout, where everything runs.
folder_of_results() {
  local folder=fedbits-out/quickstart
  while [ $# -gt 0 ]; do
    case $1 in
      --out) folder=${2:-$folder} ;;
      --out=*) folder=${1#--out=} ;;
    esac
    shift
  done
  printf '%s' "$folder"
}
results=$(folder_of_results "$@")

run_comparison() { (cd "$fl_root" && build/fedbits run scenarios/library/quickstart.toml --out "$results" "$@"); }
make_report() { (cd "$fl_root" && build/fedbits report "$results" --baseline top-5% -o "$results/report.html"); }

# Prints the arguments without --out and its value.
without_out() {
  while [ $# -gt 0 ]; do
    case $1 in
      --out) [ $# -lt 2 ] || shift ;;
      --out=*) ;;
      *) printf '%s\0' "$1" ;;
    esac
    shift
  done
}
mapfile -d '' -t options < <(without_out "$@")

step "1/5 packages" "$fl_root/scripts/packages.sh" build
step "2/5 configure" configure_binary
step "3/5 build" build release fedbits_app
step "4/5 run scenarios/library/quickstart.toml" run_comparison "${options[@]}"
step "5/5 report" make_report

case $results in /*) folder=$results ;; *) folder=$fl_root/$results ;; esac
cat <<TEXT

The results lie in $folder.
The report is $folder/report.html: open it in a browser.
Next, from $fl_root:
    build/fedbits report $results --baseline top-5% --text     # the same tables here
docs/tutorial.md goes on to a study and a compressor of your own.
TEXT
