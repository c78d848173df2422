package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"writ.example/writ/bench/load"
	"writ.example/writ/bench/proc"
)

// Growth measures what one more organization costs a server that has many. Each step registers a policy and a key
// for new organizations, no two policies alike. Then each of these organizations has its first decision.
type Growth struct {
	Program             Program
	Organizations, Step int // Step is the number of organizations of a step
	Conns               int // the connections for first decisions
	Say                 func(format string, args ...any)
}

// grown are the measurements of a step. The costs are the server's processor time for one organization.
type grown struct {
	register, first time.Duration
	rate            float64 // first decisions per second
	resident        int
}

// growing is a server that gets organizations.
type growing struct {
	*Subject
	bearer Bearer
}

// Run measures all steps. It prints a line for each. Then it measures the first step of another server, because the
// machine may have changed meanwhile, and prints the costs of the last step as multiples of those of the first steps.
func (g *Growth) Run(ctx context.Context) error {
	steps, err := g.grow(ctx, g.Organizations, g.Program)
	if err != nil {
		return err
	}
	again, err := g.grow(ctx, min(g.Step, g.Organizations), g.Program)
	if err != nil {
		return err
	}
	last := steps[len(steps)-1][0]
	for _, beside := range []struct {
		name string
		grown
	}{{"the first", steps[0][0]}, {"the first of a new server", again[0][0]}} {
		g.Say("the last step beside %s: registering %.2f times, first decision %.2f times", beside.name,
			seconds(last.register)/seconds(beside.register), seconds(last.first)/seconds(beside.first))
	}
	return nil
}

// Compare measures the steps of the program and of base in turn, and prints what the program's cost as multiples of
// the base's: the medians of all steps, and the resident memory after the last. It returns the greatest.
func (g *Growth) Compare(ctx context.Context, base Program) (worst float64, err error) {
	steps, err := g.grow(ctx, g.Organizations, g.Program, base)
	if err != nil {
		return 0, err
	}
	var register, first []float64
	for _, s := range steps {
		register = append(register, seconds(s[0].register)/seconds(s[1].register))
		first = append(first, seconds(s[0].first)/seconds(s[1].first))
	}
	last := steps[len(steps)-1]
	resident := float64(last[0].resident) / float64(max(last[1].resident, 1))
	g.Say("beside the base, medians of %d steps: registering %.2f times, first decision %.2f times, "+
		"resident %.2f times", len(steps), median(register), median(first), resident)
	return max(median(register), median(first), resident), nil
}

// grow starts servers that get organizations, and returns the measurements of each step, in the order of programs.
func (g *Growth) grow(ctx context.Context, organizations int, programs ...Program) (steps [][]grown, err error) {
	servers := make([]growing, len(programs))
	for i, p := range programs {
		s, err := p.Start(ctx, Work{Organization: "before", Organizations: 1, Policies: 1})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, s.Stop()) }()
		servers[i] = growing{Subject: s}
		if servers[i].bearer, err = OperatorTokens(filepath.Join(s.data, "operator-secret")); err != nil {
			return nil, err
		}
	}
	w := Work{Organization: "bench", Organizations: g.Organizations, Policies: 1}
	for n := 0; n < organizations; n += g.Step {
		step := make([]grown, len(servers))
		for k := range servers {
			i := (k + len(steps)) % len(servers) // another server is first in each step
			if step[i], err = g.step(ctx, servers[i], w, n, min(n+g.Step, organizations)); err != nil {
				return nil, fmt.Errorf("organizations from %d: %w", n, err)
			}
		}
		steps = append(steps, step)
	}
	return steps, nil
}

// step registers the organizations from number begin to end, and has each decide once.
func (g *Growth) step(ctx context.Context, s growing, w Work, begin, end int) (r grown, err error) {
	n := end - begin
	before, err := s.spent(ctx)
	if err != nil {
		return r, err
	}
	callers, err := registerAll(ctx, s.target.URL, w, s.bearer, begin, end)
	if err != nil {
		return r, err
	}
	registered, err := s.spent(ctx)
	if err != nil {
		return r, err
	}
	t, err := w.ask(s.target.URL, callers)
	if err != nil {
		return r, err
	}
	t.InTurn = true
	got, err := load.Drive(ctx, t, load.Options{Conns: g.Conns, Requests: n})
	if err != nil {
		return r, err
	}
	decided, err := s.spent(ctx)
	if err != nil {
		return r, err
	}
	r = grown{
		register: (registered - before) / time.Duration(n), first: (decided - registered) / time.Duration(n),
		rate: float64(n) / seconds(got.Elapsed), resident: proc.Resident(s.pid),
	}
	g.Say("%s %7d organizations  register %6d µs of processor  first decision %5d µs of processor, %6.0f/s, "+
		"p50 %s p99 %s  resident %d MiB", s.Name, end, r.register.Microseconds(), r.first.Microseconds(), r.rate,
		short(got.Sent.At(.5)), short(got.Sent.At(.99)), r.resident>>20)
	return r, nil
}

// registerAll registers the organizations of w from number begin to end.
func registerAll(ctx context.Context, base *url.URL, w Work, bearer Bearer, begin, end int) ([]load.Caller, error) {
	const registering = 16
	transport := &http.Transport{MaxIdleConnsPerHost: registering} // else each request opens a connection
	defer transport.CloseIdleConnections()
	callers := make([]load.Caller, end-begin)
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(registering)
	for i := range callers {
		g.Go(func() error {
			token, err := bearer(w.name(begin + i))
			if err != nil {
				return err
			}
			c := clientAt(base, token)
			c.Transport = transport
			own, err := w.register(inner, c, begin+i)
			if err == nil {
				callers[i] = own[0]
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("registering: %w", err)
	}
	return callers, nil
}
