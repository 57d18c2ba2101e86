#!/usr/bin/env bash
# Measures what a first build costs in processor time: the quickstart's build, and the same for other commits beside it.
#
#   bench/build_cost.sh [COMMIT...]     default: HEAD; `bench/build_cost.sh 625382b9 HEAD` compares a commit with the current one
#   FEDBITS_JOBS=N                      compilers at a time
#
# The unit is the time in which one file of the tree, fl_core/config/expression.cpp of the first commit, is compiled twenty times with fixed
# options: half of them before each build and half after it, with as many compilers at a time as the build has. Multiples of it can be
# compared between machines, seconds cannot. The compiler cache is not used. Each build starts from a clone in a temporary folder.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

readonly file=fl_core/config/expression.cpp
case ${1:-} in
  -*)
    sed -n '2,/^set /{/^set /!p}' "${BASH_SOURCE[0]}" | sed 's/^# \?//'
    exit 2
    ;;
esac
commits=("${@:-HEAD}")
jobs=$("$root/scripts/jobs.sh")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Stands where CMake expects the compiler cache: runs the compiler and notes the seconds that it takes.
cat >"$work/timed" <<'SCRIPT'
#!/usr/bin/env bash
before=""
for word in "$@"; do
  [ "$before" != -o ] || out=$word
  before=$word
done
TIMEFORMAT="%U %S ${out:-}"
{ time "$@" 2>&3; } 3>&2 2>>"$FL_TIMED"
SCRIPT
chmod +x "$work/timed"

seconds_in() { awk '{sum += $1 + $2} END {printf "%.2f", sum}' "$1"; }

# Compiles the file N times, and notes the seconds of each.
compile_the_file() {
  (cd "$work/0" && seq "$1" | FL_TIMED=$work/unit xargs -P "$jobs" -I{} \
    "$work/timed" "${CXX:-g++}" -std=c++20 -O2 -march=x86-64-v3 -I. -c "$file" -o "$work/unit-{}.o")
}

# Configures as the quickstart of that commit does.
# shellcheck disable=SC1091,SC2154
configure_as_quickstart() {
  (cd "$1" && unset fl_quickstart_options && source scripts/steps.sh &&
    cmake --preset release "${fl_quickstart_options[@]}" -DFL_CCACHE="$work/timed" >/dev/null)
}

# Prints the processor's seconds by part, the largest first.
by_part() {
  awk '{part = $3; sub(/\.dir\/.*/, "", part); sub(/.*\//, "", part); sum[part] += $1 + $2; n[part]++}
       END {for (part in sum) printf "    %-18s %8.1f s in %3d compilations\n", part, sum[part], n[part]}' "$1" | sort -k2 -nr
}

for i in "${!commits[@]}"; do
  git clone -q "$root" "$work/$i"
  git -C "$work/$i" checkout -q "$(git -C "$root" rev-parse "${commits[$i]}^{commit}")"
done

echo "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $jobs compilers at a time, $("${CXX:-g++}" --version | head -n 1)"
for i in "${!commits[@]}"; do
  : >"$work/unit"
  : >"$work/log"
  configure_as_quickstart "$work/$i"
  compile_the_file 10
  start=$SECONDS
  (cd "$work/$i" && FL_TIMED=$work/log cmake --build build -j "$jobs" --target fedbits_app >"$work/said" 2>&1) || { tail -n 20 "$work/said"; exit 1; }
  wall=$((SECONDS - start))
  compile_the_file 10
  awk -v commit="${commits[$i]}" -v wall="$wall" -v build="$(seconds_in "$work/log")" -v unit="$(seconds_in "$work/unit")" 'BEGIN {
    printf "%s: %.0f s of processor time in %d s by the clock = %.1f times %s compiled twenty times (%.1f s)\n",
      commit, build, wall, build / unit, "'"$file"'", unit}'
  by_part "$work/log"
done
