package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/go-json-experiment/json"

	"writ.example/writ/bench/load"
)

// Guard compares the processor time that two binaries need for a request.
//
// An epoch starts two servers of the base and one of this, each as a new process. It measures
// the three servers in turn, Slices times. The loss of an epoch is the median difference of a
// slice between this and a base, averaged over both bases. The noise of an epoch is the median
// difference between the two bases (A/A). The processes are new, so the epochs are independent
// of each other. Where a process has its memory, or how its store has grown, affects only one
// epoch.
//
// Guard makes epochs until it finds a loss beyond the noise. It also stops when the noise is
// small enough to distinguish Loss from no loss, see [Judge].
type Guard struct {
	Base, This    Program
	Work          Work
	Loss          time.Duration // the loss of processor time for a request that Guard must distinguish from none
	Conns         int
	Slices        int
	Slice, Warmup time.Duration
	Least, Most   int     // epochs
	MaxOther      float64 // a slice is dropped if others use more processors; 0: no slice is dropped
	Raw           io.Writer
	Say           func(format string, args ...any)

	epochs, dropped, measured int // the counts so far
}

// Epoch has the results of one epoch, in µs of processor time for a request.
type Epoch struct {
	Base  float64 `json:"base"`  // the median of both bases
	Loss  float64 `json:"loss"`  // the loss of this
	Noise float64 `json:"noise"` // the second base minus the first
	// Slices has the three times of each slice: first base, second base, this.
	Slices [][3]float64 `json:"slices"`
}

// Verdict is the conclusion from some epochs. Times are µs of processor time for a request.
type Verdict struct {
	Epochs int
	Base   float64
	Loss   float64 // the mean; a negative loss is a gain
	Error  float64 // the standard error of Loss, estimated from the losses and from A/A
	Limit  float64 // a loss above Limit is beyond the noise
	// Resolved says that the noise is small enough to detect the loss in question.
	Resolved bool
}

// Settled reports whether no more epochs are needed.
func (v Verdict) Settled() bool { return v.Lost() || v.Resolved }

// Lost reports whether this takes more time than the base, beyond the noise.
func (v Verdict) Lost() bool { return v.Loss > v.Limit }

// beyond is how many standard errors a loss must have to count. Between equal builds, fewer
// than one comparison in 1,000 reaches such a loss by chance, however many epochs it has.
const beyond = 5

// Judge returns the verdict of epochs about a loss of so many µs.
//
// Let σ be the deviation of one server's time in an epoch. Losses have the variance 1.5 σ²,
// because they compare one server with the mean of two. A/A differences have the variance 2 σ²
// about 0. Judge estimates σ² from both. The limit is 5 standard errors of the mean loss, but
// at least a quarter of the loss in question. The verdict is resolved when 5 standard errors
// are at most half of that loss. Then the mean loss of equal builds stays below the half, and
// the mean loss of builds that differ by the loss in question is above it.
func Judge(epochs []Epoch, loss float64) Verdict {
	n := float64(len(epochs))
	v := Verdict{Epochs: len(epochs), Limit: math.Inf(1)}
	if n < 2 {
		return v
	}
	for _, e := range epochs {
		v.Base += e.Base / n
		v.Loss += e.Loss / n
	}
	sum := 0.0
	for _, e := range epochs {
		sum += (e.Loss-v.Loss)*(e.Loss-v.Loss)/1.5 + e.Noise*e.Noise/2
	}
	v.Error = math.Sqrt(1.5 * sum / (2*n - 1) / n)
	v.Limit = max(beyond*v.Error, loss/4)
	v.Resolved = beyond*v.Error <= loss/2
	return v
}

// ErrDisturbed means that other programs used the machine during every slice.
var ErrDisturbed = errors.New("others used the machine during every slice")

