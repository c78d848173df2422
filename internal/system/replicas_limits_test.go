package system

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// raceToALimitOverTime checks a limit over time. Three replicas decide many intents of an agent
// that may do 20 an hour. One replica is killed. In total 20 intents are allowed, less the unused
// places of the killed replica. After its restart no more intents are allowed.
func raceToALimitOverTime(t *testing.T, c *cluster) {
	const replicas, limit = 3, 20
	c.mortal = true
	c.start(t, replicas)
	api := newClient(t, c.replicas[0].url, c.token)
	rule := object{
		"name": "limit", "condition": fmt.Sprintf(`{"count":{"by":["agent_id"],"window":"1h"},"gt":%d}`, limit),
		"action": `{"decision":"deny","reason":"too many"}`,
	}
	api.do(t, http.MethodPost, "/v1/rules", rule, http.StatusCreated, nil)
	var allowed, decided atomic.Int64
	s := newSender(t, c.token, 200)
	all := func(urls []string) {
		together(200, func(i int) {
			got, err := c.settle(s, i, newIntent("bot", "deploy", "k8s/staging/web"), func() []string { return urls })
			if err != nil || got.status != http.StatusOK {
				t.Errorf("evaluate = %d %s, %v", got.status, got.body, err)
			}
			if strings.Contains(got.body, `"decision":"allow"`) {
				allowed.Add(1)
			}
			if decided.Add(1) == 10 {
				c.replicas[2].kill(t)
			}
		})
	}
	all(c.urls())
	t.Logf("%d were allowed, and one replica was killed", allowed.Load())
	if n := allowed.Load(); n > limit || n < 1 {
		t.Errorf("%d were allowed, want %d, less what the killed replica was deciding", n, limit)
	}
	c.replicas[2] = c.launch(t)
	all(c.urls())
	if n := allowed.Load(); n > limit {
		t.Errorf("%d were allowed in the end, want %d at most", n, limit)
	}
	c.proved(t, 400, replicas+1)
	c.stop(t)
}
