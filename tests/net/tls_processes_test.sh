#!/usr/bin/env bash
# Runs the example of docs/protocol.md with certificates: a server and two peers as processes, whose store equals that of the simulated run. Tests also
# the errors of wrong options, that no key is printed, and that a revoked peer is refused by a server that runs.
#
#   tests/net/tls_processes_test.sh BINARY SOURCE
set -euo pipefail
binary=$(realpath "$1") source=$(realpath "$2")
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"
ln -s "$source/scenarios" scenarios

fail() { echo "FAILED: $*"; exit 1; }
run() { eval "\"$binary\" ${1#fedbits } $2"; }
# refused WORDS COMMAND...: the command ends with an error that has these words.
refused() {
  local words=$1
  shift
  ! timeout 60 "$binary" "$@" >wrong.txt 2>&1 || fail "not refused: $*"
  grep -q -- "$words" wrong.txt || fail "no '$words' in: $(cat wrong.txt)"
}
# Waits for the line of a server that listens, and sets `port`.
find_port() {
  for _ in $(seq 200); do
    port=$(sed -nE 's/^listening at 127.0.0.1:([0-9]+)$/\1/p' serve.log)
    [ -z "$port" ] || return 0
    sleep 0.1
  done
  cat serve.log
  fail "the server does not listen"
}

# The four lines with the folder `certs`, on a port that is free, and with fewer rounds.
page=$source/docs/protocol.md
mapfile -t lines < <(sed -nE 's#^    (fedbits certs init certs .*|fedbits (serve|join) .* --certs certs.*)#\1#p' "$page")
[ ${#lines[@]} -eq 4 ] || fail "$page has ${#lines[@]} lines with certificates instead of four"
run "${lines[0]}" "" >init.log
[ "$(stat -c %a certs certs/*.key certs/*.pem | sort -u | tr '\n' ' ')" = "600 700 " ] || fail "the folder is not private: $(stat -c '%a %n' certs certs/*)"
: >serve.log
run "${lines[1]/127.0.0.1:7000/127.0.0.1:0}" "--set rounds=20" >serve.log 2>&1 &
server=$!
find_port

# Wrong ways in, before the right ones.
refused 'contradicts --certs' join "127.0.0.1:$port" --clients 0-9 --certs certs --insecure
refused 'names a certificate in the folder of --certs' join "127.0.0.1:$port" --clients 0-9 --identity clients-0-9 --insecure
refused 'fedbits certs init creates one' join "127.0.0.1:$port" --clients 0-9
refused '--certs protects connections' join "192.0.2.1:$port" --clients 0-9 --insecure
refused 'is for clients 0-9, not for 10-19' join "127.0.0.1:$port" --clients 10-19 --certs certs --identity clients-0-9
refused 'is for clients 5-15; it has clients-0-9, clients-10-19' join "127.0.0.1:$port" --clients 5-15 --certs certs
refused 'is no folder' serve scenarios/library/quickstart.toml --certs missing --out none
refused 'exists and is not overwritten' certs init certs --clients 20
refused 'says how many clients' certs init more
refused "there is no 'rename'" certs rename certs
"$binary" certs init others --clients 20 --per-peer 10 >/dev/null
refused 'its certificate is refused' join "127.0.0.1:$port" --clients 0-9 --certs others
refused "127.0.0.1:$port: the server speaks TLS: join it with --certs FOLDER" join "127.0.0.1:$port" --clients 0-9 --insecure --patience 0

run "${lines[2]/:7000/:$port}" "" >one.log 2>&1 &
one=$!
run "${lines[3]/:7000/:$port}" "" >two.log 2>&1 &
two=$!
wait $one || { cat one.log; fail "the first peer"; }
wait $two || { cat two.log; fail "the second peer"; }
wait $server || { cat serve.log; fail "the server"; }
grep -q 'refused 1 times: it speaks no TLS' serve.log || { cat serve.log; fail "plain bytes were not counted"; }

"$binary" run scenarios/library/quickstart.toml --set rounds=20 --set sweep.seeds=1 --out simulated -q
for store in served-tls simulated; do "$binary" export $store --reproducible --runs $store-runs.csv --rounds $store-rounds.csv >/dev/null; done
cmp served-tls-runs.csv simulated-runs.csv || fail "the runs differ"
cmp served-tls-rounds.csv simulated-rounds.csv || fail "the rounds differ"
echo "$(($(wc -l <served-tls-runs.csv) - 1)) runs over TLS are the simulated ones"

# A certificate is renewed, and the old one is revoked.
"$binary" certs list certs | grep -qE '^clients-0-9 .* (89|90) +valid ' || fail "no days left: $("$binary" certs list certs)"
refused 'belongs to `fedbits certs renew`' certs revoke certs clients-0-9 --revoke-old
refused 'there is no certificate clients-0-8' certs renew certs clients-0-8
cp certs/clients-0-9.pem old.pem
"$binary" certs renew certs clients-0-9 --days 30 --revoke-old >renew.log
grep -q 'clients-0-9 has a new key and a new certificate, valid until .*; the old certificate is revoked' renew.log || fail "$(cat renew.log)"
"$binary" certs list certs | grep -qE '^clients-0-9 .* (29|30) +valid ' || fail "not renewed: $("$binary" certs list certs)"
! cmp -s old.pem certs/clients-0-9.pem || fail "the certificate is the old one"

# A certificate is revoked while the server runs.
: >serve.log
"$binary" serve scenarios/library/quickstart.toml --listen 127.0.0.1:0 --certs certs --out revoked -v >serve.log 2>&1 &
server=$!
find_port
"$binary" certs revoke certs clients-10-19 >/dev/null
"$binary" certs list certs | grep -qE '^clients-10-19 .* revoked ' || fail "$("$binary" certs list certs)"
refused 'certificate revoked' join "127.0.0.1:$port" --clients 10-19 --certs certs
kill -INT $server
wait $server || true
grep -q 'its certificate is refused: certificate revoked' serve.log || { cat serve.log; fail "the refusal is not told"; }
echo "a revoked certificate is refused by a server that runs"

! grep -l 'PRIVATE KEY' ./*.log ./*.txt || fail "a key was printed"
