# Sourced by run.sh: one server with more and more organizations, then with more and
# more rules in one. Uses $tmp, $conns, $duration, $pids, wait_for and write_plans.

# scale_at LABEL WARMUP ARGS...: a run on every core, and the server's memory after it.
scale_at() {
  local label=$1 warmup=$2; shift 2
  "$tmp/load" -label "$label" -pid "$writ_pid" -url http://127.0.0.1:3880/v1/policy/evaluate -secret "$tmp/data/operator-secret" -conns "$conns" -honour -warmup "$warmup" -duration "$duration" "$@" >"$tmp/run"
  echo "$(head -1 "$tmp/run"), $(($(awk '/VmRSS/ { print $2 }' "/proc/$writ_pid/status") / 1024)) MiB resident;$(sed -n 's/ *200 from its sending://p' "$tmp/run")"
}

scale() {
  go build -o "$tmp" ./cmd/writ ./bench/load
  write_plans
  sed -i 's/"policies": 10/"policies": 10, "rules": 10000/' "$tmp/plans.json"
  "$tmp/writ" serve --addr 127.0.0.1:3880 --admin-addr 127.0.0.1:3881 --data "$tmp/data" --plans "$tmp/plans.json" --rate-limit-address off --rate-limit-changes off >"$tmp/writ.log" 2>&1 & pids+=($!)
  writ_pid=$!
  wait_for 127.0.0.1:3880
  echo "# server and driver share $(nproc) cores, $conns connections, closed loop, $duration a run after every organization has been asked; load average $(cut -d' ' -f1-3 /proc/loadavg)"
  for n in ${ORGS:-1 100 1000 10000 20000}; do scale_at "organizations=$n" $((3 + n / 250))s -orgs "$n"; done
  local operator
  for n in ${RULES_EACH:-100 1000}; do
    operator=$("$tmp/writ" token operator --org "rules-$n" --data "$tmp/data")
    scale_at "rules=$n" 3s -org "rules-$n" -operator "$operator" -rules "$n"
  done
}
