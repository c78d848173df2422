package system

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"writ.example/writ/storage/mongodb/mongotest"
)

// TestReplicas_Zombie stops a replica with SIGSTOP at each command of a commit: before the server gets the command,
// while the server has it, and before the replica gets the answer. Another replica sets a kill switch meanwhile, for
// which it takes over. It has the same user of MongoDB, or another one that may not end transactions of the first.
// When the stopped replica goes on, nothing of it may be stored that was not stored when the PATCH was answered.
func TestReplicas_Zombie(t *testing.T) {
	if !soaking() {
		t.Skip("SKIPPED: make soak stops replicas; TestFence_AtEachCommand of storage/mongodb stops handles")
	}
	set, messages := mongotest.LateWithUsers(t)
	must(t, set.Admin(t.Context(), bson.D{{Key: "setParameter", Value: 1}, {Key: "transactionLifetimeLimitSeconds", Value: 5}}))
	n := 0
	for _, users := range []int{1, 2} {
		for _, command := range []string{"insert", "update", "commitTransaction"} {
			for _, when := range []string{"before", "within", "after"} {
				t.Run(fmt.Sprintf("users=%d/%s/%s", users, command, when), func(t *testing.T) {
					n++
					c := newCluster(t, set)
					c.database = fmt.Sprint("writZombie", n)
					c.start(t, 1)
					flags := c.serveFlags()
					for i, flag := range flags {
						if flag == "--mongodb-uri" {
							flags[i+1] = uriOf(t, set, c.database, users) + "&appName=" + messages.App
						}
					}
					zombie := start(t, c.data, flags...)
					stopZombie(t, c, zombie, messages, command, when)
				})
			}
		}
	}
}

// uriOf returns the URI of a user who has the roles of a replica and cannot end transactions of others. If there
// is one user, it is that of the set.
func uriOf(t *testing.T, set *mongotest.Set, database string, users int) string {
	t.Helper()
	if users == 1 {
		return set.URI()
	}
	must(t, set.Admin(t.Context(), bson.D{
		{Key: "createUser", Value: database}, {Key: "pwd", Value: mongotest.Password},
		{Key: "roles", Value: bson.A{bson.D{{Key: "role", Value: "readWrite"}, {Key: "db", Value: database}}}},
	}))
	own := url.UserPassword(mongotest.User, mongotest.Password).String()
	return strings.Replace(set.URI(), own, url.UserPassword(database, mongotest.Password).String(), 1)
}

func stopZombie(t *testing.T, c *cluster, zombie *process, messages *mongotest.Late, command, when string) {
	t.Helper()
	live, operator := c.replicas[0], newSender(t, c.token, 1)
	f := newFlip(t, c, "bot")
	operator.decide(t, zombie.url, newIntent("bot", "deploy", "k8s/staging/first")) // what it needs is loaded
	stopped, release := make(chan struct{}), make(chan struct{})
	var once, released sync.Once
	goOn := func() { released.Do(func() { close(release) }) }
	t.Cleanup(goOn)
	var session atomic.Value // of the commit
	messages.At(func(m mongotest.Command, answered bool) {
		if m.Name == "insert" && m.Collection == "records" {
			session.CompareAndSwap(nil, m.Session)
		}
		if m.Name != command || m.Session != session.Load() || answered != (when == "after") {
			return
		}
		once.Do(func() {
			if err := zombie.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Error(err)
			}
			close(stopped)
			if when != "within" {
				<-release
			}
		})
	})
	late, done := newIntent("bot", "deploy", "k8s/staging/late"), make(chan answer, 1)
	s := newSender(t, c.token, 1)
	go func() {
		got, _ := s.evaluate(zombie.url, late) // no answer is one, too
		done <- got
	}()
	<-stopped
	must(t, f.insist(operator, 0, func() []string { return []string{live.url} }))
	stood := history(t, live.url, c.token)
	goOn()
	must(t, zombie.cmd.Process.Signal(syscall.SIGCONT))
	got := <-done
	allowed := got.status == http.StatusOK && strings.Contains(got.body, `"decision":"allow"`)
	if allowed && stood[late.id] == nil {
		t.Errorf("WRONG ALLOW of what was in flight at a stopped replica: %s", got.body)
	}
	again, err := c.settle(operator, 0, late, func() []string { return []string{live.url} })
	if is := strings.Contains(again.body, `"decision":"allow"`); err != nil || is != (stood[late.id] != nil) {
		t.Errorf("the intent at the live replica = %d %s, %v; it was stored: %t", again.status, again.body, err, stood[late.id] != nil)
	}
	t.Logf("the PATCH took %v, stored %t, the stopped replica answered %d", f.took[0], stood[late.id] != nil, got.status)
	zombie.kill(t)
	c.proved(t, 2, 2)
	c.stop(t)
}
