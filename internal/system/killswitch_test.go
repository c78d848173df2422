package system

import (
	"net/http"
	"strings"
	"sync"
	"testing"
)

// TestKillSwitch_InForceWhenItsResponseArrives disables and enables an agent under load. An intent
// that is sent after the response to the PATCH must be denied. That holds on every connection and
// for each id of the agent.
func TestKillSwitch_InForceWhenItsResponseArrives(t *testing.T) {
	const rounds, noise = 200, 4
	p, _, token := deployed(t, manyEvaluations(t))
	one := newSender(t, token, 1)
	operator := client{one, p.url}
	agent := operator.newAgent(t, "bot")
	release := background(t, noise, token, func(s sender) bool {
		_, err := s.evaluate(p.url, newIntent("bot", "deploy", "k8s/staging/noise"))
		if err != nil {
			t.Errorf("noise: %v", err)
		}
		return err == nil
	})
	defer release()
	others := []sender{newSender(t, token, 1), newSender(t, token, 1)}
	for i := range rounds {
		status, want := "disabled", "agent.disabled:"
		if i%2 == 1 {
			status, want = "active", "policy.allowed:"
		}
		operator.setStatus(t, agent, status)
		var wg sync.WaitGroup
		for _, s := range append(others, one) {
			wg.Go(func() {
				got, err := s.evaluate(p.url, newIntent("bot", "deploy", "k8s/staging/web"))
				if err != nil || got.status != http.StatusOK || !strings.Contains(got.body, `"reasons":["`+want) {
					t.Errorf("round %d, agent %s: evaluate = %d %s, %v, want reason %s", i, status, got.status, got.body, err, want)
				}
			})
		}
		wg.Wait()
		if status == "disabled" {
			got, err := one.evaluate(p.url, newIntent(agent, "deploy", "k8s/staging/web"))
			if err != nil || !strings.Contains(got.body, want) {
				t.Errorf("round %d, agent %s named by its id: evaluate = %s, %v, want reason %s", i, status, got.body, err, want)
			}
		}
		if t.Failed() {
			return
		}
	}
}
