package system

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"writ.example/writ/api/operator"
	"writ.example/writ/examples"
)

// waiting is an intent that is held, approved and executed while servers are killed.
type waiting struct {
	in       intent
	id       string // the approval's id, once known
	approved string // the first answer to the approver
	used     string // the first answer to the agent that used the approval
}

// TestCrash_Approvals checks approvals across crashes. It kills the real binary while intents are
// held, approved and executed. A verdict or a use that was answered is not lost. A request without
// an answer can be repeated. Each approval leads to exactly one allow, and the history proves that
// allow.
func TestCrash_Approvals(t *testing.T) {
	kills := rounds(3, 8)
	data, token := newData(t)
	secret, err := data.Secret("")
	must(t, err)
	finance, err := operator.Sign(secret, examples.Organization, "finance", time.Now(), time.Hour)
	must(t, err)
	plans := manyEvaluations(t)
	p := start(t, data, plans)
	register(t, p.url, token)
	agent, approver := newSender(t, token, crashWorkers), newSender(t, finance, crashWorkers)
	var all []*waiting
	rng := rand.New(rand.NewPCG(5, 6))
	for range kills {
		for range 8 * crashWorkers {
			all = append(all, &waiting{in: newIntent("stranger", "deploy", fmt.Sprintf("k8s/%d", len(all)))})
		}
		url, lot := p.url, all[len(all)-8*crashWorkers:]
		var wg sync.WaitGroup
		for worker := range crashWorkers {
			wg.Go(func() {
				for i := worker; i < len(lot); i += crashWorkers {
					if !lot[i].release(t, agent, approver, url) {
						return // the server was killed
					}
				}
			})
		}
		time.Sleep(time.Duration(rng.IntN(500)) * time.Millisecond)
		p.kill(t)
		wg.Wait()
		p = start(t, data, plans)
	}
	done := 0
	for _, w := range all {
		if w.used != "" {
			done++
		}
		if !w.release(t, agent, approver, p.url) {
			t.Fatalf("the server that was not killed does not answer for intent %s", w.in.id)
		}
	}
	t.Logf("%d kills: %d of %d approvals were used before the last", kills, done, len(all))
	p.stop(t)
	if code, said := verifyData(t, data); code != exitOK {
		t.Errorf("writ verify = exit code %d, %s", code, said)
	}
}

// release sends w until it is held, approves w and uses the approval. It reports whether the server
// answered every request. Repeated requests must get the earlier answers.
func (w *waiting) release(t *testing.T, agent, approver sender, url string) bool {
	held, err := agent.evaluate(url, w.in)
	if err != nil {
		return false
	}
	var got struct {
		DecisionID string `json:"decision_id"`
	}
	if err := json.Unmarshal([]byte(held.body), &got); err != nil || w.id != "" && got.DecisionID != w.id {
		t.Errorf("held %s = %s, %v; want decision %q", w.in.id, held.body, err, w.id)
		return true
	}
	w.id = got.DecisionID
	verdict, err := approver.send(http.MethodPatch, url+"/v1/approvals/"+w.id, []byte(`{"status":"approved"}`))
	if err != nil {
		return false
	}
	var told struct {
		DecidedAt string `json:"decided_at"`
	}
	if err := json.Unmarshal([]byte(verdict.body), &told); err != nil || verdict.status != http.StatusOK || w.approved != "" && told.DecidedAt != w.approved {
		t.Errorf("approving %s = %d %s, %v; want it approved at %q", w.id, verdict.status, verdict.body, err, w.approved)
		return true
	}
	w.approved = told.DecidedAt
	under := intent{w.in.id, []byte(strings.TrimSuffix(string(w.in.body), "}") + `,"approval_id":"` + w.id + `"}`)}
	for range 2 {
		allowed, err := agent.evaluate(url, under)
		if err != nil {
			return false
		}
		if !strings.Contains(allowed.body, `"approved":true`) || w.used != "" && allowed.body != w.used {
			t.Errorf("using %s = %d %s, want the one allow, earlier %q", w.id, allowed.status, allowed.body, w.used)
		}
		w.used = allowed.body
	}
	return true
}
