#!/usr/bin/env bash
# Prints how many compilers may run at a time: one per core and per 1.5 GiB of available memory, at least one. A container's limit of memory
# counts. FEDBITS_JOBS, if it is set, is the answer.
#
#   scripts/jobs.sh [ROOT]      reads ROOT/proc/meminfo and ROOT/sys/fs/cgroup (default: /)
set -euo pipefail

root=${1:-}
readonly kib_per_compiler=$((1536 * 1024))

# Prints the KiB that /proc calls available.
available_kib() { awk '$1 == "MemAvailable:" {print $2}' "$root/proc/meminfo" 2>/dev/null || true; }

# Prints the KiB that this container may still take; nothing without a limit. Files that the kernel caches count as free.
container_kib() {
  local group=$root/sys/fs/cgroup most used cached
  most=$(cat "$group/memory.max" 2>/dev/null) || return 0
  [ "$most" != max ] || return 0
  used=$(cat "$group/memory.current" 2>/dev/null || echo 0)
  cached=$(awk '$1 == "inactive_file" {print $2}' "$group/memory.stat" 2>/dev/null || true)
  echo $(((most - used + ${cached:-0}) / 1024))
}

main() {
  if [ -n "${FEDBITS_JOBS:-}" ]; then
    echo "$FEDBITS_JOBS"
    return
  fi
  local jobs kib by_memory
  jobs=$(nproc 2>/dev/null || echo 1)
  for kib in $(available_kib) $(container_kib); do
    by_memory=$((kib / kib_per_compiler))
    [ "$by_memory" -ge "$jobs" ] || jobs=$by_memory
  done
  [ "$jobs" -ge 1 ] || jobs=1
  echo "$jobs"
}

main
