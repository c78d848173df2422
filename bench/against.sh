# Sourced by run.sh: the evaluate request of this tree beside that of an earlier
# revision, $BASE, interleaved.

# serve_on PORT BINARY DATA: a server on core 0, its process id in $served.
serve_on() {
  taskset -c 0 "$2" serve --addr "127.0.0.1:$1" --admin-addr "127.0.0.1:$(($1 + 1))" --data "$3" --plans "$tmp/plans.json" >"$3.log" 2>&1 & pids+=($!)
  served=$!
  wait_for "127.0.0.1:$1"
}

against() {
  mkdir "$tmp/base"
  git archive "$BASE" | tar -x -C "$tmp/base"
  (cd "$tmp/base" && go build -o "$tmp/writ-base" ./cmd/writ)
  go build -o "$tmp" ./cmd/writ ./bench/load
  write_plans
  serve_on 3850 "$tmp/writ-base" "$tmp/base-data"; base_pid=$served
  serve_on 3860 "$tmp/writ" "$tmp/data"; this_pid=$served
  # one NAME PORT PID BINARY DATA: a run, with the processor time of a request.
  one() {
    local operator
    operator=$("$4" token operator --org bench --data "$5")
    load -label "$1" -pid "$3" -url "http://127.0.0.1:$2/v1/policy/evaluate" -org bench -operator "$operator" -rules "$rules" | tee -a "$tmp/out"
  }
  echo "# $(git rev-parse --short "$BASE") (base) beside this tree, each alone in turn on core 0, driver on core 1, $conns connections, closed loop, $duration a run after 1s of warming up, $rules rules; load average $(cut -d' ' -f1-3 /proc/loadavg)"
  for i in $(seq "$rounds"); do
    one "base/$i" 3850 "$base_pid" "$tmp/writ-base" "$tmp/base-data"
    one "this/$i" 3860 "$this_pid" "$tmp/writ" "$tmp/data"
    one "base-again/$i" 3850 "$base_pid" "$tmp/writ-base" "$tmp/base-data"
    one "this-again/$i" 3860 "$this_pid" "$tmp/writ" "$tmp/data"
  done
  awk "$(<bench/median.awk)"'
    match($0, /requests\/s=[0-9]+/) {
      v = substr($0, RSTART + 11, RLENGTH - 11) + 0; split($1, l, "/")
      match($0, /processor=[0-9.]+/); cpu = substr($0, RSTART + 10, RLENGTH - 10) + 0 # in microseconds
      if (l[1] ~ /^base/) { b[++nb] = v; cb[nb] = cpu } else { t[++nt] = v; ct[nt] = cpu }
      if (l[1] == "base") b1[++nb1] = v; if (l[1] == "base-again") b2[++nb2] = v
      if (!(l[1] in least) || cpu < least[l[1]]) least[l[1]] = cpu }
    END { mb = median(b, nb); mt = median(t, nt)
      printf "median requests/s: base %.0f, this %.0f; this/base = %.1f %%; A/A (base-again/base) = %.1f %%\n", mb, mt, 100 * mt / mb, 100 * median(b2, nb2) / median(b1, nb1)
      printf "median processor time a request: this/base = %.1f %%\n", 100 * median(ct, nt) / median(cb, nb)
      # What a host gives to others is in a request, too: the least of the rounds has least of it.
      printf "least processor time a request: base %.1f us, this %.1f us; this/base = %.1f %%; A/A = %.1f %%\n", least["base"], least["this"],
        100 * (least["this"] + least["this-again"]) / (least["base"] + least["base-again"]), 100 * least["base-again"] / least["base"] }' "$tmp/out"
}
