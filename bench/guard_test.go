package bench

import (
	"bufio"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/go-json-experiment/json"
)

// loss is the loss in question by default, in µs.
const loss = 4

// leastEpochs and mostEpochs bound the number of epochs that the guard makes by default.
const leastEpochs, mostEpochs = 6, 40

// source makes an epoch in which this takes more µs than the base.
type source func(r *rand.Rand, more float64) Epoch

// gaussian returns a source of epochs. The time of a server in an epoch has a Gaussian
// deviation of so many µs. Now and then the deviation is five times as large.
func gaussian(deviation float64) source {
	return func(r *rand.Rand, more float64) Epoch {
		var at [3]float64
		for i := range at {
			at[i] = 45 + deviation*r.NormFloat64()
			if r.IntN(20) == 0 {
				at[i] += 4 * deviation * r.NormFloat64()
			}
		}
		return Epoch{Base: (at[0] + at[1]) / 2, Loss: at[2] + more - (at[0]+at[1])/2, Noise: at[1] - at[0]}
	}
}

// compare does the same as Guard.Run, but with epochs from a source.
func compare(r *rand.Rand, from source, more float64) Verdict {
	var epochs []Epoch
	for {
		epochs = append(epochs, from(r, more))
		v := Judge(epochs, loss)
		if n := len(epochs); n >= mostEpochs || n >= leastEpochs && v.Settled() {
			return v
		}
	}
}

// tally counts the verdicts of many comparisons.
func tally(from source, more float64, times int) (lost, fine, undecided int) {
	r := rand.New(rand.NewPCG(1, uint64(more)))
	for range times {
		switch v := compare(r, from, more); {
		case v.Lost():
			lost++
		case v.Resolved:
			fine++
		default:
			undecided++
		}
	}
	return lost, fine, undecided
}

// TestJudge_CatchesALossAndAccusesNobody checks the rates of wrong verdicts. Fewer than one
// comparison of equal builds in 1,000 finds a loss. A loss of 4 µs never passes, whatever the
// noise. If the noise is moderate, every comparison is decided.
func TestJudge_CatchesALossAndAccusesNobody(t *testing.T) {
	const times = 4000
	for _, c := range []struct {
		deviation float64 // the deviation of a server's time in an epoch, in µs
		decided   bool
	}{{.2, true}, {.5, true}, {1, true}, {2, false}, {8, false}} {
		lost, fine, undecided := tally(gaussian(c.deviation), 0, times)
		t.Logf("deviation %.1f µs, equal builds: %d accused, %d passed, %d undecided", c.deviation, lost, fine, undecided)
		if lost > times/1000 {
			t.Errorf("deviation %v: %d of %d equal builds are accused of a loss", c.deviation, lost, times)
		}
		if c.decided && undecided > times/100 {
			t.Errorf("deviation %v: %d of %d comparisons of equal builds are undecided", c.deviation, undecided, times)
		}
		lost, fine, undecided = tally(gaussian(c.deviation), loss, times)
		t.Logf("deviation %.1f µs, 4 µs more: %d caught, %d passed, %d undecided", c.deviation, lost, fine, undecided)
		if fine > times/1000 {
			t.Errorf("deviation %v: %d of %d losses of 4 µs pass", c.deviation, fine, times)
		}
		if c.decided && lost < times-times/1000 {
			t.Errorf("deviation %v: %d of %d losses of 4 µs are caught", c.deviation, lost, times)
		}
	}
}

// recorded returns a source of epochs that it draws from recorded slices. The slices are
// measurements of three equal servers while other programs used the machine (load average 10 on
// two processors). recorded draws a slice as a whole, because the same disturbance affected its
// three servers. It shuffles the three servers, so that none is favoured.
func recorded(t *testing.T) source {
	t.Helper()
	f, err := os.Open("testdata/guard-busy.jsonl")
	must(t, err)
	defer f.Close()
	var epochs []Epoch
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e Epoch
		must(t, json.Unmarshal(lines.Bytes(), &e))
		epochs = append(epochs, e)
	}
	if len(epochs) != 9 {
		t.Fatalf("%d epochs were recorded, want 9", len(epochs))
	}
	return func(r *rand.Rand, more float64) Epoch {
		of := epochs[r.IntN(len(epochs))]
		places := r.Perm(3)
		var e Epoch
		for range of.Slices {
			drawn := of.Slices[r.IntN(len(of.Slices))]
			e.Slices = append(e.Slices, [3]float64{drawn[places[0]], drawn[places[1]], drawn[places[2]] + more})
		}
		e.sum()
		return e
	}
}

// TestJudge_OnABusyMachine checks the verdicts of comparisons that are drawn from measurements
// on a busy machine.
func TestJudge_OnABusyMachine(t *testing.T) {
	from := recorded(t)
	const times = 400
	lost, fine, undecided := tally(from, 0, times)
	t.Logf("equal builds: %d accused, %d passed, %d undecided", lost, fine, undecided)
	if lost > 0 {
		t.Errorf("%d of %d equal builds are accused of a loss", lost, times)
	}
	lost, fine, undecided = tally(from, loss, times)
	t.Logf("4 µs more: %d caught, %d passed, %d undecided", lost, fine, undecided)
	if fine > 0 {
		t.Errorf("%d of %d losses of 4 µs pass", fine, times)
	}
}

// TestEpoch_FavoursNobody checks that the loss between equal servers is 0 on average. The times
// are skewed, as on a busy machine.
func TestEpoch_FavoursNobody(t *testing.T) {
	from, r, sum := recorded(t), rand.New(rand.NewPCG(3, 3)), 0.0
	const times = 4000
	for range times {
		sum += from(r, 0).Loss
	}
	if got := sum / times; got < -.2 || got > .2 {
		t.Errorf("this takes %.2f µs more than its equals on average", got)
	}
}

func TestJudge_NeedsEpochs(t *testing.T) {
	if v := Judge([]Epoch{{Base: 40, Loss: 30}}, loss); v.Lost() || v.Resolved {
		t.Errorf("one epoch gives %+v, want no verdict", v)
	}
	// A loss beyond the noise counts, even if the noise is too large to detect 4 µs.
	var epochs []Epoch
	for i := range 6 {
		epochs = append(epochs, Epoch{Base: 40, Loss: 30 + 4*float64(i%2), Noise: 4 * float64(i%3-1)})
	}
	if v := Judge(epochs, loss); !v.Lost() {
		t.Errorf("a loss of 32 µs is none: %+v", v)
	}
	// A gain is not a loss.
	for i := range epochs {
		epochs[i].Loss -= 60
	}
	if v := Judge(epochs, loss); v.Lost() {
		t.Errorf("a gain of 28 µs is a loss: %+v", v)
	}
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
