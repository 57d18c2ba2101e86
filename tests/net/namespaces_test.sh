#!/usr/bin/env bash
# Plays a run over TLS between three network namespaces: a server and two peers, whose links have a limited bandwidth. One link is cut in
# the middle of the run and restored. The store equals that of the simulated run.
#
#   tests/net/namespaces_test.sh BINARY SOURCE
#
# Namespaces need root and iproute2. Without them the script says so, plays the run over the loopback interface, and ends with 77.
set -euo pipefail
binary=$(realpath "$1") source=$(realpath "$2")
work=$(mktemp -d)
spaces=("fb$$-server" "fb$$-one" "fb$$-two")
cleanup() {
  kill $(jobs -p) 2>/dev/null || true
  for space in "${spaces[@]}"; do ip netns del "$space" 2>/dev/null || true; done
  rm -rf "$work"
}
trap cleanup EXIT
cd "$work"
ln -s "$source/scenarios" scenarios

fail() { echo "FAILED: $*"; exit 1; }
# wait_for WORDS FILE: until the file has a line with these words, for 20 s at most.
wait_for() {
  for _ in $(seq 400); do ! grep -q -- "$1" "$2" || return 0; sleep 0.05; done
  cat "$2"
  fail "no '$1' in $2"
}
rounds_in() { grep -c '"event":"round"' "$1" || true; }

# link NAME SPACE NET: connects the server's namespace with another one, at 1 Mbit/s in both directions.
link() {
  ip -n "${spaces[0]}" link add "$1" type veth peer name far netns "$2" &&
    ip -n "${spaces[0]}" addr add "$3.1/24" dev "$1" && ip -n "$2" addr add "$3.2/24" dev far &&
    ip -n "${spaces[0]}" link set "$1" up && ip -n "$2" link set far up &&
    tc -n "${spaces[0]}" qdisc add dev "$1" root tbf rate 1mbit burst 1600b latency 400ms &&
    tc -n "$2" qdisc add dev far root tbf rate 1mbit burst 1600b latency 400ms
}
missing=""
lay_links() {
  command -v ip >/dev/null && command -v tc >/dev/null || { echo "no ip or tc (apt-get install iproute2)"; return 1; }
  [ "$(id -u)" = 0 ] || { echo "not root"; return 1; }
  for space in "${spaces[@]}"; do ip netns add "$space" || return 1; done
  link one "${spaces[1]}" 10.213.1 && link two "${spaces[2]}" 10.213.2
}
lay_links >links.log 2>&1 || missing=$(tail -n 1 links.log)
inside() { local space=$1; shift; if [ -n "$missing" ]; then "$@"; else ip netns exec "$space" "$@"; fi; }
listen=0.0.0.0 to_one=10.213.1.1 to_two=10.213.2.1
[ -z "$missing" ] || listen=127.0.0.1 to_one=127.0.0.1 to_two=127.0.0.1

study=(scenarios/library/quickstart.toml --set sweep.seeds=1 --set 'sweep.axis=[]' --set rounds=60 --set compressor.up.kind=identity)
"$binary" certs init certs --clients 20 --per-peer 10 --server "$to_one,$to_two" >/dev/null
: >serve.log
inside "${spaces[0]}" "$binary" serve "${study[@]}" --listen "$listen:0" --certs certs --out served >serve.log 2>&1 &
server=$!
wait_for '^listening at ' serve.log
port=$(sed -nE 's/^listening at .*:([0-9]+)$/\1/p' serve.log)
inside "${spaces[1]}" "$binary" join "$to_one:$port" --clients 0-9 --certs certs --log json -v >one.log 2>&1 &
one=$!
inside "${spaces[2]}" "$binary" join "$to_two:$port" --clients 10-19 --certs certs --log json -v >two.log 2>&1 &
two=$!

if [ -z "$missing" ]; then
  wait_for '"round":20[,}]' one.log
  ip -n "${spaces[1]}" link set far down
  sleep 0.5  # what was under way arrives
  before=$(rounds_in two.log)
  sleep 1
  [ "$(rounds_in two.log)" -eq "$before" ] || fail "rounds close although a link is cut: $before, then $(rounds_in two.log)"
  [ "$before" -lt 60 ] || fail "the run was over before the link was cut"
  ip -n "${spaces[1]}" link set far up
fi
wait $one || { cat one.log; fail "the first peer"; }
wait $two || { cat two.log; fail "the second peer"; }
wait $server || { cat serve.log; fail "the server"; }
[ "$(rounds_in one.log)" -eq 60 ] || fail "the first peer closed $(rounds_in one.log) rounds"

"$binary" run "${study[@]}" --out simulated -q
for store in served simulated; do "$binary" export $store --reproducible --runs $store-runs.csv --rounds $store-rounds.csv >/dev/null; done
cmp served-runs.csv simulated-runs.csv || fail "the runs differ"
cmp served-rounds.csv simulated-rounds.csv || fail "the rounds differ"
[ "$(wc -l <served-rounds.csv)" -eq 62 ] || fail "not rounds 0 to 60 in the export"

if [ -n "$missing" ]; then
  echo "TOOL MISSING: no network namespaces ($missing): the run was played over the loopback interface, and no link was cut"
  exit 77
fi
# What each end has sent through its limit, as the kernel counts it, is more than what the ledger counts, and the limit has held bytes back.
for end in "${spaces[0]} one" "${spaces[1]} far" "${spaces[0]} two" "${spaces[2]} far"; do
  tc -n "${end% *}" -s qdisc show dev "${end#* }" >qdisc.txt
  sent=$(sed -nE 's/^ Sent ([0-9]+) bytes.*/\1/p' qdisc.txt)
  over=$(sed -nE 's/.*overlimits ([0-9]+).*/\1/p' qdisc.txt)
  [ "$sent" -gt 20000 ] && [ "$over" -gt 0 ] || { cat qdisc.txt; fail "the bandwidth of $end is not limited"; }
done
echo "a run over two links of 1 Mbit/s, one of which was cut after round 20 of 60 and restored, is the simulated one"
