// Package bench measures a writ server, and other servers if they are given. `writ bench` and
// `make bench-guard` use it.
//
// A round measures every subject in turn under every load. Then it measures the first subject
// once more. The difference between the two measurements of the first subject is the noise of
// the machine (A/A). If others used the machine during a round, the round is dropped, counted
// and repeated. The raw data are lines of JSON: see [Header] and [Run]. Summary and report use
// only the raw data.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"writ.example/writ/bench/load"
	"writ.example/writ/bench/proc"
)

// Load says how requests arrive: in a closed loop, at a rate, or at a share of a rate. The
// share refers to the rate of the closed loop with the same subject in the same round.
type Load struct {
	Rate  float64 // intents per second
	Share float64 // 0.5 is half of the rate of the closed loop
	// Ramp makes a stage of the load: within this time the rate goes evenly from From to Rate.
	Ramp time.Duration
	From float64
}

// ParseLoad parses a load. It is "closed", a share such as "50%", a rate in intents a second
// such as "2000", or a stage such as "30s:0-2000", which goes from one rate to another.
func ParseLoad(text string) (Load, error) {
	if text == "closed" {
		return Load{}, nil
	}
	if before, after, ok := strings.Cut(text, ":"); ok {
		return parseStage(text, before, after)
	}
	number, percent := strings.CutSuffix(text, "%")
	n, err := parseRate(number)
	if err != nil || n == 0 {
		return Load{}, fmt.Errorf("load %q: want closed, a share of its rate such as 50%%, intents a second such as "+
			"2000, or a stage such as 30s:2000", text)
	}
	if percent {
		return Load{Share: n / 100}, nil
	}
	return Load{Rate: n}, nil
}

// ParseLoads parses loads. A stage without a first rate, such as "30s:2000", begins at the last rate of the load
// before it, or at 0.
func ParseLoads(texts []string) (all []Load, err error) {
	last := 0.0
	for _, text := range texts {
		if lasts, to, ok := strings.Cut(text, ":"); ok && !strings.Contains(to, "-") {
			text = fmt.Sprintf("%s:%s-%s", lasts, strconv.FormatFloat(last, 'f', -1, 64), to)
		}
		l, err := ParseLoad(text)
		if err != nil {
			return nil, err
		}
		if l.Share > 0 && (len(all) == 0 || all[0] != Load{}) {
			return nil, errors.New("a share is one of the closed loop's rate: begin with closed")
		}
		last = l.Rate
		all = append(all, l)
	}
	return all, nil
}

func parseStage(text, lasts, rates string) (l Load, err error) {
	from, to, ok := strings.Cut(rates, "-")
	if !ok {
		from, to = to, from
	}
	l.Ramp, err = time.ParseDuration(lasts)
	if err == nil && from != "" {
		l.From, err = parseRate(from)
	}
	if err == nil {
		l.Rate, err = parseRate(to)
	}
	if err != nil || l.Ramp <= 0 || l.From+l.Rate == 0 {
		return Load{}, fmt.Errorf("load %q: want a time and the rate at its end, such as 30s:2000, or both rates, "+
			"such as 30s:100-2000, of which one is above 0", text)
	}
	return l, nil
}

func parseRate(text string) (float64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err == nil && !(n >= 0 && n <= 1e9) {
		err = strconv.ErrRange
	}
	return n, err
}

// String returns the load in the form that ParseLoad parses.
func (l Load) String() string {
	number := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
	switch {
	case l.Ramp > 0:
		return fmt.Sprintf("%v:%s-%s", l.Ramp, number(l.From), number(l.Rate))
	case l.Share > 0:
		return number(l.Share*100) + "%"
	case l.Rate > 0:
		return number(l.Rate)
	}
	return "closed"
}

// Bench describes a benchmark.
type Bench struct {
	Header   Header // the caller sets Work, Rounds, MaxOther and the fields about the place; Run sets the rest
	Subjects []*Subject
	Loads    []Load
	// Closed loops have Conns connections. Open loops have OpenConns connections.
	Conns, OpenConns int
	Duration, Warmup time.Duration
	Patience         time.Duration // how long an arrival of an open loop may wait
	Raw              io.Writer     // the raw data are written to it
	Say              func(format string, args ...any)
	// Live shows a line while something is measured, and takes it away if the text is empty. It may be nil.
	Live func(text string)

	// measure replaces once in tests.
	measure func(ctx context.Context, s *Subject, l Load, offered float64) (*Run, error)
}

// attempts is how many rounds are tried at most for each wanted round.
const attempts = 3

