package system

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"writ.example/writ/internal/freeze"
)

// killSwitchOverReplicas sets and resets a kill switch at two replicas in turn, under load on both.
// Once the PATCH is answered, the kill switch must apply on both replicas.
func killSwitchOverReplicas(t *testing.T, c *cluster) {
	c.start(t, 2)
	flipOverReplicas(t, c, newFlip(t, c, "bot"))
	for _, r := range history(t, c.replicas[0].url, c.token) {
		if r.Writer == "" || r.PolicyRevision == 0 || r.AgentRevision == 0 {
			t.Errorf("a row says writer %q, revisions %d and %d, want those it was decided under", r.Writer, r.PolicyRevision, r.AgentRevision)
		}
	}
	c.stop(t)
}

// stopOverReplicas does the same with the switch that stops the organization.
func stopOverReplicas(t *testing.T, c *cluster) {
	c.start(t, 2)
	flipOverReplicas(t, c, newStop(t, c))
	c.stop(t)
}

func flipOverReplicas(t *testing.T, c *cluster, f *flip) {
	t.Helper()
	var sent, allows atomic.Int64
	noise := func(p *process) func() {
		return background(t, 2, c.token, func(s sender) bool {
			allowed, err := f.watched(s, p.url)
			if err != nil {
				t.Errorf("noise: %v", err)
			}
			sent.Add(1)
			if allowed {
				allows.Add(1)
			}
			return err == nil
		})
	}
	release := []func(){noise(c.replicas[0]), noise(c.replicas[1])}
	operator := newSender(t, c.token, 1)
	others := []sender{newSender(t, c.token, 1), newSender(t, c.token, 1)}
	for i := range rounds(20, 200) {
		f.set(operator, c.replicas[i/2%2])
		together(2, func(n int) {
			allowed, err := f.watched(others[n], c.replicas[n].url)
			if err != nil || allowed != (i%2 == 1) {
				t.Errorf("flip %d, replica %d: allowed %t, %v", i, n, allowed, err)
			}
		})
		sent.Add(2)
		if t.Failed() {
			break
		}
	}
	for _, f := range release {
		f()
	}
	f.report()
	t.Logf("%d intents meanwhile, of which the noise has %d allowed", sent.Load(), allows.Load())
	c.proved(t, int(sent.Load()), 2)
}

// killSwitchBesideFrozen sets a kill switch while one of two replicas is frozen during its work.
// When the frozen replica continues, it must not allow any request from before or during the
// freeze. The exception is a decision that was already in the history when the PATCH was answered.
func killSwitchBesideFrozen(t *testing.T, c *cluster) {
	c.start(t, 2)
	flipBesideFrozen(t, c, newFlip(t, c, "bot"))
	c.stop(t)
}

// stopBesideFrozen does the same with the switch that stops the organization.
func stopBesideFrozen(t *testing.T, c *cluster) {
	c.start(t, 2)
	flipBesideFrozen(t, c, newStop(t, c))
	c.stop(t)
}

func flipBesideFrozen(t *testing.T, c *cluster, f *flip) {
	t.Helper()
	const busy, waiting = 8, 16
	operator := newSender(t, c.token, 1)
	for i := range rounds(3, 20) {
		live, frozen := c.replicas[i%2], c.replicas[1-i%2]
		var mu sync.Mutex
		answers := make(map[string]answer)
		note := func(in intent, got answer, err error) {
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				answers[in.id] = got
			}
		}
		release := background(t, busy, c.token, func(s sender) bool { // these are running at the freeze
			in := newIntent("bot", "deploy", "k8s/staging/busy")
			got, err := s.evaluate(frozen.url, in)
			note(in, got, err)
			return err == nil && got.status == http.StatusOK
		})
		waitFor(t, "answers of the replica to freeze", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(answers) > 4*busy
		})
		freeze.Process(t, frozen.cmd.Process)
		late := make([]intent, waiting)
		lateAnswers, errs := make([]answer, waiting), make([]error, waiting)
		var taken sync.WaitGroup
		for n := range late { // the kernel accepts these for the frozen process
			late[n] = newIntent("bot", "deploy", "k8s/staging/late")
			s := newSender(t, c.token, 1)
			taken.Go(func() { lateAnswers[n], errs[n] = s.evaluate(frozen.url, late[n]) })
		}
		f.set(operator, live)
		stood := history(t, live.url, c.token)
		must(t, frozen.cmd.Process.Signal(syscall.SIGCONT))
		taken.Wait()
		release()
		refused := 0
		for n, got := range lateAnswers {
			if strings.Contains(got.body, `"decision":"allow"`) {
				t.Errorf("WRONG ALLOW of what a frozen replica took before it went on: %s", got.body)
			}
			if errs[n] == nil && got.status != http.StatusOK && (got.status != http.StatusServiceUnavailable || got.retryAfter == "") {
				t.Errorf("a frozen replica answers %d %s, Retry-After %q", got.status, got.body, got.retryAfter)
			}
			if got.status != http.StatusOK {
				refused++
			}
			again, err := c.settle(operator, 0, late[n], func() []string { return []string{live.url} })
			if err != nil || !strings.Contains(again.body, f.code) {
				t.Errorf("the same intent at the live replica = %d %s, %v, want it denied", again.status, again.body, err)
			}
		}
		inFlight := 0
		for id, got := range answers {
			if !strings.Contains(got.body, `"decision":"allow"`) {
				continue
			}
			if stood[id] == nil {
				t.Errorf("WRONG ALLOW of what was in flight at a frozen replica: %s", got.body)
			}
			inFlight++
		}
		t.Logf("freeze %d: the PATCH took %v; %d allowed before it, %d of %d taken by the frozen replica refused",
			i, f.took[len(f.took)-1].Round(time.Millisecond), inFlight, refused, waiting)
		frozen.kill(t)
		c.replicas[1-i%2] = c.launch(t)
		f.set(operator, c.replicas[1-i%2])
	}
}
