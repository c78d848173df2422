# Sourced by run.sh: what the server does at up to three times the load it can
# bear. Uses $tmp, $duration, $rounds, $rules, start_writ and load.

# field NAME FILE: the number after NAME= in the first line that has it.
field() { sed -n "s|.*[ ]$1=\([0-9.]*\).*|\1|p" "$2" | head -1; }

# offer LABEL ARGS...: one run; prints it with what it cost the server, and leaves
# its goodput.
offer() {
  local label=$1; shift
  load -label "$label" -url http://127.0.0.1:3840/v1/policy/evaluate -org bench -operator "$operator" -rules "$rules" -rego "${REGO:-0}" -honour -warmup 0 -pid "$writ_pid" "$@" >"$tmp/run"
  cat "$tmp/run"
  goodput=$(field 200/s "$tmp/run")
}

# find_capacity: the greatest goodput of a closed loop over several numbers of
# connections, which is what the rates of the open loop are multiples of.
find_capacity() {
  capacity=0
  for n in ${PEAK_CONNS:-64 128 256}; do
    offer "0/closed-$n" -conns "$n" -duration 4s
    if awk -v a="$goodput" -v b="$capacity" 'BEGIN { exit !(a > b) }'; then capacity=$goodput capacity_conns=$n; fi
  done
}

overload() {
  local clients=${CLIENTS:-1024} patience=${PATIENCE:-100ms} x
  echo "# overload: server on core 0, driver on core 1, $duration a run, $rules rules and ${REGO:-0} with Rego; load average $(cut -d' ' -f1-3 /proc/loadavg)"
  {
    find_capacity
    echo "# capacity: $capacity decisions/s, closed loop of $capacity_conns connections; rates are multiples of it"
    echo "# open: arrivals on a schedule over $clients connections, Retry-After ignored; an arrival without a free connection for $patience is unsent"
    for i in $(seq "$rounds"); do
      offer "$i/closed" -conns "$capacity_conns" -duration "$duration"
      for x in ${RATES:-0.7 0.8 0.9 1 1.5 2 3}; do
        offer "$i/open-${x}x" -conns "$clients" -duration "$duration" -patience "$patience" -rate "$(awk -v c="$capacity" -v x="$x" 'BEGIN { print c * x }')"
      done
      offer "$i/honouring-3x" -conns $((3 * capacity_conns)) -duration "$duration"
    done
  } | tee "$tmp/out"
  echo "# load average $(cut -d' ' -f1-3 /proc/loadavg)"
  awk -f bench/median.awk -f bench/overload.awk "$tmp/out"
}
