# Sourced by run.sh: what one organization can do to another. Uses $tmp, pids
# and wait_for. The server has every core: so do the attacks.

hostile() {
  go build -o "$tmp" ./cmd/writ ./bench/hostile
  cat > "$tmp/plans.json" <<'E2'
{"free": {"name": "free", "evaluations": 1000000000, "agents": 5, "policies": 100, "rules": 1000, "tokens": 1000, "retention_days": 7, "csv_export": true}}
E2
  "$tmp/writ" serve --addr 127.0.0.1:3870 --admin-addr 127.0.0.1:3871 --data "$tmp/data" --plans "$tmp/plans.json" >"$tmp/writ.log" 2>&1 & pids+=($!)
  local server=$!
  wait_for 127.0.0.1:3870
  echo "# hostile: server and driver share $(nproc) cores; ${CONNS:-16} connections an attack, ${DURATION:-4s} each; load average $(cut -d' ' -f1-3 /proc/loadavg)"
  "$tmp/hostile" -url http://127.0.0.1:3870 -writ "$tmp/writ" -data "$tmp/data" -pid "$server" \
    -conns "${CONNS:-16}" -duration "${DURATION:-4s}" -alone "${ALONE:-3s}" -rounds "${ROUNDS:-3}" -rate "${RATE:-200}" -only "${ONLY:-}" || { tail -5 "$tmp/writ.log"; exit 1; }
  echo "# load average $(cut -d' ' -f1-3 /proc/loadavg)"
}