// Run makes epochs until the verdict is settled, but at most Most epochs.
func (g *Guard) Run(ctx context.Context) (Verdict, error) {
	var epochs []Epoch
	for {
		e, err := g.epoch(ctx)
		if err != nil {
			return Verdict{}, err
		}
		text, err := json.Marshal(e)
		if err == nil {
			_, err = g.Raw.Write(append(text, '\n'))
		}
		if err != nil {
			return Verdict{}, err
		}
		epochs = append(epochs, e)
		v := Judge(epochs, float64(g.Loss.Microseconds()))
		g.Say("epoch %d: base %.1f µs, this %+.2f, A/A %+.2f; so far %+.2f ± %.2f", len(epochs), e.Base, e.Loss,
			e.Noise, v.Loss, beyond*v.Error)
		if len(epochs) >= g.Most || len(epochs) >= g.Least && v.Settled() {
			if g.dropped > 0 {
				g.Say("%d of %d slices were dropped: others used the machine", g.dropped, g.measured)
			}
			return v, nil
		}
	}
}

// epoch starts the three servers and measures them.
func (g *Guard) epoch(ctx context.Context) (e Epoch, err error) {
	var f [3]server // the first base, the second base, this
	defer func() {
		for _, s := range f {
			err = errors.Join(err, s.stop())
		}
	}()
	programs := [3]Program{g.Base, g.Base, g.This}
	for i := range f { // another server starts first in each epoch
		at := (i + g.epochs) % len(f)
		if f[at], err = g.start(ctx, programs[at]); err != nil {
			return e, err
		}
	}
	g.epochs++
	for try := 0; len(e.Slices) < g.Slices && try < attempts*g.Slices; try++ {
		slice, disturbed, err := g.slice(ctx, f, try)
		if err != nil {
			return e, err
		}
		g.measured++
		if disturbed {
			g.dropped++
			continue
		}
		e.Slices = append(e.Slices, slice)
	}
	if len(e.Slices) == 0 {
		return e, fmt.Errorf(
			"%w: %d slices, --max-other is %.2f processors", ErrDisturbed, attempts*g.Slices, g.MaxOther,
		)
	}
	e.sum()
	return e, nil
}

// server is a subject with open connections.
type server struct {
	*Subject
	driver *load.Driver
}

func (s server) stop() error {
	if s.driver != nil {
		s.driver.Close()
	}
	if s.Subject == nil {
		return nil
	}
	return s.Stop()
}

// start starts a server and warms it up.
func (g *Guard) start(ctx context.Context, p Program) (s server, err error) {
	if s.Subject, err = p.Start(ctx, g.Work); err != nil {
		return s, err
	}
	if s.driver, err = load.Dial(ctx, s.target, g.Conns); err != nil {
		return s, err
	}
	_, err = s.driver.Drive(ctx, load.Options{Duration: g.Warmup})
	return s, err
}

// slice measures each server once. In each slice, another server is measured first.
func (g *Guard) slice(ctx context.Context, servers [3]server, try int) (slice [3]float64, disturbed bool, err error) {
	all := []*Subject{servers[0].Subject, servers[1].Subject, servers[2].Subject}
	w, err := beginWatch(ctx, all) // one watch for all three, because /proc/stat counts in ticks of 10 ms
	if err != nil {
		return slice, false, err
	}
	for i := range servers {
		at := (i + try) % len(servers)
		if try%2 == 1 { // every second try reverses the order
			at = len(servers) - 1 - at
		}
		r, err := measure(ctx, servers[at].driver, servers[at].Subject, load.Options{Conns: g.Conns, Duration: g.Slice},
			all)
		if errors.Is(err, load.ErrNone) { // other programs had the processor all the time
			return slice, true, nil
		}
		if err != nil {
			return slice, false, err
		}
		slice[at] = r.Processor()
	}
	other, _, err := w.end(ctx)
	return slice, g.MaxOther > 0 && other > g.MaxOther, err
}

// sum computes the medians of the slices.
func (e *Epoch) sum() {
	var bases, first, second, noises []float64
	for _, s := range e.Slices {
		bases = append(bases, s[0], s[1])
		first, second = append(first, s[2]-s[0]), append(second, s[2]-s[1])
		noises = append(noises, s[1]-s[0])
	}
	// The difference between two equal servers is symmetric about 0. The difference between a
	// server and the mean of two servers is not: times are skewed, so its median is below 0.
	e.Base, e.Loss, e.Noise = median(bases), (median(first)+median(second))/2, median(noises)
}
