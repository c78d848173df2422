package system

import (
	"bytes"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// interrupt pauses the process repeatedly, for about 0.4 s each time, until release is called. An
// overcommitted host pauses a process in the same way.
func (p *process) interrupt(t *testing.T) (release func() int64) {
	t.Helper()
	var (
		stops atomic.Int64
		wg    sync.WaitGroup
	)
	end, rng := make(chan struct{}), rand.New(rand.NewPCG(29, 1))
	signal := func(s syscall.Signal) {
		if err := p.cmd.Process.Signal(s); err != nil {
			t.Errorf("signal %v: %v", s, err)
		}
	}
	wg.Go(func() {
		for {
			select {
			case <-end:
				return
			case <-time.After(time.Duration(20+rng.IntN(180)) * time.Millisecond):
			}
			signal(syscall.SIGSTOP)
			time.Sleep(time.Duration(300+rng.IntN(200)) * time.Millisecond)
			signal(syscall.SIGCONT)
			stops.Add(1)
		}
	})
	return func() int64 {
		close(end)
		wg.Wait()
		return stops.Load()
	}
}

// TestDecision_Rules_AStoppedProcessDecidesTheSame checks "CEL and Rego … run with a cost limit,
// counted in steps … and never in wall time (time that runs out is a 503, with nothing decided)."
// The server is paused at random while it decides 4,000 intents (in a soak test 20,000) that differ only in their ids.
// All decisions must be equal, except for answers of 503. Simulations, which are traced, must get the
// same decision.
func TestDecision_Rules_AStoppedProcessDecidesTheSame(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it decides 4,000 intents while the server is stopped again and again")
	}
	const workers = 16
	intents := int64(rounds(4_000, 20_000))
	p, _, token := deployed(t, manyEvaluations(t))
	api := newClient(t, p.url, token)
	for name, rule := range map[string]object{
		// An evaluation spends most of its time in this rule, so most pauses happen here.
		"Two keys have one value": {"action": `{"decision":"deny"}`,
			"condition": `{"rego":"count([1 | some i, a in input.intent.metadata; some j, b in input.intent.metadata; i != j; a == b]) > 0"}`},
		"A key has the value none": {"action": `{"decision":"deny"}`, "condition": `{"cel":"intent.metadata.exists(k, intent.metadata[k] == 'none')"}`},
	} {
		rule["name"] = name
		api.do(t, http.MethodPost, "/v1/rules", rule, http.StatusCreated, nil)
	}
	var (
		left            atomic.Int64
		decided, failed atomic.Int64
		senders         = newSender(t, token, workers)
	)
	left.Store(intents)
	withMetadata := []byte(`"metadata":{"a":"1","b":"2","c":"3","d":"4","e":"5","f":"6","g":"7","h":"8"},"issued_at"`)
	stops := p.interrupt(t)
	together(workers, func(int) {
		for n := left.Add(-1); n >= 0 && !t.Failed(); n = left.Add(-1) {
			body := bytes.Replace(newIntent("bot", "deploy", "k8s/staging/web").body, []byte(`"issued_at"`), withMetadata, 1)
			path, want := "/v1/policy/evaluate", `"approved":true`
			if n%50 == 0 {
				path, want = "/v1/policy/simulate", `{"dry_run":true,"decision":"allow",`
			}
			got, err := senders.send(http.MethodPost, p.url+path, body)
			switch {
			case err == nil && got.status == http.StatusOK && strings.Contains(got.body, want):
				decided.Add(1)
			case err == nil && got.status == http.StatusServiceUnavailable:
				failed.Add(1)
			default:
				t.Errorf("%s = %d %s, %v, want %s or 503", path, got.status, got.body, err, want)
			}
		}
	})
	if n := stops(); n < 10 || decided.Load() < intents/4 {
		t.Errorf("the server was stopped %d times and decided %d of %d intents: too few to tell anything", n, decided.Load(), intents)
	} else {
		t.Logf("%d stops, %d decided, %d answered 503", n, decided.Load(), failed.Load())
	}
}
