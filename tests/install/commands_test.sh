#!/usr/bin/env bash
# Runs every fedbits command that stands in a document, a scenario file of the library or an example, as it stands, page by page.
# Sweeps get settings that make them short; nothing else of a command is changed but the names of things that the reader is to put in.
#
#   tests/install/commands_test.sh BINARY SOURCE
#
# Commands that cannot run here are listed in `reason_not_to_run`. Without data under FEDBITS_DATA the commands that need them are skipped,
# and the test says so with exit code 77.
set -euo pipefail
set -f # words of commands are not patterns

binary=$(realpath "$1") source=$(realpath "$2") data=${FEDBITS_DATA:+$(realpath "$FEDBITS_DATA")}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 run=0 skipped=0 listed=0
source "$(dirname "${BASH_SOURCE[0]}")/page_files.sh"

# Prints why a command of a page is not run, or nothing.
reason_not_to_run() {
  case "$1" in
    'fedbits serve '* | 'fedbits join '*) echo "server and clients run side by side; tests/net/processes_test.sh and tls_processes_test.sh run them" ;;
    'fedbits export served'* | 'fedbits report served'*) echo "needs the store of a server; tests/net/processes_test.sh makes one" ;;
    'fedbits data fetch '*) echo "downloads from the publisher" ;;
    *--plugin*) echo "needs a plug-in; examples_test.sh and docs_test.sh build them and run these commands" ;;
    sbatch*) echo "needs a cluster; the command that it wraps is run below" ;;
    parallel* | seq*) echo "needs GNU parallel or workers side by side; the command that it starts is run below" ;;
    *'sweep '*compressor-gallery.toml*) echo "tunes 378 runs, ten minutes at the least; it is planned in the same form instead" ;;
    *'report gallery'* | *'report products'*) echo "needs the store of a sweep that is not run here" ;;
    'fedbits report own'* | 'fedbits export own'*) echo "needs the store of a sweep with a plug-in; docs_test.sh runs it" ;;
    *ncf-movielens* | *' movielens '*) [ -e "$data/ml-100k/u.data" ] || echo "needs ml-100k, whose licence keeps it out of archives; fedbits data fetch gets it" ;;
    *'--device cuda'*) nvidia-smi >/dev/null 2>&1 || echo "needs a GPU" ;;
  esac
}

# Prints the settings that make a run of a scenario file short.
short_form() {
  local settings=(rounds=3 sweep.seeds=2)
  case "$1" in
    study.toml) settings=(rounds=3 sweep.seeds=4) ;; # enough runs for every shard to have some
    *compressor-gallery.toml) settings=(rounds=2 sweep.seeds=1 sweep.tune.seeds=1) ;;
    *a9a-heterogeneity.toml) settings=(rounds=40 sweep.seeds=1 sweep.tune.seeds=1 data.rows=1000) ;;
    *heterogeneity-study.toml) settings=(rounds=25 sweep.seeds=1 sweep.tune.seeds=1 evaluate.every=1 data.rows=500 partition.clients=10 'model.hidden=[16]') ;;
    *fashion-2classes.toml | *cpu-and-gpu.toml) settings=(rounds=2 sweep.seeds=1 data.rows=1000) ;;
    *mcmahan*.toml | *flute*.toml) settings=(rounds=2) ;;
    flower.toml | grace.toml) settings=(rounds=2 data.rows=5000) ;;
    *scaffold-epochs.toml) settings=(rounds=20 sweep.seeds=1 evaluate.every=1 data.rows=2000 partition.clients=20) ;;
    *paper/*.toml) settings=(rounds=20) ;;
  esac
  printf -- '--set\n%s\n' "${settings[@]}"
}

# Prints the commands of a page, one to a line, from "fedbits" on. In Markdown they are indented or fenced lines, and spans of code; what
# ./quickstart.sh runs is one of them.
commands_of() {
  case "$1" in
    *.md)
      awk '/^```/ { fenced = !fenced; next } fenced || /^    /' "$1" |
        sed -nE 's#^ *\./quickstart\.sh( .*)?$#fedbits run scenarios/library/quickstart.toml\1#p; s#^ *(build(-cuda)?/)?(fedbits [a-z].*)#\3#p; s#^ *((sbatch|parallel|seq) .*fedbits .*)#\1#p'
      grep -oE '`(build/)?fedbits [a-z][^`]*`' "$1" | sed -E 's#^`(build/)?##; s#`$##; s#^fedbits (run|sweep|plan)(( -[a-z])+)$#fedbits \1 FILE\2#
        s#^fedbits (run|sweep|plan|suggest|report|export|explain|merge|check|verify|serve|join|certs)( --[a-z-]+)?$#fedbits \1 --help#' || true
      ;;
    *) sed -nE 's/^# {2,}(fedbits [a-z].*)/\1/p' "$1" ;;
  esac | sed -E 's/ {2,}#.*$//; s/ +> .*$//'
}

# Prints the command with the things that a reader is to put in; a hash is that of a run in the store that the command names.
filled_in() {
  local hash="" store folder
  folder=$(sed -nE 's/.* --out ([^ ]+).*/\1/p' <<<"$1")
  store=$(find "${folder:-fedbits-out}" -name results.sqlite -not -path '*/tuning/*' 2>/dev/null | sort | head -n 1)
  [ -z "$store" ] || hash=$("$binary" export "$store" --runs /dev/stdout | sed -n '2s/,.*//p')
  sed -E "s#\bDIR\b#${data:-missing}#g; s#\b(FILE|study\.toml)\b#study.toml#g; s#\bHASH\b#${hash:-none}#g; s#\bNAME\b#mushrooms#g
          s#'?\\\$SLURM_ARRAY_TASK_ID#1#g; s#OUT/shard-\*-of-n --out OUT#results/shard-1-of-8 --out joined#" <<<"$1"
}

