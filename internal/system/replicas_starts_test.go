package system

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// twoForOneSlot kills a replica under load. Once the replica was given up, two replicas start at
// the same time. One of the two must continue the chain of the killed replica.
func twoForOneSlot(t *testing.T, c *cluster) {
	c.mortal = true
	c.start(t, 2)
	l := newReplicaLoad(c)
	stop := l.start(t, 8)
	f := newFlip(t, c, "other")
	operator := newSender(t, c.token, 1)
	for range rounds(1, 20) {
		l.await(t, between)
		c.replicas[1].kill(t)
		if err := f.insist(operator, 0, func() []string { return c.urls()[:1] }); err != nil { // is answered once who is dead was given up
			t.Fatal(err)
		}
		a, aReady := c.begin(t)
		b, bReady := c.begin(t)
		a.serves(t, aReady)
		b.serves(t, bReady)
		c.replicas = []*process{c.replicas[0], a, b}
		l.serve(c.urls())
		l.await(t, between)
		c.replicas = c.replicas[:2]
		l.serve(c.urls())
		b.stop(t)
	}
	stop()
	l.audit(t)
	f.report()
	// There are two chains at first. The second new replica adds a third chain.
	c.proved(t, len(l.sent), 3)
	rows := history(t, c.replicas[0].url, c.token)
	c.stop(t)
	auditAnswers(t, c.data, l.answers, rows)
}

// startWithoutPrimary starts a replica while the replica set has no primary. The replica must log
// what it waits for, and serve once there is a primary. After 30 seconds without a primary it must
// exit and tell the operator what to do.
func startWithoutPrimary(t *testing.T, c *cluster) {
	c.start(t, 1)
	first := newSender(t, c.token, 1)
	in := newIntent("bot", "deploy", "k8s/staging/web")
	before, err := c.settle(first, 0, in, c.urls)
	must(t, err)
	c.stop(t)
	primary := c.primary(t)
	members := []int{primary, (primary + 1) % 3}
	for _, i := range members {
		must(t, c.set.Kill(i))
	}
	if soaking() {
		began := time.Now()
		p, ready := c.begin(t)
		select {
		case ok := <-ready:
			if ok {
				t.Error("writ serve without a primary serves")
			}
		case <-time.After(2 * patience):
			t.Fatalf("writ serve without a primary neither serves nor ends\n%s", p.stderr)
		}
		t.Logf("without a primary writ serve ended after %v: %s", time.Since(began).Round(time.Second), p.stderr)
		if text := p.stderr.String(); !strings.Contains(text, "had no primary that could be reached for 30s: start a majority of its members") {
			t.Errorf("writ serve without a primary says %q, want that it had none for 30s, and what to do", text)
		}
	}
	p, ready := c.begin(t)
	waitFor(t, "a word about the primary", func() bool { return strings.Contains(p.stderr.String(), "waiting for a primary") })
	select {
	case <-ready:
		t.Fatalf("writ serve serves or has ended without a primary\n%s", p.stderr)
	default:
	}
	for _, i := range members {
		must(t, c.set.Restart(i))
	}
	began := time.Now()
	p.serves(t, ready)
	t.Logf("it served %v after two members were started", time.Since(began).Round(time.Millisecond))
	c.replicas = []*process{p}
	after, err := c.settle(first, 0, in, c.urls)
	if err != nil || after.status != http.StatusOK || after.body != before.body {
		t.Errorf("evaluate = %d %s, %v, earlier %s", after.status, after.body, err, before.body)
	}
	c.proved(t, 1, 1)
	c.stop(t)
}
