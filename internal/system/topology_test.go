package system

import (
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"writ.example/writ/storage/datadir"
	"writ.example/writ/storage/mongodb/mongotest"
)

// topology has the services of docker-compose.yml as local processes, without Grafana.
// Alertmanager's messages go to pager.
type topology struct {
	set   *mongotest.Set
	data  datadir.Dir // the keys that the replicas share
	token string
	flags []string
	writs [2]*process
	api   string // the balancer's address
	prom  *promServer
	pager *pager
	alert string // Alertmanager's address
}

// startTopology starts a topology that runs until the test ends.
func startTopology(t *testing.T) *topology {
	t.Helper()
	balancer := needDebian(t, "usr/sbin/haproxy", haproxyPackages...)
	prometheus := needDebian(t, "usr/bin/prometheus", "prometheus")
	c := &topology{set: mongotest.For(t, 3)}
	c.data, c.token = newData(t)
	c.flags = []string{"--store=mongodb", "--mongodb-uri", c.set.URI(), "--trusted-proxies=127.0.0.0/8", manyEvaluations(t)}
	for i := range c.writs {
		c.writs[i] = start(t, c.data, c.flags...)
	}
	var metrics string
	c.api, metrics, _ = startHAProxy(t, balancer, c.writs[0], c.writs[1])
	c.pager = newPager(t)
	c.alert = startAlertmanager(t, c.pager)
	c.prom = startPrometheus(t, prometheus, map[string][]string{
		"alertmanager": {c.alert},
		"haproxy":      {metrics}, "writ": {hostOf(c.writs[0].admin), hostOf(c.writs[1].admin)},
	})
	register(t, c.api, c.token)
	return c
}

// TestCluster_KillOfAReplicaLosesNothing kills one of two replicas under load. The client repeats
// an intent once if the first answer is not 200. No intent may be lost. At most one intent in a
// thousand may be sent twice: a moment of a machine that stands still costs each of the 8 clients one,
// so the load goes on for a thousand intents each. The history must contain exactly the answers.
func TestCluster_KillOfAReplicaLosesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED in short mode: starts a replica set and waits for Prometheus")
	}
	c := startTopology(t)
	var (
		mu             sync.Mutex
		answers        = make(map[string]string)
		sent, repeated atomic.Int64
	)
	release := background(t, 8, c.token, func(s sender) bool {
		in := newIntent("bot", "deploy", "k8s/staging/web")
		got, err := s.evaluate(c.api, in)
		sent.Add(1)
		if err != nil || got.status != http.StatusOK {
			t.Logf("sent again after %d %.200s %v", got.status, got.body, err)
			repeated.Add(1)
			time.Sleep(time.Second) // the value of Retry-After
			got, err = s.evaluate(c.api, in)
		}
		if err != nil || got.status != http.StatusOK {
			t.Errorf("lost: evaluate again = %d %s, %v", got.status, got.body, err)
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		answers[in.id] = got.body
		return true
	})
	count := func(n int64) func() bool {
		after := sent.Load() + n
		return func() bool { return sent.Load() >= after || t.Failed() }
	}
	c.prom.waitUp(t, 3)
	waitFor(t, "intents before the kill", count(500))
	c.writs[0].kill(t)
	waitFor(t, "intents after the kill", count(1500))
	c.prom.fire(t, map[string]bool{"WritReplicaDown": true})
	c.prom.becomes(t, `sum(haproxy_backend_active_servers{proxy="writ"})`, 1)
	c.writs[0] = start(t, c.data, append(c.flags, "--addr", hostOf(c.writs[0].url), "--admin-addr", hostOf(c.writs[0].admin))...)
	c.prom.becomes(t, `sum(haproxy_backend_active_servers{proxy="writ"})`, 2)
	waitFor(t, "intents with both replicas again", count(500))
	waitFor(t, "a thousand intents for each that was sent again", func() bool {
		return sent.Load() >= 1000*repeated.Load() || t.Failed()
	})
	release()

	t.Logf("%d intents, %d sent again", sent.Load(), repeated.Load())
	rows := history(t, c.api, c.token)
	if len(rows) != len(answers) {
		t.Errorf("the history has %d rows, want the %d answers", len(rows), len(answers))
	}
	auditAnswers(t, c.data, answers, rows)
}

// TestCluster_Stays runs the topology for `make cluster` until it is interrupted.
func TestCluster_Stays(t *testing.T) {
	if os.Getenv("WRIT_CLUSTER") == "" {
		t.Skip("no test: make cluster runs it")
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	c := startTopology(t)
	fmt.Printf("API           %s, trusted with --ca %s\nPrometheus    %s\nAlertmanager  http://%s\nreplicas      %s %s\nmongodb       %s\noperator      %s\n",
		c.api, balancerCA.Load().file, c.prom.url, c.alert, c.writs[0].admin, c.writs[1].admin, c.set.URI(), c.token)
	for {
		select {
		case m := <-c.pager.messages:
			fmt.Println(m)
		case <-interrupted:
			return
		}
	}
}

// becomes waits until an expression has the value want.
func (p *promServer) becomes(t *testing.T, expr string, want float64) {
	t.Helper()
	waitFor(t, fmt.Sprintf("%s to be %v", expr, want), func() bool {
		got, err := p.query(expr)
		must(t, err)
		time.Sleep(100 * time.Millisecond)
		return len(got) == 1 && got[0].value == want
	})
}