needs_data() {
  local file
  for file in "$@"; do
    case "$file" in
      *.toml) ! grep -qE 'libsvm/|fashion-mnist|"mnist"|path *= *"' "$file" || return 0 ;;
    esac
  done
  return 1
}

# Runs one command in the page's folder.
run_command() {
  local page=$1 line=$2 reason args=() settings=() file="" arg
  reason=$(reason_not_to_run "$line")
  if [ -n "$reason" ]; then
    listed=$((listed + 1))
    echo "   not run ($reason): $line"
    case "$line" in
      sbatch* | parallel* | seq*) wrapped "$page" "$line" ;;
      *compressor-gallery.toml*) run_command "$page" "fedbits plan scenarios/library/compressor-gallery.toml" ;;
    esac
    return 0
  fi
  eval "args=($(filled_in "$line"))"
  args=("${args[@]:1}")
  for arg in "${args[@]}"; do [[ $arg != *.toml ]] || file=$arg; done
  if [ -z "$data" ] && { [[ " ${args[*]} " == *' missing '* ]] || needs_data "$file" || [[ $line == *--verify* ]] || lacks_store "${args[@]}"; }; then
    skipped=$((skipped + 1))
    echo "   DATA MISSING: $line"
    return 0
  fi
  case "${args[0]}" in run | sweep | plan) [[ -z $file || $line == *--split-file* ]] || mapfile -t settings < <(short_form "$file") ;; esac
  [[ ${args[0]} != sweep ]] || settings+=(--jobs 2)
  [[ " ${args[*]} " != *' --jobs '* ]] || settings=("${settings[@]:0:${#settings[@]}-2}")
  # A command that another page has already run is not run again; the store of a sweep is copied.
  local key start=$SECONDS
  key=$work/done/$(cksum <<<"${args[*]} ${settings[*]}" | tr ' ' -)
  case "${args[0]}" in sweep | plan | list | data | check) [ ! -d "$key" ] || { cp -r "$key/." . && return 0; } ;; esac
  run=$((run + 1))
  # A data set that is not here fails --verify; one that does not match its checksum is not this test's business.
  if ! timeout 100 "$binary" "${args[@]}" "${settings[@]}" >"$work/said.txt" 2>&1 </dev/null &&
    ! { [[ $line == *--verify* ]] && grep -q missing "$work/said.txt"; }; then
    failed=$((failed + 1))
    echo "   FAILED: fedbits ${args[*]} ${settings[*]}"
    tail -n 5 "$work/said.txt" | sed 's/^/      /'
  fi
  mkdir -p "$key"
  for arg in "${args[@]}"; do [[ ${args[0]} != sweep ]] || [ ! -e "$arg/results.sqlite" ] || cp -r "$arg" "$key"; done
  [ $((SECONDS - start)) -lt 8 ] || echo "   $((SECONDS - start)) s: $line"
}

lacks_store() { [[ $1 == report || $1 == export ]] && [ ! -e "$2/results.sqlite" ]; }

# The command inside of one that starts it elsewhere.
wrapped() {
  local inner=${2#*fedbits }
  inner=${inner%%\'*}
  inner=$(sed -E 's# *(--resume)? *:::.*# --resume#; s#\{\}#1#g; s#\$SLURM_ARRAY_TASK_ID#1#g' <<<"$inner")
  run_command "$1" "fedbits $inner"
}

mapfile -t pages < <(cd "$source" && find README.md CONTRIBUTING.md docs scenarios/library examples -name '*.md' -o -name '*.toml' -o -name '*.py' | sort)
for page in "${pages[@]}"; do
  # Options without their command cannot be tried, here or by a reader.
  if grep -nE '^(#| {4}) *\.\.\. --' "$source/$page"; then
    echo "   FAILED: $page holds a command that is not whole"
    failed=$((failed + 1))
  fi
  mapfile -t lines < <(commands_of "$source/$page")
  [ "${#lines[@]}" -gt 0 ] || continue
  echo "== $page"
  mkdir "$work/page"
  cd "$work/page"
  ln -s "$source/scenarios" scenarios
  cp "$source/scenarios/library/quickstart.toml" study.toml
  write_files "$source/$page"
  for line in "${lines[@]}"; do run_command "$page" "$line"; done
  cd "$work"
  rm -rf "$work/page"
done

echo "$run commands were run, $failed failed; $listed are listed as not to be run, $skipped lacked data"
[ "$run" -ge 20 ] || { echo "FAILED: too few commands were found"; exit 1; }
[ "$failed" -eq 0 ] || exit 1
[ -n "$data" ] || { echo "DATA MISSING: $skipped commands were not run; set FEDBITS_DATA"; exit 77; }