// Run measures until it has as many rounds as are wanted, or has used up its attempts.
func (b *Bench) Run(ctx context.Context) (*Data, error) {
	if b.measure == nil {
		b.measure = b.once
	}
	b.Header.Seconds, b.Header.Warmup = seconds(b.Duration), seconds(b.Warmup)
	for _, s := range b.Subjects {
		b.Header.Subjects = append(b.Header.Subjects, s.About)
		if !s.known() && b.Header.MaxOther > 0 {
			b.Header.MaxOther = 0
			b.Say(
				"the processor time of %s is not known: other load on this machine cannot be told from it, and no "+
					"round is dropped", s.Name,
			)
		}
	}
	d := &Data{Header: b.Header}
	if err := writeLine(b.Raw, line{Header: &d.Header}); err != nil {
		return nil, err
	}
	for round, kept := 1, 0; kept < b.Header.Rounds && round <= attempts*b.Header.Rounds; round++ {
		runs, err := b.round(ctx, round)
		if err != nil {
			return nil, err
		}
		if dropped := b.disturbed(runs); dropped == "" {
			kept++
		} else {
			b.Say("round %d is dropped: %s", round, dropped)
			for _, r := range runs {
				r.Dropped = dropped
			}
		}
		for _, r := range runs {
			if err := writeLine(b.Raw, line{Run: r}); err != nil {
				return nil, err
			}
		}
		d.Runs = append(d.Runs, runs...)
	}
	return d, nil
}

// disturbed returns the reason why a round does not count, or an empty text if it counts.
func (b *Bench) disturbed(runs []*Run) string {
	for _, r := range runs {
		if most := b.Header.MaxOther; most > 0 && r.Other > most {
			return fmt.Sprintf("others used %.2f processors during %s, %s; %.2f are allowed", r.Other, r.Subject,
				r.Load, most)
		}
	}
	return ""
}

// round measures every subject in turn, and then the first subject of all once more. In each
// round, another subject comes first in turn.
func (b *Bench) round(ctx context.Context, round int) (runs []*Run, err error) {
	for i := range b.Subjects {
		s := b.Subjects[(i+round-1)%len(b.Subjects)]
		closed := 0.0
		for _, l := range b.Loads {
			offered := l.Rate / float64(s.intents())
			if l.Share > 0 {
				offered = l.Share * closed
			}
			r, err := b.measure(ctx, s, l, offered)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", s.Name, l, err)
			}
			if l == (Load{}) {
				closed = float64(r.Accepted) / r.Seconds
			}
			runs = append(runs, r)
		}
	}
	again, err := b.measure(ctx, b.Subjects[0], b.Loads[0], b.Loads[0].Rate/float64(b.Subjects[0].intents()))
	if err != nil {
		return nil, err
	}
	again.Again = true
	runs = append(runs, again)
	for _, r := range runs {
		r.Round = round
		b.Say("%s", r)
	}
	return runs, nil
}

// once warms a subject up and runs one load.
func (b *Bench) once(ctx context.Context, s *Subject, l Load, offered float64) (*Run, error) {
	o := load.Options{Conns: b.Conns, Duration: b.Warmup}
	if b.Warmup > 0 && l.Ramp == 0 { // stages begin as slowly as they say
		if _, err := load.Drive(ctx, s.target, o); err != nil {
			return nil, err
		}
	}
	o.Duration = b.Duration
	if l.Ramp > 0 {
		o.Duration, o.Ramp, o.From = l.Ramp, true, l.From/float64(s.intents())
	}
	if b.Live != nil {
		o.Live = func(p load.Progress) { b.Live(progressOf(s, l, o.Duration, p)) }
		defer b.Live("")
	}
	if offered > 0 || o.Ramp {
		o.Rate, o.Patience = offered, b.Patience
		if s.target.Window == 0 { // a stream carries many intents at once
			o.Conns = b.OpenConns
		}
	}
	r, err := measureAfresh(ctx, s, o, b.Subjects)
	if err == nil {
		r.Load = l.String()
	}
	return r, err
}

// progressOf describes a run that lasts.
func progressOf(s *Subject, l Load, lasts time.Duration, p load.Progress) string {
	text := fmt.Sprintf("%s, %s: %.0f of %v s, %.0f/s, p99 %s", s.Name, l, p.Elapsed.Seconds(), lasts.Seconds(),
		float64(p.Accepted*s.intents())/p.Elapsed.Seconds(), short(p.P99))
	if p.Refused+p.Mismatched > 0 {
		text += fmt.Sprintf(", %d refused, %d mismatched", p.Refused, p.Mismatched)
	}
	return text
}

