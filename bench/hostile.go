package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"writ.example/writ/bench/load"
	"writ.example/writ/bench/proc"
)

// Hostile measures how much the requests of one organization slow down another organization. A
// victim sends ordinary evaluations on a schedule, first alone and then beside each attack. An
// attack is an organization of its own: it does one expensive thing as fast as its connections
// allow and ignores Retry-After. The last measurement runs all attacks at once. Each attack is a
// process of its own at a lower priority: an attacker on another machine would not take the
// victim's processor either.
type Hostile struct {
	Binary          string   // the binary of writ, which also runs the attackers
	Only            []string // names of attacks; empty: all attacks
	Conns           int      // the connections of each attack
	Rate            float64  // the victim's requests per second
	Rounds          int      // the rounds of each attack
	Alone, Duration time.Duration
	History         int // how many decisions are in the history that is searched and exported
	Say             func(format string, args ...any)

	victim *Subject
}

// The bounds for the victim. They are in decisions.md, "Bounds that protect the others".
const (
	heldRatio  = 3
	heldP99    = 15 * time.Millisecond
	heldMemory = 1 << 30
)

const (
	// measuredAtMost limits how often a round is measured. stolenAtMost limits the share of
	// processor time that the host withholds in a round. It is small, because the victim's p99
	// depends on only a hundredth of its requests.
	measuredAtMost = 4
	stolenAtMost   = 0.003
	// settling is how long the work of the previous measurement may take to end.
	settling = time.Second
	// victimConns is the number of the victim's connections. An arrival finds a free
	// connection unless answers take 0.1 s.
	victimConns = 16
	victimRules = 20
	// attackerNice is the nice value of the attackers: they yield to the victim and the server.
	attackerNice = "10"
)

// Run measures the attacks. held reports whether each attack alone stays within the bounds.
func (h *Hostile) Run(ctx context.Context) (held bool, err error) {
	work := Work{Organization: "victim", Organizations: 1, Policies: 1, Rules: victimRules}
	h.victim, err = Program{Name: "writ", Binary: h.Binary, Limited: true}.Start(ctx, work)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, h.victim.Stop()) }()
	held = true
	var names []string
	for _, a := range attacks() {
		if len(h.Only) > 0 && !slices.Contains(h.Only, a.name) {
			continue
		}
		ok, err := h.holds(ctx, a.name, a.name)
		if errors.Is(err, errRefused) {
			h.Say("%-14s %v", a.name, err)
			continue
		}
		if err != nil {
			return false, fmt.Errorf("%s: %w", a.name, err)
		}
		names, held = append(names, a.name), held && ok
	}
	if len(names) > 1 {
		if _, err := h.holds(ctx, "all at once", names...); err != nil {
			return false, fmt.Errorf("all at once: %w", err)
		}
	}
	h.Say("held for each alone: %t", held)
	return held, nil
}

// holds measures some rounds. It reports whether the median p99 beside the attacks is within
// the bound. The bound follows from the median p99 without attacks. holds compares medians,
// because a single slow write of the host's disk shows in the p99 of its round.
func (h *Hostile) holds(ctx context.Context, name string, attacks ...string) (bool, error) {
	var alone, beside []float64
	sound := true
	for range h.Rounds {
		r, err := h.undisturbed(ctx, name, attacks)
		if err != nil {
			return false, err
		}
		alone, beside = append(alone, seconds(r.alone.Scheduled.At(.99))),
			append(beside, seconds(r.beside.Scheduled.At(.99)))
		sound = sound && r.memory <= heldMemory && r.failed() == 0
	}
	a, b := median(alone), median(beside)
	bound := max(heldRatio*a, seconds(heldP99))
	held := sound && b <= bound
	h.Say("%-14s median p99 alone=%.1fms beside=%.1fms bound=%.1fms held=%t", name, 1e3*a, 1e3*b, 1e3*bound, held)
	return held, nil
}

// undisturbed measures a round. If the host gave this machine's processor time to others during
// the round, undisturbed measures the round again, up to measuredAtMost times. A delay of that
// kind is not the server's.
func (h *Hostile) undisturbed(ctx context.Context, name string, attacks []string) (r *ordeal, err error) {
	for range measuredAtMost {
		before := proc.ReadProcessors()
		if r, err = h.round(ctx, attacks); err != nil {
			return nil, err
		}
		h.Say("%-14s %s", name, r)
		stolen := proc.ReadProcessors().StolenSince(before)
		if stolen <= stolenAtMost {
			break
		}
		h.Say("#   disturbed: %.1f %% of the processor time was given to other machines", 100*stolen)
	}
	return r, nil
}

