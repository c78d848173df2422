package system

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// killedReplicas kills one of two replicas and both, time and again under load. What
// was answered stands, nothing is answered in two ways, what fails can be sent again,
// and the history is whole.
func killedReplicas(t *testing.T, c *cluster) {
	c.mortal = true
	c.start(t, 2)
	l := newReplicaLoad(c)
	stop := l.start(t, 8)
	f := newFlip(t, c, "other")
	for i := range rounds(6, 60) {
		l.await(t, between)
		c.replicas[i%2].kill(t)
		switch i % 3 {
		case 0: // a kill switch is answered once who is dead was given up
			must(t, f.insist(newSender(t, c.token, 1), 0, func() []string { return []string{c.replicas[1-i%2].url} }))
		case 1:
			c.replicas[1-i%2].kill(t)
		}
		for n, p := range c.replicas {
			select {
			case <-p.done:
				c.replicas[n] = c.launch(t)
				l.serve(c.urls())
			default:
			}
		}
	}
	l.await(t, between)
	stop()
	l.audit(t)
	// Who starts takes the place of one that was given up: there are as many chains as
	// can be live or dead at a time, two and the three that are killed between one kill
	// switch and the next.
	c.proved(t, len(l.sent), 5)
	f.report()
	rows := history(t, c.replicas[0].url, c.token)
	c.stop(t)
	auditAnswers(t, c.data, l.answers, rows)
}

// killedPrimary kills the primary under load on two replicas, and then two members:
// what fails meanwhile can be sent again.
func killedPrimary(t *testing.T, c *cluster) {
	underLoad(t, c, func(l *replicaLoad) {
		for range rounds(1, 10) {
			primary := c.primary(t)
			l.during(t, "the primary is killed", 0, c.set.Kill, c.set.Restart, primary)
			l.withoutMajority(t)
		}
	})
}

// withoutMajority kills two members, waits for a refusal, after which others take no
// time, and restarts them.
func (l *replicaLoad) withoutMajority(t *testing.T) {
	t.Helper()
	for _, member := range []int{0, 1} {
		must(t, l.cluster.set.Kill(member))
	}
	s, in := newSender(t, l.cluster.token, 1), l.next(rand.New(rand.NewPCG(6, 1)))
	began := time.Now()
	got, err := s.evaluate(l.current()[0], in)
	t.Logf("without a majority a refusal takes %v", time.Since(began).Round(time.Millisecond))
	if err != nil || got.status != http.StatusServiceUnavailable || got.retryAfter == "" {
		t.Errorf("evaluate without a majority = %d %s, Retry-After %q, %v, want 503 that says when to come again", got.status, got.body, got.retryAfter, err)
	}
	const more = 10
	began = time.Now()
	for range more {
		if got, err := s.evaluate(l.current()[0], in); err != nil || got.status != http.StatusServiceUnavailable {
			t.Errorf("evaluate without a majority = %d %s, %v, want 503", got.status, got.body, err)
		}
	}
	if took := time.Since(began); took > more*time.Second {
		t.Errorf("%d refusals without a majority took %v", more, took)
	}
	for _, member := range []int{0, 1} {
		must(t, l.cluster.set.Restart(member))
	}
	l.send(s, 0, in)
}

// between is how many answers a load gets before a fault, in it and after.
const between = 200

// underLoad has two replicas decide, and a kill switch thrown and released at them,
// while f causes faults. What was answered stands, no kill switch is passed, and the
// history is whole.
func underLoad(t *testing.T, c *cluster, f func(*replicaLoad)) {
	c.start(t, 2)
	l := newReplicaLoad(c)
	l.flip = newFlip(t, c, "bot")
	stop := l.start(t, 8)
	f(l)
	l.await(t, between)
	stop()
	l.audit(t)
	l.flip.report()
	c.proved(t, len(l.sent), 2)
	rows := history(t, c.replicas[0].url, c.token)
	c.stop(t)
	auditAnswers(t, c.data, l.answers, rows)
}

// replicaLoad sends intents to replicas, each to another when one fails.
type replicaLoad struct {
	cluster *cluster
	flip    *flip // of bot; nil if there is none

	mu      sync.Mutex
	urls    []string
	sent    map[string]intent
	order   []string
	answers map[string]string // body by intent
	took    []time.Duration   // until an answer, each try included
	retried int
	last    time.Time     // of the last answer
	gap     time.Duration // the longest between two answers, since a fault began
	faults  []string
}

func newReplicaLoad(c *cluster) *replicaLoad {
	return &replicaLoad{cluster: c, urls: c.urls(), answers: make(map[string]string), sent: make(map[string]intent)}
}

// serve moves the load to other replicas.
func (l *replicaLoad) serve(urls []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.urls = urls
}

func (l *replicaLoad) current() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.urls
}

