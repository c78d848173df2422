package system

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestCrash_Stop kills the real binary while the organization is stopped and resumed in turn, and right
// after an answer. Afterwards decisions follow the status that is read. If every PATCH was answered, the
// last one has set it.
func TestCrash_Stop(t *testing.T) {
	kills := rounds(4, 20)
	data, token := newData(t)
	p := start(t, data)
	register(t, p.url, token)
	s := newSender(t, token, 1)
	rng := rand.New(rand.NewPCG(9, 10))
	statuses := []string{"active", "stopped"}
	var sent, answered atomic.Int64 // PATCH n sets the status n%2
	stopped := 0
	for i := range kills {
		url, done := p.url, make(chan struct{})
		var changes sync.WaitGroup
		changes.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				n := sent.Add(1)
				got, err := s.send(http.MethodPatch, url+organizationStatus, fmt.Appendf(nil, `{"status": %q}`, statuses[n%2]))
				if err != nil {
					return // the server was killed
				}
				if got.status != http.StatusOK {
					t.Errorf("PATCH %d = %d %s, want 200", n, got.status, got.body)
					return
				}
				answered.Store(n)
			}
		})
		target := answered.Load() + 1 + rng.Int64N(10)
		waitFor(t, "answers to PATCHes", func() bool { return answered.Load() >= target || t.Failed() })
		if i%2 == 0 { // every PATCH is answered
			close(done)
			changes.Wait()
			p.kill(t)
		} else {
			time.Sleep(time.Duration(rng.IntN(5)) * time.Millisecond) // into the next change
			p.kill(t)
			changes.Wait()
		}
		p = start(t, data)

		var is struct {
			Status string `json:"status"`
		}
		newClient(t, p.url, token).do(t, http.MethodGet, organizationStatus, nil, http.StatusOK, &is)
		if sent.Load() == answered.Load() && is.Status != statuses[answered.Load()%2] {
			t.Errorf("the status is %s, want that of the PATCH that was answered, %s", is.Status, statuses[answered.Load()%2])
		}
		want := "policy.allowed:"
		if is.Status == "stopped" {
			stopped++
			want = "organization.stopped:"
		}
		if got := s.decide(t, p.url, newIntent("bot", "deploy", "k8s/staging/web")); !strings.Contains(got.body, `"reasons":["`+want) {
			t.Errorf("after a crash the status is %s, and a decision %s", is.Status, got.body)
		}
		// The next PATCH must set another status, or it would change nothing.
		n := sent.Load()
		if is.Status != statuses[n%2] {
			n = sent.Add(1)
		}
		answered.Store(n)
	}
	t.Logf("%d kills, after %d of them the organization was stopped, %d changes", kills, stopped, sent.Load())
	newClient(t, p.url, token).do(t, http.MethodPatch, organizationStatus, object{"status": "stopped"}, http.StatusOK, nil)
	p.kill(t)
	p = start(t, data)
	if got := s.decide(t, p.url, newIntent("bot", "deploy", "k8s/staging/web")); !strings.Contains(got.body, "organization.stopped:") {
		t.Errorf("a stop that was answered before a crash: the decision after it is %s", got.body)
	}
	p.stop(t)
	if code, said := verifyData(t, data); code != exitOK {
		t.Errorf("writ verify = exit code %d, %s", code, said)
	}
}
