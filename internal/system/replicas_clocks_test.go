package system

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"writ.example/writ/api/operator"
	"writ.example/writ/examples"
)

// clocksApart checks three replicas with different clocks. One clock is an hour ahead, and another
// is an hour behind. Each decision is settled through another replica than the one that decided.
// No intent may pass a kill switch, and the history must be complete.
func clocksApart(t *testing.T, c *cluster) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("SKIPPED: the clock of a process can be changed on Linux on amd64 alone")
	}
	secret, err := c.data.Secret("")
	must(t, err)
	// A replica whose clock is an hour behind would refuse a token that is issued now.
	if c.token, err = operator.Sign(secret, examples.Organization, "test", time.Now().Add(-2*time.Hour), 4*time.Hour); err != nil {
		t.Fatal(err)
	}
	c.start(t, 1)
	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		c.replicas = append(c.replicas, startFaulty(t, []string{clockAhead + "=" + ahead.String()}, c.data, c.serveFlags()...))
	}
	for _, p := range c.replicas[1:] {
		waitFor(t, "a replica with another clock not to be ready", func() bool {
			status, _ := get(t, p.admin+"/readyz")
			return status == http.StatusServiceUnavailable
		})
	}
	l := newReplicaLoad(c)
	l.flip = newFlip(t, c, "bot")
	stop := l.start(t, 8)
	var settled atomic.Int64
	release := background(t, 2, c.token, func(s sender) bool {
		if err := settleAcross(c, s, l); err != nil {
			t.Error(err)
			return false
		}
		settled.Add(1)
		return true
	})
	for range rounds(5, 50) {
		l.await(t, between)
	}
	stop()
	release()
	l.audit(t)
	l.flip.report()
	t.Logf("%d settled by another replica than the one that had decided", settled.Load())
	rows := history(t, c.replicas[0].url, c.token)
	var least, most time.Duration
	for _, r := range rows {
		off := time.Until(r.DecidedAt)
		least, most = min(least, off), max(most, off)
	}
	if most < 0 || least > -time.Hour {
		t.Errorf("rows were decided from %v to %v from now, want clocks an hour ahead and behind", least, most)
	}
	c.proved(t, len(l.sent), len(c.replicas))
	c.stop(t)
	auditAnswers(t, c.data, l.answers, rows)
}

// settleAcross sends an intent to one replica and the outcome of the action to another replica.
func settleAcross(c *cluster, s sender, l *replicaLoad) error {
	i := rand.IntN(len(c.replicas))
	by := c.replicas[(i+1+rand.IntN(len(c.replicas)-1))%len(c.replicas)]
	in := newIntent("stranger", "deploy", "k8s/staging/settled")
	l.mu.Lock()
	l.addLocked(in)
	l.mu.Unlock()
	l.send(s, i, in)
	l.mu.Lock()
	body := l.answers[in.id]
	l.mu.Unlock()
	_, rest, _ := strings.Cut(body, `"decision_id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	got, err := s.send(http.MethodPost, by.url+"/v1/actions/record", fmt.Appendf(nil, `{"decision_id": %q, "outcome": "failed"}`, id))
	if err != nil || got.status != http.StatusOK {
		return fmt.Errorf("settling %s, which was answered %s, at another replica = %d %s, %w", id, body, got.status, got.body, err)
	}
	return nil
}
