package system

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// restoredUnderReplicas restores the database while two replicas use it, and throws a kill switch at one of
// them. If that is answered, no replica may allow anything that was sent after it. The replicas must end
// and say why. Replicas that start on the restored database must decide, hold a kill switch and have a
// whole history.
func restoredUnderReplicas(t *testing.T, c *cluster) {
	c.mortal = true
	parts := [][]string{nil, {"documents", "index", "changes", "counters"}, {"counters"}}
	for round := range rounds(1, 9) {
		part := parts[round%len(parts)]
		c.start(t, 2)
		f := newFlip(t, c, "bot")
		operator := newSender(t, c.token, 2)
		for n := range 20 {
			operator.decide(t, c.replicas[n%2].url, newIntent("bot", "deploy", "k8s/staging/web"))
		}
		backup, err := c.set.BackUp(t.Context(), c.database)
		must(t, err)
		time.Sleep(time.Second) // both replicas write a later beat
		f.set(operator, c.replicas[0])
		f.set(operator, c.replicas[1])
		release := background(t, 4, c.token, func(s sender) bool {
			for _, p := range c.replicas {
				s.evaluate(p.url, newIntent("bot", "deploy", "k8s/staging/noise"))
			}
			return true
		})
		for n := range 20 {
			operator.decide(t, c.replicas[n%2].url, newIntent("bot", "deploy", "k8s/staging/web"))
		}
		must(t, backup.Restore(t.Context(), part...))
		got, err := operator.send(http.MethodPatch, c.replicas[0].url+f.path, []byte(`{"status": "disabled"}`))
		t.Logf("the kill switch after the restore = %d %.200s %v", got.status, got.body, err)
		answered := err == nil && got.status == http.StatusOK
		c.endRestored(t, operator, answered)
		release()
		if part != nil { // what was restored in part is not used again
			c.replicas, c.database = nil, c.database+"x"
			continue
		}
		c.replicas = []*process{c.launch(t), c.launch(t)}
		again := &flip{t: t, path: f.path, off: f.off, code: f.code}
		again.set(operator, c.replicas[0])
		for _, p := range c.replicas {
			if got := operator.decide(t, p.url, newIntent("bot", "deploy", "k8s/staging/web")); !strings.Contains(got.body, f.code) {
				t.Errorf("evaluate under the kill switch = %s, want %s", got.body, f.code)
			}
		}
		again.set(operator, c.replicas[1])
		rows := history(t, c.replicas[0].url, c.token)
		c.proved(t, len(rows), 4)
		c.stop(t)
		c.replicas, c.database = nil, c.database+"x"
	}
}

// endRestored waits until the replicas end, because their database was restored, and say why. If a kill switch was
// answered, none of them may allow anything meanwhile.
func (c *cluster) endRestored(t *testing.T, operator sender, answered bool) {
	t.Helper()
	until := time.Now().Add(patience)
	for ended := 0; ended < len(c.replicas) && time.Now().Before(until); {
		ended = 0
		for _, p := range c.replicas {
			select {
			case <-p.done:
				ended++
				continue
			default:
			}
			got, err := operator.evaluate(p.url, newIntent("bot", "deploy", "k8s/staging/late"))
			if err == nil && answered && strings.Contains(got.body, `"decision":"allow"`) {
				t.Errorf("WRONG ALLOW after a kill switch that was answered after a restore: %s", got.body)
			}
		}
	}
	for _, p := range c.replicas {
		select {
		case <-p.done:
		case <-time.After(patience):
			t.Fatal("a replica still runs on a restored database")
		}
		if code := p.cmd.ProcessState.ExitCode(); code != exitFailed || !strings.Contains(p.stderr.String(), "the database was restored") {
			t.Errorf("exit code %d, want %d and why:\n%s", code, exitFailed, p.stderr)
		}
	}
}
