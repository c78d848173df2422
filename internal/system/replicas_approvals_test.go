package system

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"writ.example/writ/api/operator"
	"writ.example/writ/examples"
)

// raceOfOneApproval checks concurrent use of approvals. One replica holds some intents. Two other
// replicas approve and reject each intent at the same time. Then all three replicas get the intent
// with its approval at the same time, while half of the approvals are revoked. Each approval must
// have one verdict, and each intent one answer.
func raceOfOneApproval(t *testing.T, c *cluster) {
	const replicas = 3
	c.start(t, replicas)
	secret, err := c.data.Secret("")
	must(t, err)
	finance, err := operator.Sign(secret, examples.Organization, "finance", time.Now(), time.Hour)
	must(t, err)
	agents, approvers := make([]sender, replicas), make([]sender, replicas)
	for i := range agents {
		agents[i], approvers[i] = newSender(t, c.token, 1), newSender(t, finance, 1)
	}
	n := rounds(40, 400)
	for round := range n {
		in := newIntent("stranger", "deploy", fmt.Sprintf("k8s/%d", round))
		held, err := c.settle(agents[0], 0, in, c.urls)
		_, rest, ok := strings.Cut(held.body, `"decision_id":"`)
		if err != nil || !ok {
			t.Fatalf("evaluate = %+v, %v", held, err)
		}
		id, _, _ := strings.Cut(rest, `"`)
		judge := func(i int, status string) answer {
			got, err := approvers[i].send(http.MethodPatch, c.replicas[i].url+"/v1/approvals/"+id, []byte(`{"status":"`+status+`"}`))
			if err != nil {
				t.Error(err)
			}
			return got
		}
		verdicts := make([]answer, 2)
		together(2, func(i int) { verdicts[i] = judge(1+i, []string{"approved", "rejected"}[i]) })
		if ok := verdicts[0].status == http.StatusOK; ok == (verdicts[1].status == http.StatusOK) {
			t.Fatalf("approving = %+v and rejecting = %+v, want one of them", verdicts[0], verdicts[1])
		}
		in.body = []byte(strings.TrimSuffix(string(in.body), "}") + `,"approval_id":"` + id + `"}`)
		answers, errs, revoked := make([]answer, replicas), make([]error, replicas), answer{}
		together(replicas+1, func(i int) {
			if i < replicas {
				answers[i], errs[i] = c.settle(agents[i], i, in, c.urls)
			} else if round%2 == 0 {
				revoked = judge(round%replicas, "revoked")
			}
		})
		allowed := verdicts[0].status == http.StatusOK && revoked.status != http.StatusOK
		for i, got := range answers {
			if errs[i] != nil || got.body != answers[0].body || strings.Contains(got.body, `"approved":true`) != allowed {
				t.Fatalf("replica %d: %+v, %v; replica 0 says %s; approved %+v, revoked %+v", i, got, errs[i], answers[0].body, verdicts[0], revoked)
			}
		}
	}
	c.proved(t, 2*n, replicas)
	c.stop(t)
}
