# Sums up the runs of overload.sh: medians over the rounds, and goodput beside
# the peak of the same round's closed loop and of the open loop's curve.

# number returns what stands after name= in the line, in ms where it is a time.
function number(name,   v) {
  if (!match($0, "[ ]" name "=[0-9.]+(µs|ms|s)?")) return 0
  v = substr($0, RSTART + length(name) + 2, RLENGTH - length(name) - 2)
  return v ~ /µs$/ ? v / 1000 : v ~ /[0-9]s$/ ? v * 1000 : v + 0
}
# column copies the rounds of what in a into c.
function column(a, what,   r) { for (r = 1; r <= rounds; r++) c[r] = a[r, what]; return rounds }

/^[1-9][0-9]*\// {
  split($1, l, "/"); round = l[1] + 0; run = l[2]
  if (round > rounds) rounds = round
  if (!(run in seen)) { seen[run]; order[++runs] = run }
  good[round, run] = number("200/s"); refused[round, run] = number("503/s"); unsent[round, run] = number("unsent/s")
}
/^    200 from its sending/ && round { p99[round, run] = number("p99") }
/^    503 from its sending/ && round { at_once[round, run] = number("p50") }

END {
  for (i = 1; i <= runs; i++) {
    run = order[i]
    if (run ~ /^open/) { m = median(c, column(good, run)); if (m > best) { best = m; peak = run } }
  }
  printf "= medians of %d rounds; the open loop peaks at %s\n", rounds, peak
  printf "= %-14s %9s %9s %9s %14s %14s %16s %16s\n", "run", "200/s", "503/s", "unsent/s", "200 p99 (ms)", "503 p50 (ms)", "of open's peak", "of closed's peak"
  for (i = 1; i <= runs; i++) {
    run = order[i]
    for (r = 1; r <= rounds; r++) { of_open[r, run] = 100 * good[r, run] / good[r, peak]; of_closed[r, run] = 100 * good[r, run] / good[r, "closed"] }
    printf "= %-14s %9.0f", run, median(c, column(good, run))
    printf " %9.0f", median(c, column(refused, run))
    printf " %9.0f", median(c, column(unsent, run))
    printf " %14.1f", median(c, column(p99, run))
    printf " %14.1f", median(c, column(at_once, run))
    printf " %14.1f %%", median(c, column(of_open, run))
    printf " %14.1f %%\n", median(c, column(of_closed, run))
  }
}
