#!/usr/bin/env bash
# Kills the server and peers of runs at random moments (SIGKILL), starts them again with --resume and --state, and compares the store with
# that of the simulated run. Tests also what happens when a peer's disk is full, and folders of state that cannot be used.
#
#   tests/net/crash_test.sh BINARY SOURCE [KILLS] [ROUNDS] [SEED]
set -euo pipefail
binary=$(realpath "$1") source=$(realpath "$2") kills=${3:-3} rounds=${4:-300} seed=${5:-$RANDOM}
work=$(mktemp -d)
trap 'kill -9 $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"
RANDOM=$seed
echo "seed $seed"

fail() { echo "FAILED (seed $seed): $*"; exit 1; }

cat >study.toml <<END
name = "crashes"
rounds = $rounds
[data]
name = "mushrooms"
rows = 200
[partition]
kind = "shuffled"
clients = 8
[model]
kind = "logistic_regression"
l2 = 0.01
[evaluate]
every = 50
[local]
kind = "scaffold"
batch = 3
steps = 2
learning_rate = 0.05
[participation]
kind = "uniform"
clients = 4
[feedback.up]
kind = "scaffold"
[compressor.up]
kind = "identity"
[compressor.down]
kind = "identity"
END
sed -e 's/kind = "scaffold"\(.*\)/kind = "sgd"\1/' -e '/feedback.up/,$d' study.toml >ef.toml
cat >>ef.toml <<END
[feedback.up]
kind = "ef14"
[compressor.up]
kind = "top_k"
k = 5
[compressor.down]
kind = "top_k"
k = 12
END

port=0
declare -A peers
start_server() {  # SCENARIO OUT [OPTION...]
  touch "$2.server.log"
  "$binary" serve "$1" --out "$2" --listen "127.0.0.1:$port" --insecure --patience 60 "${@:3}" >>"$2.server.log" 2>&1 &
  server=$!
  for _ in $(seq 100); do
    found=$(sed -nE 's/^listening at 127.0.0.1:([0-9]+)$/\1/p' "$2.server.log" | tail -1)
    [ -z "$found" ] || break
    sleep 0.05
  done
  [ -n "$found" ] || { cat "$2.server.log"; fail "the server does not listen"; }
  port=$found
}
start_peer() {  # IDS OUT
  "$binary" join "127.0.0.1:$port" --clients "$1" --insecure --state "$2.state-$1" --patience 60 >>"$2.peer-$1.log" 2>&1 &
  peers[$1]=$!
}
compare() {  # SCENARIO OUT
  "$binary" run "$1" --out "$2-simulated" -q
  for store in "$2" "$2-simulated"; do "$binary" export "$store" --reproducible --runs "$store-runs.csv" --rounds "$store-rounds.csv" >/dev/null; done
  cmp "$2-runs.csv" "$2-simulated-runs.csv" || fail "the runs differ"
  cmp "$2-rounds.csv" "$2-simulated-rounds.csv" || fail "the rounds differ"
}

# Says whether a peer found no server when it came back. The server has ended well before this is asked: the run was over, and all that is
# missing is the server's goodbye.
came_too_late() {  # IDS OUT
  tail -n 1 "$2.peer-$1.log" | grep -q 'cannot reach .*Connection refused'
}

# Kills processes of one run again and again, and lets it end. `whom`: server, peers, both.
play() {  # SCENARIO OUT WHOM
  local scenario=$1 out=$2 whom=$3 killed=0 status=0
  start_server "$scenario" "$out" --checkpoint-rounds 7
  for ids in 0-2 3,5 4,6-7; do start_peer $ids "$out"; done
  while [ $killed -lt "$kills" ] && kill -0 $server 2>/dev/null; do
    sleep "0.$((RANDOM % 9))$((RANDOM % 10))"
    kill -0 $server 2>/dev/null || break
    killed=$((killed + 1))
    if [ $whom != peers ]; then
      kill -9 $server
      wait $server 2>/dev/null || true
    fi
    if [ $whom != server ]; then
      for ids in 0-2 3,5 4,6-7; do
        [ $((RANDOM % 2)) = 0 ] || continue
        kill -9 ${peers[$ids]} 2>/dev/null || true
        wait ${peers[$ids]} 2>/dev/null || true
        start_peer $ids "$out"
      done
    fi
    [ $whom = peers ] || start_server "$scenario" "$out" --checkpoint-rounds 7 --resume
  done
  wait $server || status=$?
  [ $status -eq 0 ] || { tail -n 5 "$out".*.log; fail "$out: the server ended with $status"; }
  for ids in 0-2 3,5 4,6-7; do
    wait ${peers[$ids]} || { [ $killed -gt 0 ] && came_too_late $ids "$out" && continue; } || { tail -n 5 "$out".*.log; fail "$out: the peer of clients $ids ended with an error"; }
    [ ! -e "$out.state-$ids" ] || [ -z "$(ls "$out.state-$ids")" ] || fail "$out: state is left: $(ls "$out.state-$ids")"
  done
  compare "$scenario" "$out"
  echo "$out: $killed times killed ($whom), and the bytes are those of the simulated run"
  port=0
}

