// Command hostile measures what one organization's requests cost another's. A
// victim sends ordinary evaluations on a schedule, alone and then beside each
// attack: an organization of its own that does one dear thing as fast as 16
// connections allow and ignores Retry-After. Last come all attacks at once. Each
// attack is a process of its own at a lower priority.
//
// The victim's latency counts from when a request was due (no coordinated
// omission). Each round of an attack prints one line: the victim's p50 and p99 alone
// and beside the attack, the most resident memory of the server, and what the
// attacker was answered, with the p50 and p99 of its 503s. Where the host withheld
// processor time meanwhile, a line says so and the next measures again. Last comes
// whether the median of the second p99s is within three times that of the first or
// 15 ms, whichever is more.
//
//	hostile -url http://127.0.0.1:3820 -writ ./writ -data DIR -pid PID
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"writ/bench/proc"
)

// What is held, from decisions.md: "Bounds that protect the others".
const (
	heldRatio  = 3
	heldP99    = 15 * time.Millisecond
	heldMemory = 1 << 30
)

const (
	// attempts is how often an attack is measured at most.
	attempts = 4
	// stolenAtMost is the share of processor time that may be withheld in a
	// measurement: a hundredth of the victim's requests is what its p99 stands on.
	stolenAtMost = 0.003
)

// settle is how long what went before may take to end.
const settle = time.Second

type options struct {
	url, writ, data, only string
	attack                string
	pid, conns            int
	rate                  float64
	rounds                int
	alone, duration       time.Duration
	history               int
}

func main() {
	var o options
	flag.StringVar(&o.url, "url", "http://127.0.0.1:3820", "base URL of the server")
	flag.StringVar(&o.writ, "writ", "writ", "the binary, which mints operator tokens")
	flag.StringVar(&o.data, "data", "./data", "data directory of the server")
	flag.IntVar(&o.pid, "pid", 0, "process id of the server, whose memory is read")
	flag.StringVar(&o.only, "only", "", "attacks to run, separated by commas; all if empty")
	flag.StringVar(&o.attack, "attack", "", "be the process of this attack: see child.go")
	flag.IntVar(&o.conns, "conns", 16, "connections of each attack")
	flag.Float64Var(&o.rate, "rate", 200, "requests a second of the victim")
	flag.IntVar(&o.rounds, "rounds", 3, "how often each attack is measured")
	flag.DurationVar(&o.alone, "alone", 3*time.Second, "how long the victim is measured alone before each attack")
	flag.DurationVar(&o.duration, "duration", 4*time.Second, "how long an attack lasts")
	flag.IntVar(&o.history, "history", 50_000, "decisions in the history that is searched and exported")
	flag.Parse()
	if err := run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	u, err := url.Parse(o.url)
	if err != nil {
		return err
	}
	s := &server{options: o, host: u.Host}
	if o.attack != "" {
		return s.beChild(ctx, o.attack)
	}
	v, err := s.newVictim(ctx)
	if err != nil {
		return fmt.Errorf("setting up the victim: %w", err)
	}
	held := true
	var names []string
	for _, a := range attacks() {
		if o.only != "" && !strings.Contains(","+o.only+",", ","+a.name+",") {
			continue
		}
		ok, err := s.holds(ctx, v, a.name, a.name)
		if errors.Is(err, errRefused) {
			fmt.Printf("%-13s %v", a.name, err)
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		names = append(names, a.name)
		held = held && ok
	}
	if len(names) > 1 {
		if _, err := s.holds(ctx, v, "all at once", names...); err != nil {
			return fmt.Errorf("all at once: %w", err)
		}
	}
	fmt.Printf("held for each alone: %t\n", held)
	return nil
}

// holds measures in some rounds, and reports whether the median of the p99s beside
// attacks is within what is held of the median of those alone: one write that the
// host's disk is slow with is in the p99 of a round.
func (s *server) holds(ctx context.Context, v *victim, name string, attacks ...string) (bool, error) {
	var alone, beside []time.Duration
	sound := true
	for range s.rounds {
		r, err := s.measureUndisturbed(ctx, v, name, attacks...)
		if err != nil {
			return false, err
		}
		alone, beside, sound = append(alone, r.alone.at(.99)), append(beside, r.beside.at(.99)), sound && r.sound()
	}
	slices.Sort(alone)
	slices.Sort(beside)
	a, b := alone[len(alone)/2], beside[len(beside)/2]
	bound := max(heldRatio*a, heldP99)
	held := sound && b <= bound
	fmt.Printf("%-13s median p99 alone=%s beside=%s bound=%s held=%t\n", name, ms(a), ms(b), ms(bound), held)
	return held, nil
}

// measureUndisturbed measures again, some times, where a host gave processor time
// of this machine to others meanwhile: what that delays is no work of the server's.
func (s *server) measureUndisturbed(ctx context.Context, v *victim, name string, attacks ...string) (r *round, err error) {
	for range attempts {
		before := proc.ReadProcessors()
		if r, err = s.measure(ctx, v, name, attacks...); err != nil {
			return nil, err
		}
		stolen := proc.ReadProcessors().StolenSince(before)
		if stolen <= stolenAtMost {
			break
		}
		fmt.Printf("#   disturbed: %.1f %% of the processor time was given to other machines\n", 100*stolen)
	}
	return r, nil
}

// round is what was measured of the victim, and the most memory of the server.
type round struct {
	alone, beside *latencies
	memory        int
}

// sound reports whether no request failed and memory stayed within its bound.
func (r *round) sound() bool { return r.memory <= heldMemory && r.beside.Failed == 0 }

// measure measures the victim alone and beside attacks, and prints a line.
func (s *server) measure(ctx context.Context, v *victim, name string, attacks ...string) (*round, error) {
	var children []*child
	for _, a := range attacks {
		c, err := s.spawn(ctx, a)
		if err != nil {
			return nil, err
		}
		children = append(children, c)
	}
	time.Sleep(settle)
	alone, err := v.drive(ctx, s.alone)
	if err != nil {
		return nil, fmt.Errorf("the victim alone: %w", err)
	}
	watching, enough := context.WithCancel(ctx)
	defer enough()
	memory := s.watchMemory(watching)
	for _, c := range children {
		if err := c.start(); err != nil {
			return nil, err
		}
	}
	beside, err := v.drive(ctx, s.duration)
	if err != nil {
		return nil, fmt.Errorf("the victim beside it: %w", err)
	}
	enough()
	var total report
	for _, c := range children {
		r, err := c.stop()
		if err != nil {
			return nil, err
		}
		total.add(r)
	}
	r := &round{alone, beside, <-memory}
	r.print(name, total.describe(s.duration))
	return r, nil
}

func (r *round) print(name, attacker string) {
	alone, beside := r.alone.at(.99), r.beside.at(.99)
	fmt.Printf("%-13s alone p50=%s p99=%s beside p50=%s p99=%s ratio=%.1f failed=%d memory=%dMiB | %s\n",
		name, ms(r.alone.at(.5)), ms(alone), ms(r.beside.at(.5)), ms(beside), float64(beside)/float64(alone), r.beside.Failed, r.memory>>20, attacker)
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1fms", float64(d)/1e6) }
