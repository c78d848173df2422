# Sourced by run.sh: what the server does at up to three times the load it can
# bear. Uses $tmp, $duration, $rounds, $rules, start_writ and load.

# field NAME FILE: the number after NAME= in the first line that has it.
field() { sed -n "s|.*[ ]$1=\([0-9.]*\).*|\1|p" "$2" | head -1; }

# offer LABEL ARGS...: one run; prints it with what it cost the server, and leaves
# goodput and goodput for each second of the server's processor time.
offer() {
  local label=$1 before after; shift
  before=$(ticks "$writ_pid")
  load -label "$label" -url http://127.0.0.1:3840/v1/policy/evaluate -org bench -operator "$operator" -rules "$rules" -rego "${REGO:-0}" -honour -warmup 0 "$@" >"$tmp/run"
  after=$(ticks "$writ_pid")
  cat "$tmp/run"
  goodput=$(field 200/s "$tmp/run")
  decided=$(field decided "$tmp/run")
  percpu=$(awk -v n="$decided" -v c=$((after - before)) 'BEGIN { printf "%.0f", n / (c / 100) }')
  echo "    server: $percpu decisions for each second of its processor time"
}

# find_peak: the greatest goodput of a closed loop over several numbers of
# connections.
find_peak() {
  peak=0
  for n in ${PEAK_CONNS:-64 128 256}; do
    offer "$1/closed" -conns "$n" -duration 4s
    if awk -v a="$goodput" -v b="$peak" 'BEGIN { exit !(a > b) }'; then peak=$goodput peak_conns=$n peak_percpu=$percpu; fi
  done
}

overload() {
  local clients=${CLIENTS:-1024} patience=${PATIENCE:-100ms}
  echo "# overload: server on core 0, driver on core 1, $duration a run, $rules rules and ${REGO:-0} with Rego; peak: closed loop, the best of ${PEAK_CONNS:-64 128 256} connections"
  echo "# open: arrivals on a schedule over $clients connections, Retry-After ignored; an arrival without a free connection for $patience is unsent"
  for i in $(seq "$rounds"); do
    echo "# round $i, load average $(cut -d' ' -f1-3 /proc/loadavg)"
    find_peak "$i"
    for x in 1 1.5 2 3; do
      offer "$i/${x}x" -conns "$clients" -duration "$duration" -patience "$patience" -rate "$(awk -v p="$peak" -v x=$x 'BEGIN { print p * x }')"
      summary "$i" "${x}x open"
    done
    offer "$i/3x-closed" -conns $((3 * peak_conns)) -duration "$duration"
    summary "$i" "3x conns honouring"
  done | tee "$tmp/out"
  echo "# load average $(cut -d' ' -f1-3 /proc/loadavg)"
  grep '^=' "$tmp/out"
}

summary() {
  awk -v r="$1" -v what="$2" -v g="$goodput" -v p="$peak" -v c="$percpu" -v pc="$peak_percpu" 'BEGIN {
    printf "= round %s %-18s goodput/peak %.1f %%; by the server'"'"'s processor time %.1f %%\n", r, what, 100 * g / p, 100 * c / pc }'
}
