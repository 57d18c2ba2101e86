#!/usr/bin/env bash
# Runs the example of docs/protocol.md: a server and two peers as processes, whose store equals that of the simulated run. Tests also their error
# messages.
#
#   tests/net/processes_test.sh BINARY SOURCE
set -euo pipefail
binary=$(realpath "$1") source=$(realpath "$2")
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"

fail() { echo "FAILED: $*"; exit 1; }

# The three lines at the top of the page, on a port that is free, and with fewer rounds.
page=$source/docs/protocol.md
mapfile -t lines < <(sed -nE '/^## /q; s#^    (fedbits (serve|join) .* --insecure.*)#\1#p' "$page")
[ ${#lines[@]} -eq 3 ] || fail "the top of $page has ${#lines[@]} lines of serve and join instead of three"
run() { (cd "$source" && eval "\"$binary\" ${1#fedbits } $2"); }

serve=${lines[0]/127.0.0.1:7000/127.0.0.1:0}
run "${serve/--out served/--out $work/served}" "--set rounds=20" >serve.log 2>&1 &
server=$!
for _ in $(seq 100); do port=$(sed -nE 's/^listening at 127.0.0.1:([0-9]+)$/\1/p' serve.log); [ -z "$port" ] || break; sleep 0.1; done
[ -n "$port" ] || { cat serve.log; fail "the server does not listen"; }

# Wrong ways in, before the right ones.
! "$binary" join "127.0.0.1:$port" --clients 0-9 2>wrong.txt || fail "join without --insecure"
grep -q -- '--insecure' wrong.txt || fail "the error does not name --insecure: $(cat wrong.txt)"
! "$binary" join "192.0.2.1:$port" --clients 0-9 --insecure 2>wrong.txt || fail "plain TCP to another machine"
grep -q 'for this machine alone' wrong.txt || fail "$(cat wrong.txt)"
! "$binary" join "127.0.0.1:$port" --clients 9-0 --insecure 2>wrong.txt || fail "a range that descends"
grep -q 'descends' wrong.txt || fail "$(cat wrong.txt)"
! "$binary" join "127.0.0.1:$port" --clients 15-25 --insecure 2>wrong.txt || fail "clients that the run does not have"
grep -q 'the run has clients 0-19, not 15-25' wrong.txt || fail "$(cat wrong.txt)"

! "$binary" join "127.0.0.1:$port" --clients 0-9 --insecure --emulate 'latncy=5ms' 2>wrong.txt || fail "a condition that does not exist"
grep -q "did you mean 'latency'" wrong.txt || fail "$(cat wrong.txt)"

# The first peer has its own rows alone, from the page's line.
shard=$(sed -nE 's#^    (fedbits data shard .*)#\1#p' "$page")
run "${shard/--out /--out $work/}" "--set rounds=20" 2>/dev/null || fail "data shard"
! "$binary" join "127.0.0.1:$port" --clients 10-19 --insecure --shard clients-0-9.shard 2>wrong.txt || fail "a shard of other clients"
grep -q -- '--shard: it has the rows of clients 0-9, not those of client 10' wrong.txt || fail "$(cat wrong.txt)"
! "$binary" join "127.0.0.1:$port" --clients 0-9 --insecure --shard "$source/README.md" 2>wrong.txt || fail "a shard that is none"
grep -q 'is no shard that this program can read' wrong.txt || fail "$(cat wrong.txt)"
! "$binary" data --clients 0 2>wrong.txt || fail "clients without a shard"
grep -q -- '--clients: belongs to `fedbits data shard FILE`' wrong.txt || fail "$(cat wrong.txt)"
! "$binary" data shard "$source/scenarios/library/quickstart.toml" --clients 15-20 --out none.shard 2>wrong.txt || fail "clients beyond the run's"
grep -q -- '--clients: the run has clients 0-19, not 20' wrong.txt || fail "$(cat wrong.txt)"
[ ! -e none.shard ] || fail "a file is left behind"

run "${lines[1]/:7000/:$port}" "--shard $work/clients-0-9.shard" >one.log 2>&1 &
one=$!
run "${lines[2]/:7000/:$port}" "--emulate 'bandwidth=100M latency=1ms jitter=1ms'" >two.log 2>&1 &
two=$!
wait $one || { cat one.log; fail "the first peer"; }
wait $two || { cat two.log; fail "the second peer"; }
wait $server || { cat serve.log; fail "the server"; }
grep -q '^waiting for peers: 0 of 20 clients are hosted$' serve.log || { cat serve.log; fail "the server does not say that it waits"; }

"$binary" run "$source/scenarios/library/quickstart.toml" --set rounds=20 --set sweep.seeds=1 --out simulated -q
for store in served simulated; do "$binary" export $store --reproducible --runs $store-runs.csv --rounds $store-rounds.csv >/dev/null; done
cmp served-runs.csv simulated-runs.csv || fail "the runs differ"
cmp served-rounds.csv simulated-rounds.csv || fail "the rounds differ"
echo "$(($(wc -l <served-runs.csv) - 1)) runs over sockets are the simulated ones"

# A peer that is killed ends the run, with its clients' names; no process hangs.
run "${serve/--out served/--out $work/killed}" "--set rounds=100000 --patience 0.5" >serve.log 2>&1 &
server=$!
for _ in $(seq 100); do port=$(sed -nE 's/^listening at 127.0.0.1:([0-9]+)$/\1/p' serve.log); [ -z "$port" ] || break; sleep 0.1; done
"$binary" join "127.0.0.1:$port" --clients 0-9 --insecure >one.log 2>&1 &
one=$!
"$binary" join "127.0.0.1:$port" --clients 10-19 --insecure >two.log 2>&1 &
two=$!
sleep 2
kill -9 $two
status=0
wait $server || status=$?
[ $status -eq 1 ] || { cat serve.log; fail "the server ended with $status"; }
grep -qE 'clients? 1[0-9,-]+ (has|have) left (in|before) round' serve.log || { cat serve.log; fail "the server does not say who left"; }
wait $one 2>/dev/null || true
# So does Ctrl-C, on either side.
"$binary" join "127.0.0.1:1" --clients 0 --insecure --patience 60 >one.log 2>&1 &
one=$!
sleep 0.5
kill -INT $one 2>/dev/null || true
status=0
wait $one || status=$?
[ $status -eq 130 ] || fail "a peer that is interrupted ended with $status"
echo "peers that are killed or interrupted hold nobody up"
