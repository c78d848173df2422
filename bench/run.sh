#!/usr/bin/env bash
# Runs benchmarks and prints their raw output: writ bench with the work and the loads
# of each figure. See bench/README.md. Usage:
# bench/run.sh [all|go|http|batch|intents|history|crowd|cold|queued|growth|scale|overload|hostile|replicas|streams|sessions|counts|backup|console|sinks|envoy|tls|guard]
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-all}
out=${OUT:-$(mktemp -d)}
tmp=$(mktemp -d)
pids=()
cleanup() { for p in "${pids[@]}"; do kill "$p" 2>/dev/null || true; done; wait 2>/dev/null || true; rm -rf "$tmp"; }
trap cleanup EXIT

echo "# bench/run.sh $what, $(date -u +%Y-%m-%d), revision $(git rev-parse --short HEAD 2>/dev/null || echo none)$(git diff --quiet 2>/dev/null || echo '+changes')"
echo "# $(go version), $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2 | xargs), $(nproc) cores, $(uname -sr); load average $(cut -d' ' -f1-3 /proc/loadavg)"

# measure NAME FLAGS...: raw data and report are $out/NAME.jsonl and .html.
measure() {
  local name=$1; shift
  echo "# writ bench $*"
  "$tmp/writ" bench --rounds "${ROUNDS:-5}" --duration "${DURATION:-5s}" --out "$out/$name" "$@"
}

# wait_for ADDRESS: until something listens there.
wait_for() {
  for _ in $(seq 200); do (exec 3<>"/dev/tcp/${1%:*}/${1#*:}") 2>/dev/null && return; sleep 0.05; done
  echo "nothing listens on $1" >&2; exit 1
}

[[ $what == go ]] || go build -o "$tmp/writ" ./cmd/writ
if [[ $what == go || $what == all ]]; then
  echo "# go test -run '^$' -bench . -benchmem -count ${COUNT:-3}"
  go test -run '^$' -bench . -benchmem -count "${COUNT:-3}" ./engine ./rego ./storage/receipt ./storage/ledger ./storage/embedded ./api
fi
case $what in
http | all) measure http --peer floor --peer opa --peer cerbos ;;
batch) measure batch --send "batch=${BATCH:-64}" --load closed --peer floor ;;
intents) # a stream of intents beside batches of the same size
  measure intents --send "stream=${WINDOW:-64}" --conns "${CONNS:-1}" --rules 20 --max-other "${MAX_OTHER:-0.1}" \
    --vary "batch=${BATCH:-64}"
  ;;
history) measure history --vary "history=${ROWS:-2000000}" ;;
crowd) measure crowd --vary orgs=1000 ;;
cold) measure cold --load closed --policies 100 --vary orgs=1000 ;; # 100,000 policies, beside 100
queued) measure queued --vary=--audit-ack=queued ;;
growth) "$tmp/writ" bench growth --orgs "${ORGS:-100000}" --step "${STEP:-10000}" ;;
scale) measure scale --load closed --pin off --vary orgs=100 --vary orgs=1000 --vary orgs=10000 --vary rules=100 --vary rules=1000 ;;
overload)
  measure overload --load "closed,${RATES:-70%,80%,90%,100%,150%,200%,300%}" --conns "${PEAK_CONNS:-256}" \
    --open-conns "${CLIENTS:-1024}" --patience "${PATIENCE:-100ms}" --rego "${REGO:-0}"
  ;;
replicas)
  go test ./bench -run '^TestReplicas$' -count 1 -v -timeout 0 -args -replicas "$tmp/writ" -rounds "${ROUNDS:-5}" -duration "${DURATION:-5s}" \
    -conns "${CONNS:-256}"
  ;;
streams)
  go test ./bench -run '^TestStreams$' -count 1 -v -timeout 0 -args -streams "$tmp/writ" -stream-rounds "${ROUNDS:-5}" \
    -stream-duration "${DURATION:-5s}" -stream-conns "${CONNS:-64}"
  ;;
sessions)
  go test ./bench -run '^TestSessions$' -count 1 -v -timeout 0 -args -sessions "$tmp/writ" -session-rounds "${ROUNDS:-3}" \
    -session-count "${COUNT:-150}" -session-clients "${CLIENTS:-6}" -session-members "${MEMBERS:-3}"
  ;;
backup)
  WRIT_BENCH_ROWS="${ROWS:-10000000}" WRIT_BENCH_BACKUPS="${BACKUPS:-}" go test -vet=off -run '^$' -bench BenchmarkBackup \
    -benchtime 1x -timeout 0 ./storage/backup
  ;;
counts) WRIT_BENCH_ROWS="${ROWS:-2000000}" go test -vet=off -run '^$' -bench BenchmarkCounts -benchtime 200x ./api ;;
console)
  WRIT_BENCH_ROWS="${ROWS:-2000000}" go test -vet=off -run '^$' -bench 'BenchmarkConsole$' -benchtime 50x ./api
  WRIT_BENCH_ROWS="${ROWS:-1000000}" go test -vet=off -run '^$' -bench BenchmarkConsole_Beside -benchtime 2000x ./api
  ;;
sinks) go test -vet=off -run '^$' -bench BenchmarkFile -benchtime "${ROWS:-1000000}x" ./storage/decisionlog ;;
envoy) # what Envoy and writ add to a request
  go test ./internal/system -run '^TestEnvoy_Added$' -count 1 -v -timeout 0 -args -envoy-requests "${REQUESTS:-10000}"
  ;;
tls) # processor time a request over https beside http
  go test -vet=off ./bench -run '^TestTLS$' -count 1 -v -timeout 0 -args -tls "$tmp/writ" -tls-rounds "${ROUNDS:-10}"
  ;;
hostile)
  "$tmp/writ" bench hostile --conns "${CONNS:-16}" --duration "${DURATION:-4s}" --alone "${ALONE:-3s}" --rounds "${ROUNDS:-3}" \
    --rate "${RATE:-200}" ${ONLY:+--only "$ONLY"}
  ;;
guard) # what bench guard says of equal builds, and of one that burns 4 µs more a request
  cp "$tmp/writ" "$tmp/equal"
  mkdir "$tmp/tree" && git archive HEAD | tar -x -C "$tmp/tree"
  sed -i 's|^func (s \*Server) evaluate(r.*|&\n\tfor began := time.Now(); time.Since(began) < 4*time.Microsecond; {\n\t}|; s|^import (|&\n\t"time"|' "$tmp/tree/api/evaluate.go"
  go -C "$tmp/tree" build -o "$tmp/slow" ./cmd/writ
  for i in $(seq "${TIMES:-10}"); do
    for which in equal slow; do
      echo "# $which $i"
      "$tmp/writ" bench guard "$tmp/writ" "$tmp/$which" ${GUARD:-} --out "$out/guard-$which-$i.jsonl" | tail -2 || true
    done
  done
  ;;
go) ;;
*) echo "bench/run.sh: there is no $what" >&2; exit 2 ;;
esac
echo "# raw data and reports: $out"