// ordeal has the measurements of one round.
type ordeal struct {
	alone, beside *load.Result // the victim's results
	attackers     answered
	memory        int // the peak of the server's memory
	lasted        time.Duration
}

// failed returns how many requests of the victim got no decision.
func (o *ordeal) failed() int { return o.beside.Refused + o.beside.Unsent }

// String describes a round on one line.
func (o *ordeal) String() string {
	alone, beside := o.alone.Scheduled.At(.99), o.beside.Scheduled.At(.99)
	return fmt.Sprintf("alone p50=%s p99=%s beside p50=%s p99=%s ratio=%.1f failed=%d memory=%dMiB | attacker:%s",
		short(o.alone.Scheduled.At(.5)), short(alone), short(o.beside.Scheduled.At(.5)), short(beside),
		float64(beside)/float64(alone), o.failed(), o.memory>>20, o.attackers.describe(o.lasted))
}

// round measures the victim alone and beside attacks.
func (h *Hostile) round(ctx context.Context, attacks []string) (*ordeal, error) {
	ctx, end := context.WithCancel(ctx)
	defer end() // ends the attackers if there is an error
	var attackers []*attacker
	for _, name := range attacks {
		a, err := h.spawn(ctx, name)
		if err != nil {
			return nil, err
		}
		attackers = append(attackers, a)
	}
	time.Sleep(settling)
	o := load.Options{Conns: victimConns, Rate: h.Rate, Duration: h.Alone, Patience: time.Minute}
	r := &ordeal{lasted: h.Duration}
	var err error
	if r.alone, err = load.Drive(ctx, h.victim.target, o); err != nil {
		return nil, fmt.Errorf("the victim alone: %w", err)
	}
	watching, enough := context.WithCancel(ctx)
	defer enough()
	memory := watchMemory(watching, h.victim.pid)
	for _, a := range attackers {
		if _, err := io.WriteString(a.in, "start\n"); err != nil {
			return nil, err
		}
	}
	o.Duration = h.Duration
	if r.beside, err = load.Drive(ctx, h.victim.target, o); err != nil {
		return nil, fmt.Errorf("the victim beside it: %w", err)
	}
	enough()
	r.memory = <-memory
	for _, a := range attackers {
		var got answered
		err := json.UnmarshalRead(a.out, &got)
		if err := errors.Join(err, a.cmd.Wait()); err != nil {
			return nil, fmt.Errorf("the attacker: %w", err)
		}
		r.attackers.add(got)
	}
	return r, nil
}

// watchMemory returns a channel. Once ctx has ended, the channel gets the peak of the resident
// memory of a process.
func watchMemory(ctx context.Context, pid int) <-chan int {
	most := make(chan int, 1)
	go func() {
		top := 0
		for ctx.Err() == nil {
			top = max(top, proc.Resident(pid))
			time.Sleep(20 * time.Millisecond)
		}
		most <- top
	}()
	return most
}

// answered counts the answers that the attackers got.
type answered struct {
	Statuses map[int]int    `json:"statuses"`
	Refusals load.Latencies `json:"refusals"`
	Dropped  int            `json:"dropped"` // broken connections
}

func (a *answered) add(other answered) {
	if a.Statuses == nil {
		a.Statuses = make(map[int]int)
	}
	for status, n := range other.Statuses {
		a.Statuses[status] += n
	}
	a.Refusals.Add(other.Refusals)
	a.Dropped += other.Dropped
}

// describe returns the rate of answers of each status, per second.
func (a *answered) describe(d time.Duration) string {
	var b strings.Builder
	for _, status := range slices.Sorted(maps.Keys(a.Statuses)) {
		fmt.Fprintf(&b, " %d/s=%.0f", status, float64(a.Statuses[status])/d.Seconds())
	}
	if a.Dropped > 0 {
		fmt.Fprintf(&b, " dropped=%d", a.Dropped)
	}
	if a.Refusals.Count() > 0 {
		fmt.Fprintf(&b, " 503 p50=%s p99=%s", short(a.Refusals.At(.5)), short(a.Refusals.At(.99)))
	}
	return b.String()
}
