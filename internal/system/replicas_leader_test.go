package system

import (
	"syscall"
	"testing"
	"time"

	"writ.example/writ/internal/freeze"
)

// oneLeads checks that exactly one replica does the shared background work. If that replica is
// killed or frozen, another replica must lead within seconds and sweep at once.
func oneLeads(t *testing.T, c *cluster) {
	c.start(t, 2)
	leader := c.leader(t)
	swept := func(i int) float64 { return value(t, c.replicas[i], "writ_retention_last_pass_timestamp_seconds") }
	waitFor(t, "the leader to sweep", func() bool { return swept(leader) > 0 })
	if at := swept(1 - leader); at != 0 {
		t.Errorf("the replica that does not lead swept at %v", at)
	}

	c.replicas[leader].kill(t)
	began := time.Now()
	next := 1 - leader
	waitFor(t, "the other to lead and sweep", func() bool { return c.leads(t, next) && swept(next) > 0 })
	t.Logf("%v after the leader was killed the other had swept", time.Since(began).Round(time.Millisecond))

	c.replicas[leader] = c.launch(t)
	frozen := c.leader(t)
	p := c.replicas[frozen]
	given := func() float64 { return value(t, c.replicas[1-frozen], "writ_mongodb_replicas_given_up_total") }
	before := given()
	freeze.Process(t, p.cmd.Process)
	waitFor(t, "the other to give up the one that is frozen, and to lead", func() bool { return given() > before && c.leads(t, 1-frozen) })
	must(t, p.cmd.Process.Signal(syscall.SIGCONT))
	select {
	case <-p.done: // it was given up and has exited
	case <-time.After(patience):
		t.Fatalf("the replica that was given up still runs after %v", patience)
	}
	c.replicas[frozen] = c.launch(t)
	c.leader(t)
	c.proved(t, 0, 2)
	c.stop(t)
}

// leads reports whether the i-th replica leads.
func (c *cluster) leads(t *testing.T, i int) bool {
	t.Helper()
	return value(t, c.replicas[i], "writ_leads") == 1
}

// leader waits until one replica leads.
func (c *cluster) leader(t *testing.T) (leader int) {
	t.Helper()
	waitFor(t, "a replica to lead", func() bool {
		n := 0
		for i := range c.replicas {
			if c.leads(t, i) {
				leader = i
				n++
			}
		}
		return n == 1
	})
	return leader
}

// value returns the value of a metric without labels.
func value(t *testing.T, p *process, name string) float64 {
	t.Helper()
	f := families(t, p)[name]
	if f == nil {
		t.Fatalf("there is no metric %s", name)
	}
	return f.Metric[0].GetGauge().GetValue() + f.Metric[0].GetCounter().GetValue()
}
