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

	"github.com/go-json-experiment/json"
)

// gate returns revision n of a library of two files. Each knows one resource, of that revision.
func gate(n int64) map[string]string {
	return map[string]string{
		"a.rego": fmt.Sprintf("package lib.gate\n\na(r) if r == \"k8s/%d\"\n", n),
		"b.rego": fmt.Sprintf("package lib.gate\n\nb(r) if r == \"k8s/%d\"\n", n),
	}
}

// TestCrash_Libraries kills the real binary while a library changes that rules import. Afterwards the
// library has one revision in all of its files, no older than the last that was answered, and the
// rules decide by it.
func TestCrash_Libraries(t *testing.T) {
	kills := rounds(4, 20)
	data, token := newData(t)
	p := start(t, data)
	register(t, p.url, token)
	c, s := newClient(t, p.url, token), newSender(t, token, 1)
	const path = "/v1/libraries/gate"
	c.do(t, http.MethodPut, path, object{"modules": gate(0)}, http.StatusCreated, nil)
	const r = "(input.intent.resource)"
	for reason, source := range map[string]string{
		"both files": "data.lib.gate.a" + r + "; data.lib.gate.b" + r,
		"torn":       "data.lib.gate.a" + r + "; not data.lib.gate.b" + r,
		"torn, too":  "not data.lib.gate.a" + r + "; data.lib.gate.b" + r,
	} {
		condition, err := json.Marshal(object{"rego": source})
		must(t, err)
		action, err := json.Marshal(object{"decision": "deny", "reason": reason})
		must(t, err)
		c.do(t, http.MethodPost, "/v1/rules", object{"name": reason, "condition": string(condition), "action": string(action)},
			http.StatusCreated, nil)
	}
	rng := rand.New(rand.NewPCG(7, 8))
	var sent, answered atomic.Int64
	for range kills {
		url := p.url
		var changes sync.WaitGroup
		changes.Go(func() {
			for {
				n := sent.Add(1)
				body, err := json.Marshal(object{"modules": gate(n)})
				if err != nil {
					t.Error(err)
					return
				}
				got, err := s.send(http.MethodPut, url+path, body)
				if err != nil {
					return // the server was killed
				}
				if got.status != http.StatusOK {
					t.Errorf("PUT of revision %d = %d %s, want 200", n, got.status, got.body)
					return
				}
				answered.Store(n)
			}
		})
		target := answered.Load() + 1 + rng.Int64N(10)
		waitFor(t, "changes of the library", func() bool { return answered.Load() >= target || t.Failed() })
		time.Sleep(time.Duration(rng.IntN(5)) * time.Millisecond) // into the next change
		p.kill(t)
		changes.Wait()
		p = start(t, data)

		var stored struct {
			Modules map[string]string `json:"modules"`
		}
		newClient(t, p.url, token).do(t, http.MethodGet, path, nil, http.StatusOK, &stored)
		revision := int64(-1)
		for n := answered.Load(); n <= sent.Load(); n++ {
			if want := gate(n); stored.Modules["a.rego"] == want["a.rego"] && stored.Modules["b.rego"] == want["b.rego"] {
				revision = n
			}
		}
		if revision < 0 {
			t.Fatalf("after a crash the library is %q, want one revision of %d to %d", stored.Modules, answered.Load(), sent.Load())
		}
		for n := max(0, revision-2); n <= sent.Load()+1; n++ {
			got := s.decide(t, p.url, newIntent("bot", "deploy", fmt.Sprintf("k8s/%d", n)))
			want := `"approved":true`
			if n == revision {
				want = "both files"
			}
			if !strings.Contains(got.body, want) {
				t.Errorf("by revision %d the resource k8s/%d is decided %s, want %q", revision, n, got.body, want)
			}
		}
	}
	t.Logf("%d kills, %d changes, of which %d got no answer", kills, sent.Load(), kills)
	p.stop(t)
	if code, said := verifyData(t, data); code != exitOK {
		t.Errorf("writ verify = exit code %d, %s", code, said)
	}
}
