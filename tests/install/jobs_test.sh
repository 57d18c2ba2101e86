#!/usr/bin/env bash
# Tests how many compilers scripts/jobs.sh allows, with files of its own in place of /proc and /sys.
#
#   tests/install/jobs_test.sh SOURCE
set -euo pipefail

source=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

# Sixteen cores, whatever this machine has.
mkdir "$work/bin"
printf '#!/bin/sh\necho 16\n' >"$work/bin/nproc"
chmod +x "$work/bin/nproc"

readonly gib=$((1 << 30))

# machine [GIB]: a machine with as much available memory, or one without /proc/meminfo; its containers have no limit.
machine() {
  rm -rf "$work/system"
  mkdir -p "$work/system/proc" "$work/system/sys/fs/cgroup"
  [ $# -eq 0 ] || printf 'MemTotal: 999999999 kB\nMemAvailable: %d kB\n' $(($1 * gib / 1024)) >"$work/system/proc/meminfo"
}

# container LIMIT [USED [CACHED]], in bytes.
container() {
  local group=$work/system/sys/fs/cgroup
  echo "$1" >"$group/memory.max"
  [ $# -lt 2 ] || echo "$2" >"$group/memory.current"
  [ $# -lt 3 ] || printf 'anon 5\ninactive_file %s\n' "$3" >"$group/memory.stat"
}

# expect JOBS WHY
expect() {
  local jobs
  jobs=$(env -u FEDBITS_JOBS PATH="$work/bin:$PATH" bash "$source/scripts/jobs.sh" "$work/system")
  [ "$jobs" = "$1" ] || fail "$2: $jobs jobs, not $1"
}

machine 64
expect 16 "one per core where there is memory"
machine 6
expect 4 "one per 1.5 GiB"
machine 1
expect 1 "at least one"
machine
expect 16 "memory is unknown"

machine 64
container max
expect 16 "a container without a limit"
container $((6 * gib))
expect 4 "a container's limit"
container $((6 * gib)) $((3 * gib))
expect 2 "what a container has left"
container $((6 * gib)) $((3 * gib)) $((2 * gib))
expect 3 "cached files count as free"
container $((6 * gib)) $((6 * gib))
expect 1 "a full container"
machine 3
container $((60 * gib))
expect 2 "the smaller of both"

[ "$(FEDBITS_JOBS=7 bash "$source/scripts/jobs.sh" "$work/system")" = 7 ] || fail "FEDBITS_JOBS is not the answer"
echo "jobs.sh counts cores and memory"
