package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"
)

// killedReplicas kills one of two replicas and both, time and again under load. What
// was answered stands, nothing is answered in two ways, what fails can be sent again,
// and the history is whole.
func killedReplicas(t *testing.T, c *cluster) {
	const workers, between = 8, 200 // answers
	c.start(t, 2)
	l := newReplicaLoad(c)
	stop := l.start(t, workers)
	f := newFlip(t, c, "other")
	for i := range rounds(6, 60) {
		l.await(t, between)
		c.replicas[i%2].kill(t)
		switch i % 3 {
		case 0: // a kill switch is answered once who is dead was given up
			f.set(newSender(t, c.token, 1), c.replicas[1-i%2])
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
	const workers, between = 8, 200
	c.start(t, 2)
	l := newReplicaLoad(c)
	stop := l.start(t, workers)
	for range rounds(1, 10) {
		l.await(t, between)
		primary, err := c.set.Primary(t.Context())
		if err == nil {
			err = c.set.Kill(primary)
		}
		if err != nil {
			t.Fatal(err)
		}
		l.await(t, between+workers) // these may have been under way
		if err := c.set.Restart(primary); err != nil {
			t.Fatal(err)
		}
		l.await(t, between)
		l.withoutMajority(t)
	}
	l.await(t, between)
	stop()
	l.audit(t)
	c.proved(t, len(l.sent), 2)
	rows := history(t, c.replicas[0].url, c.token)
	c.stop(t)
	auditAnswers(t, c.data, l.answers, rows)
}

// withoutMajority kills two members, waits for a refusal, after which others take no
// time, and restarts them.
func (l *replicaLoad) withoutMajority(t *testing.T) {
	t.Helper()
	for _, member := range []int{0, 1} {
		if err := l.cluster.set.Kill(member); err != nil {
			t.Fatal(err)
		}
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
		if err := l.cluster.set.Restart(member); err != nil {
			t.Fatal(err)
		}
	}
	l.send(s, 0, in)
}

// replicaLoad sends intents to replicas, each to another when one fails.
type replicaLoad struct {
	cluster *cluster

	mu       sync.Mutex
	urls     []string
	sent     map[string]intent
	order    []string
	answers  map[string]string // body by intent
	answered int
	retried  int
	longest  time.Duration
	faults   []string
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
	for i := range workers {
		s := newSender(t, l.cluster.token, 2)
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(5, uint64(i)))
			for {
				select {
				case <-done:
					return
				default:
					l.step(s, rng)
				}
			}
		})
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

// send sends an intent until it is decided.
func (l *replicaLoad) send(s sender, i int, in intent) {
	began, tries := time.Now(), 0
	got, err := l.cluster.settle(s, i, in, func() []string { tries++; return l.current() })
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answered++; tries > 1 {
		l.retried++
		l.longest = max(l.longest, time.Since(began))
	}
	first, again := l.answers[in.id]
	switch {
	case err != nil:
		l.faults = append(l.faults, err.Error())
	case got.status != http.StatusOK:
		l.faults = append(l.faults, fmt.Sprintf("evaluate %s = %d %s, want 200", in.id, got.status, got.body))
	case again && got.body != first:
		l.faults = append(l.faults, fmt.Sprintf("evaluate %s = %s, earlier %s", in.id, got.body, first))
	default:
		l.answers[in.id] = got.body
	}
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
		return l.answered
	}
	from := count()
	waitFor(t, fmt.Sprintf("%d answers", n), func() bool { return count() >= from+n })
}

// audit sends every intent once more: it has the answer that it had.
func (l *replicaLoad) audit(t *testing.T) {
	t.Helper()
	t.Logf("%d intents, %d answers, of which %d took more than one try, at most %v", len(l.sent), l.answered, l.retried, l.longest.Round(time.Millisecond))
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