play study.toml scaffold-server server
play ef.toml ef-peers peers
play ef.toml ef-both both

# A peer whose disk is full ends with an error that says so. Its clients are absent from then on, and the run goes on.
start_server ef.toml full --deadline 1 --min-clients 5 --set rounds=300
start_peer 0-2 full
start_peer 3,5 full
(trap '' XFSZ; ulimit -f 64; exec "$binary" join "127.0.0.1:$port" --clients 4,6-7 --insecure --state full.state >full.log 2>&1) &
full=$!
status=0
wait $full || status=$?
[ $status -eq 2 ] || { cat full.log; fail "a peer without room ended with $status"; }
grep -q 'cannot keep the state of clients 4,6-7 in .*File too large; free some space' full.log || { cat full.log; fail "no word of the disk"; }
wait $server || { cat full.server.log; fail "the server of a peer without room"; }
echo "a full disk is an error of its peer, and its clients are absent"

# Folders of state: one process at a time, and one set of clients.
port=0
start_server ef.toml folders --set rounds=1000000
start_peer 0-2 folders
sleep 1
! "$binary" join "127.0.0.1:$port" --clients 0-2 --insecure --state folders.state-0-2 2>wrong.txt || fail "two processes in one folder"
grep -q 'is writing to folders.state-0-2' wrong.txt || fail "$(cat wrong.txt)"
start_peer 3-7 folders
sleep 1
kill -9 ${peers[0-2]} ${peers[3-7]}
! "$binary" join "127.0.0.1:$port" --clients 0-2 --insecure --state folders.state-3-7 2>wrong.txt || fail "a folder of other clients"
grep -q 'it is of clients 3-7, and this peer hosts 0-2' wrong.txt || fail "$(cat wrong.txt)"
! "$binary" join "127.0.0.1:$port" --clients 0-2 --insecure --state empty 2>wrong.txt || fail "a folder without state"
grep -q 'empty has the clients. state of round 0' wrong.txt || fail "$(cat wrong.txt)"
echo "folders of other clients, of another process and without state are refused"

# A server that stops says so, and peers keep their state; a server that is killed is waited for.
start_peer 0-2 folders
start_peer 3-7 folders
sleep 0.5
kill -TERM $server
status=0
wait $server || status=$?
[ $status -eq 143 ] || fail "a server that is stopped ended with $status"
status=0
wait ${peers[0-2]} || status=$?
[ $status -eq 1 ] || fail "the peer of a server that is stopped ended with $status"
grep -q 'it is stopped; `fedbits serve --resume`' folders.peer-0-2.log || { cat folders.peer-0-2.log; fail "no word of the server's end"; }
[ -n "$(ls folders.state-0-2/*.rounds)" ] || fail "the state is gone"
status=0
"$binary" join "127.0.0.1:$port" --clients 0-2 --insecure --patience 1 2>wrong.txt || status=$?
[ $status -eq 1 ] || fail "a peer without a server ended with $status"
grep -q "cannot reach 127.0.0.1:$port" wrong.txt || fail "$(cat wrong.txt)"
"$binary" join "127.0.0.1:$port" --clients 0-2 --insecure --patience 60 2>/dev/null &
peer=$!
sleep 0.3
kill -TERM $peer
status=0
wait $peer || status=$?
[ $status -eq 143 ] || fail "a peer that is stopped ended with $status"
echo "servers and peers end as they are asked to"
