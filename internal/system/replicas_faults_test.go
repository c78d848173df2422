package system

import (
	"math/rand/v2"
	"net/http"
	"testing"
	"time"
)

// killedReplicas kills one or both of two replicas, many times under load. No answer may be lost,
// and no intent may get two answers. Failed requests are sent again, and the history must be
// complete.
func killedReplicas(t *testing.T, c *cluster) {
	c.mortal = true
	c.start(t, 2)
	l := newReplicaLoad(c)
	stop := l.start(t, 8)
	f := newFlip(t, c, "other")
	for i := range rounds(3, 60) {
		l.await(t, between)
		c.replicas[i%2].kill(t)
		switch i % 3 {
		case 0: // a kill switch is answered after dead replicas were given up
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
	// A starting replica continues the chain of a replica that was given up. So there are as many
	// chains as replicas that are live or not yet given up. Two are live, and three can be killed
	// between two kill switches.
	c.proved(t, len(l.sent), 5)
	f.report()
	rows := history(t, c.replicas[0].url, c.token)
	c.stop(t)
	auditAnswers(t, c.data, l.answers, rows)
}

// killedPrimary kills the primary under the load of two replicas, and later kills two members.
// Requests that fail in the meantime are sent again.
func killedPrimary(t *testing.T, c *cluster) {
	underLoad(t, c, func(l *replicaLoad) {
		for range rounds(1, 10) {
			primary := c.primary(t)
			l.during(t, "the primary is killed", 0, c.set.Kill, c.set.Restart, primary)
			l.withoutMajority(t)
		}
	})
}

// withoutMajority kills two members and waits for a refusal. Later refusals must be immediate. Then
// it restarts the members.
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
	// A replica that has not noticed the loss waits once.
	const more = 10
	waited := 0
	for range more {
		began = time.Now()
		if got, err := s.evaluate(l.current()[0], in); err != nil || got.status != http.StatusServiceUnavailable {
			t.Errorf("evaluate without a majority = %d %s, %v, want 503", got.status, got.body, err)
		}
		if time.Since(began) > 5*time.Second {
			waited++
		}
	}
	if waited > 1 {
		t.Errorf("%d of %d refusals without a majority waited for the store, want at most 1", waited, more)
	}
	for _, member := range []int{0, 1} {
		must(t, l.cluster.set.Restart(member))
	}
	l.send(s, 0, in)
}

// underLoad calls f, which causes faults, while two replicas decide and a kill switch is set and
// reset. No answer may be lost, no intent may pass the kill switch, and the history must be
// complete.
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
