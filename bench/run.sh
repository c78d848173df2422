#!/usr/bin/env bash
# Runs benchmarks beside the floors of the same machine and prints the raw
# output. See bench/README.md. Usage: bench/run.sh [all|go|http|batch|overload|hostile|scale|replicas|against],
# where all, the default, is go and http.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-all}
rounds=${ROUNDS:-5}
duration=${DURATION:-5s}
conns=${CONNS:-64}
rules=${RULES:-0}
tmp=$(mktemp -d)
pids=()
cleanup() { for p in "${pids[@]}"; do kill "$p" 2>/dev/null || true; done; wait 2>/dev/null || true; rm -rf "$tmp"; }
trap cleanup EXIT

echo "# bench/run.sh $what, $(date -u +%Y-%m-%d), revision $(git rev-parse --short HEAD 2>/dev/null || echo none)$(git diff --quiet 2>/dev/null || echo '+changes')"
echo "# $(go version), $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2 | xargs), $(nproc) cores, $(uname -sr)"

if [[ $what == go || $what == all ]]; then
  echo "# go test -run '^$' -bench . -benchmem -count ${COUNT:-3}"
  go test -run '^$' -bench . -benchmem -count "${COUNT:-3}" \
    ./engine ./rego ./ledger/receipt ./ledger ./storage/embedded ./api
fi

# wait_for ADDRESS: until something listens there.
wait_for() {
  for _ in $(seq 200); do (exec 3<>"/dev/tcp/${1%:*}/${1#*:}") 2>/dev/null && return; sleep 0.05; done
  echo "nothing listens on $1" >&2; exit 1
}

if [[ $what == replicas ]]; then
  go build -o "$tmp" ./cmd/writ ./bench/load ./bench/replicas
  echo "# everything shares $(nproc) cores; load average $(cut -d' ' -f1-3 /proc/loadavg)"
  "$tmp/replicas" -writ "$tmp/writ" -driver "$tmp/load" -rounds "$rounds" -duration "$duration" -conns "${CONNS:-256}"
  exit
fi

if [[ $what == hostile ]]; then
  . bench/hostile.sh
  hostile
  exit
fi

if [[ $what != go ]] && { [[ $(nproc) -lt 2 ]] || ! command -v taskset >/dev/null; }; then
  echo "SKIPPED what runs over HTTP: it pins server and driver to two cores with taskset"; exit 0
fi

# write_plans: a plan that no run uses up.
write_plans() {
  cat > "$tmp/plans.json" <<'E2'
{"free": {"name": "free", "evaluations": 1000000000, "agents": 5, "policies": 10, "retention_days": 7, "csv_export": false}}
E2
}

# start_writ: the server on core 0, and $operator, its operator's token.
start_writ() {
  go build -o "$tmp" ./cmd/writ ./bench/load ./bench/floor
  write_plans
  taskset -c 0 "$tmp/writ" serve --addr 127.0.0.1:3840 --admin-addr 127.0.0.1:3841 --data "$tmp/data" --plans "$tmp/plans.json" >"$tmp/writ.log" 2>&1 & pids+=($!)
  writ_pid=$!
  wait_for 127.0.0.1:3840
  operator=$("$tmp/writ" token operator --org bench --data "$tmp/data")
}
load() { taskset -c 1 "$tmp/load" -conns "$conns" -duration "$duration" -warmup 1s "$@"; }

if [[ $what == http || $what == all ]]; then
  start_writ
  writ() { load -label "$1" -url http://127.0.0.1:3840/v1/policy/evaluate -org bench -operator "$operator" -rules "$rules"; }
  # The floor answers with as many bytes as writ does.
  size=$(writ sizing | tee "$tmp/sizing" | sed -n 's/.*response=\([0-9]*\)B.*/\1/p')
  taskset -c 0 "$tmp/floor" -addr 127.0.0.1:3842 -size "$size" >"$tmp/floor.log" 2>&1 & pids+=($!)
  wait_for 127.0.0.1:3842
  floor() { load -label "$1" -url http://127.0.0.1:3842/; }
  echo "# closed loop, $conns connections, server on core 0, driver on core 1, $duration a run, interleaved; $rules rules; answer of $size bytes"
  echo "# writ: API key, strict decode, evaluate, batch signature, durable embedded commit; floor: bare Fiber, constant answer, same request body"
  for i in $(seq "$rounds"); do
    floor "floor/$i" | tee -a "$tmp/out"
    writ "writ/$i" | tee -a "$tmp/out"
    floor "floor-again/$i" | tee -a "$tmp/out"
  done
  # Medians of the rounds, their ratio, and the ratio of the two floors as noise.
  awk "$(<bench/median.awk)"'
    match($0, /requests\/s=[0-9]+/) { v = substr($0, RSTART + 11, RLENGTH - 11); split($1, l, "/"); if (l[1] == "writ") w[++nw] = v + 0; else if (l[1] == "floor") f[++nf] = v + 0; else g[++ng] = v + 0 }
    END { mw = median(w, nw); mf = median(f, nf); mg = median(g, ng)
      printf "median requests/s: writ %.0f, floor %.0f; writ/floor = %.1f %%; A/A (floor-again/floor) = %.1f %%\n", mw, mf, 100 * mw / mf, 100 * mg / mf }' "$tmp/out"
  curl -s http://127.0.0.1:3841/metrics 2>/dev/null | grep -E '^writ_ledger.*(_count|_sum)' || true
fi

if [[ $what == batch ]]; then
  start_writ
  echo "# batches of ${BATCH:-64}, $conns connections, server on core 0, driver on core 1, $duration a run; load average $(cut -d' ' -f1-3 /proc/loadavg)"
  for i in $(seq "$rounds"); do
    load -label "batch/$i" -batch "${BATCH:-64}" -url http://127.0.0.1:3840/v1/policy/evaluate/batch -org bench -operator "$operator" -rules "$rules"
    load -label "one/$i" -url http://127.0.0.1:3840/v1/policy/evaluate -org bench -operator "$operator" -rules "$rules"
  done
fi

if [[ $what == overload ]]; then
  . bench/overload.sh
  start_writ
  overload
fi

if [[ $what == scale ]]; then
  . bench/scale.sh
  scale
fi

if [[ $what == against ]]; then
  : "${BASE:?say which revision: BASE=REV bench/run.sh against}"
  . bench/against.sh
  against
fi