// start starts workers, which stop ends, at the latest with the test.
func (l *replicaLoad) start(t *testing.T, workers int) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	work := func(f func(sender, *rand.Rand), n int) {
		s := newSender(t, l.cluster.token, 2)
		wg.Go(func() {
			for rng := rand.New(rand.NewPCG(5, uint64(n))); ; {
				select {
				case <-done:
					return
				default:
					f(s, rng)
				}
			}
		})
	}
	for i := range workers {
		work(l.step, i)
	}
	if l.flip != nil {
		work(l.throw, workers)
	}
	stop = sync.OnceFunc(func() {
		close(done)
		wg.Wait()
	})
	t.Cleanup(stop)
	return stop
}

// step sends one intent: a new one or, one time in eight, one that another worker sends
// or has sent.
func (l *replicaLoad) step(s sender, rng *rand.Rand) { l.send(s, rng.IntN(2), l.next(rng)) }

// throw throws or releases the kill switch.
func (l *replicaLoad) throw(s sender, rng *rand.Rand) {
	if err := l.flip.insist(s, rng.IntN(2), l.current); err != nil {
		l.mu.Lock()
		l.faults = append(l.faults, err.Error())
		l.mu.Unlock()
	}
	time.Sleep(100 * time.Millisecond)
}

// send sends an intent until it is decided. What is sent while the kill switch is in
// force is not allowed, unless it was decided before.
func (l *replicaLoad) send(s sender, i int, in intent) {
	began, tries := time.Now(), 0
	var thrown int64 // when the last try was sent
	got, err := l.cluster.settle(s, i, in, func() []string {
		tries++
		if l.flip != nil {
			thrown = l.flip.thrown.Load()
		}
		return l.current()
	})
	passed := thrown%2 == 1 && l.flip.thrown.Load() == thrown && got.replayed == "" && strings.Contains(got.body, `"decision":"allow"`)
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.took = append(l.took, now.Sub(began)); tries > 1 {
		l.retried++
	}
	if !l.last.IsZero() {
		l.gap = max(l.gap, now.Sub(l.last))
	}
	l.last = now
	first, again := l.answers[in.id]
	switch {
	case err != nil:
		l.faults = append(l.faults, err.Error())
	case got.status != http.StatusOK:
		l.faults = append(l.faults, fmt.Sprintf("evaluate %s = %d %s, want 200", in.id, got.status, got.body))
	case again && got.body != first:
		l.faults = append(l.faults, fmt.Sprintf("evaluate %s = %s, earlier %s", in.id, got.body, first))
	case passed:
		l.faults = append(l.faults, "WRONG ALLOW after the kill switch was answered: "+got.body)
	default:
		l.answers[in.id] = got.body
	}
}

// during has a fault of a member begin under load and end, and says for how long
// nothing was answered. What it lasts is at least so long, and until some are answered
// if that is 0.
func (l *replicaLoad) during(t *testing.T, what string, lasts time.Duration, begin, end func(member int) error, member int) {
	t.Helper()
	l.await(t, between)
	l.mu.Lock()
	l.gap = 0
	retried := l.retried
	l.mu.Unlock()
	began := time.Now()
	must(t, begin(member))
	if time.Sleep(lasts); lasts == 0 {
		l.await(t, between)
	}
	must(t, end(member))
	ended := time.Since(began)
	l.await(t, between)
	l.mu.Lock()
	defer l.mu.Unlock()
	t.Logf("%s for %v: no answer for %v, %d intents took more than one try",
		what, ended.Round(time.Millisecond), l.gap.Round(time.Millisecond), l.retried-retried)
}

func (l *replicaLoad) next(rng *rand.Rand) intent {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.order); n > 0 && rng.IntN(8) == 0 {
		return l.sent[l.order[n-1-rng.IntN(min(n, 32))]]
	}
	in := newIntent([]string{"bot", "stranger"}[rng.IntN(2)], "deploy", fmt.Sprintf("k8s/staging/%d", len(l.order)))
	l.sent[in.id] = in
	l.order = append(l.order, in.id)
	return in
}

// await waits for n answers.
func (l *replicaLoad) await(t *testing.T, n int) {
	t.Helper()
	count := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.faults) > 0 {
			t.Fatalf("faults: %q", l.faults)
		}
		return len(l.took)
	}
	from := count()
	waitFor(t, fmt.Sprintf("%d answers", n), func() bool { return count() >= from+n })
}

// audit sends every intent once more: it has the answer that it had.
func (l *replicaLoad) audit(t *testing.T) {
	t.Helper()
	slices.Sort(l.took)
	n := len(l.took)
	t.Logf("%d intents, %d answers: p50 %v, p99 %v, at most %v; %d took more than one try",
		len(l.sent), n, l.took[n/2].Round(time.Millisecond), l.took[n*99/100].Round(time.Millisecond), l.took[n-1].Round(time.Millisecond), l.retried)
	const workers = 8
	together(workers, func(w int) {
		s := newSender(t, l.cluster.token, 1)
		for i := w; i < len(l.order); i += workers {
			in := l.sent[l.order[i]]
			got, err := l.cluster.settle(s, i, in, l.current)
			if err != nil || got.body != l.answers[in.id] {
				t.Errorf("evaluate %s once more = %d %s, %v, earlier %s", in.id, got.status, got.body, err, l.answers[in.id])
			}
		}
	})
	for _, fault := range l.faults {
		t.Error(fault)
	}
}