// measureAfresh measures a subject over new connections. It reads the processor time that the
// subject and others spent. Subjects that are idle do not count as others.
func measureAfresh(ctx context.Context, s *Subject, o load.Options, idle []*Subject) (*Run, error) {
	d, err := load.Dial(ctx, s.target, o.Conns)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return measure(ctx, d, s, o, idle)
}

// measure does the same as measureAfresh, over connections that are open already.
func measure(ctx context.Context, d *load.Driver, s *Subject, o load.Options, idle []*Subject) (*Run, error) {
	w, err := beginWatch(ctx, append([]*Subject{s}, idle...))
	if err != nil {
		return nil, err
	}
	driver, beside := proc.Spent(os.Getpid()), proc.Spent(s.beside...)
	before, err := s.spent(ctx)
	if err != nil {
		return nil, err
	}
	got, err := d.Drive(ctx, o)
	if err != nil {
		return nil, err
	}
	after, err := s.spent(ctx)
	driver, beside = proc.Spent(os.Getpid())-driver, proc.Spent(s.beside...)-beside
	other, stolen, watchErr := w.end(ctx)
	if err := errors.Join(err, watchErr); err != nil {
		return nil, err
	}
	return &Run{
		Subject: s.Name, Offered: o.Rate, Conns: o.Conns, Intents: s.intents(),
		Seconds: seconds(got.Elapsed), Accepted: got.Accepted, Refused: got.Refused, Unsent: got.Unsent,
		Bytes: got.Bytes, Decisions: got.Decisions, Mismatched: got.Mismatched, Mismatch: got.Mismatch,
		ServerSeconds: seconds(after - before), DriverSeconds: seconds(driver), BesideSeconds: seconds(beside),
		Resident: proc.Resident(s.pid), Other: other, Stolen: stolen,
		Scheduled: got.Scheduled, Sent: got.Sent, Refusals: got.Refusals, Lateness: got.Lateness,
	}, nil
}

// watch separates the processor time of this process and its servers from the time of others.
type watch struct {
	subjects []*Subject
	own      time.Duration
	machine  proc.Processors
	began    time.Time
}

func beginWatch(ctx context.Context, subjects []*Subject) (w watch, err error) {
	for i, s := range subjects {
		if !slices.Contains(subjects[:i], s) {
			w.subjects = append(w.subjects, s)
		}
	}
	w.own, err = w.spent(ctx)
	w.machine, w.began = proc.ReadProcessors(), time.Now()
	return w, err
}

// spent returns the processor time of this process and its servers so far.
func (w *watch) spent(ctx context.Context) (time.Duration, error) {
	sum := proc.Spent(os.Getpid())
	for _, s := range w.subjects {
		spent, err := s.spent(ctx)
		if err != nil {
			return 0, err
		}
		sum += spent + proc.Spent(s.beside...)
	}
	return sum, nil
}

// end returns how many processors others used since the watch began. It also returns the share
// of the machine's time that the host gave to others.
func (w *watch) end(ctx context.Context) (other, stolen float64, err error) {
	machine, elapsed := proc.ReadProcessors(), time.Since(w.began)
	own, err := w.spent(ctx)
	return machine.Other(w.machine, own-w.own, elapsed), machine.StolenSince(w.machine), err
}

// String describes a run on one line.
func (r *Run) String() string {
	name := r.Subject
	if r.Again {
		name += " again"
	}
	text := fmt.Sprintf("%3d %-14s %-7s %9.0f/s", r.Round, name, r.Load, r.Rate())
	if r.ServerSeconds > 0 {
		text += fmt.Sprintf(" %7.1f µs of processor", r.Processor())
	}
	text += fmt.Sprintf("  p50 %s p99 %s p99.9 %s", short(r.Scheduled.At(.5)), short(r.Scheduled.At(.99)),
		short(r.Scheduled.At(.999)))
	if r.Refused+r.Unsent > 0 {
		text += fmt.Sprintf("  %d refused, %d unsent", r.Refused, r.Unsent)
	}
	if r.Mismatched > 0 {
		text += fmt.Sprintf("  %d mismatched", r.Mismatched)
	}
	if r.Resident > 0 {
		text += fmt.Sprintf("  %d MiB", r.Resident>>20)
	}
	return text + fmt.Sprintf("  others %.2f", r.Other)
}

// short formats a duration with about three digits.
func short(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.2fms", d.Seconds()*1000)
	case d < time.Second:
		return fmt.Sprintf("%.1fms", d.Seconds()*1000)
	}
	return fmt.Sprintf("%.2fs", d.Seconds())
}
