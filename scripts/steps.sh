# shellcheck shell=bash
# Sourced by quickstart.sh, test.sh and .ci/run: named steps with their seconds, and where things are.

fl_root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
fl_jobs="$("$fl_root/scripts/jobs.sh")"

# One compiler cache for every clone, but not for every processor: the same -march=native means other instructions there.
CCACHE_NAMESPACE="$(grep -m1 '^flags' /proc/cpuinfo | cksum | cut -d' ' -f1)"
export CCACHE_NAMESPACE CCACHE_BASEDIR="$fl_root" CCACHE_NOHASHDIR=true
# What a precompiled header and __DATE__ would keep out of the cache otherwise.
export CCACHE_SLOPPINESS=pch_defines,time_macros

# Prints what helps after a step of this title has failed.
what_to_do() {
  local again=./${0##*/}
  case $1 in
    *packages*) echo "Install the packages named above, then run $again again. FEDBITS_SKIP_PACKAGES=1 $again leaves this check out." ;;
    *configure*)
      echo "The first \"CMake Error\" above names what is missing. If build/ is of another compiler or place: rm -rf build, then $again again."
      ;;
    *build*)
      echo "The first error is found by: cmake --build build -j 1 2>&1 | grep -m 1 -A 5 'error:'"
      echo "If a compiler was killed, memory has run out: FEDBITS_JOBS=1 $again goes on with one compiler at a time."
      echo "If a compiler or assembler does not know an instruction: FEDBITS_NATIVE=0 $again"
      echo "CONTRIBUTING.md says which compilers were tried; please report any other error with its first lines."
      ;;
    *run* | *report*)
      echo "The line above says why. $again --again computes everything anew; build/fedbits verify fedbits-out checks stored results."
      echo "If the program was killed by a signal, please report the command with the output of build/fedbits --version."
      ;;
  esac
}

# step TITLE COMMAND...: a headed step; the script ends where the command fails.
step() {
  local title=$1 start=$SECONDS status=0
  shift
  printf '\n== %s\n' "$title"
  "$@" || status=$?
  if [ "$status" -ne 0 ]; then
    printf '== %s: failed after %d s (exit code %d)\n' "$title" $((SECONDS - start)) "$status" >&2
    what_to_do "$title" | sed 's/^/   /' >&2
    exit "$status"
  fi
  printf '== %s: %d s\n' "$title" $((SECONDS - start))
}

# configure PRESET [OPTION...]: quiet when all is well. Without ninja, make builds. With FEDBITS_NATIVE=0 the build is for any x86-64-v3 processor;
# an option of CMake has to be given each time, because presets set it anew.
configure() {
  local options=()
  command -v ninja >/dev/null || options+=(-G "Unix Makefiles")
  [ "${FEDBITS_NATIVE:-1}" != 0 ] || options+=(-DFL_NATIVE=OFF)
  (cd "$fl_root" && cmake --preset "$@" "${options[@]}" --log-level=NOTICE >/dev/null)
}

# build PRESET [TARGET]
build() { (cd "$fl_root" && cmake --build --preset "$1" -j "$fl_jobs" ${2:+--target "$2"}); }

# The quickstart's own build, which CI repeats: the program alone, many files compiled as one. The network (serve, join, certs and --status) takes
# a fifth of the compiler's time and is built where FEDBITS_NET=1 asks for it.
# shellcheck disable=SC2034
fl_quickstart_options=(-DFL_TESTS=OFF -DFL_BENCH=OFF -DFL_UNITY_LIBRARY=ON)
[ "${FEDBITS_NET:-0}" = 1 ] || fl_quickstart_options+=(-DFL_NET=OFF)
