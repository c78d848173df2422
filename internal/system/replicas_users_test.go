package system

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"writ.example/writ/storage/mongodb/mongotest"
)

// TestReplicas_TwoUsers kills a replica with an open transaction, while another replica has another MongoDB user,
// as when a password rotates. With the privilege to end the transaction a kill switch must be answered at once, and
// otherwise after the server has ended it. Nothing may be lost.
func TestReplicas_TwoUsers(t *testing.T) {
	if !soaking() {
		t.Skip("SKIPPED but for make soak: waits until a server ends transactions")
	}
	for name, privileged := range map[string]bool{"KillAnySession": true, "ReadWrite": false} {
		t.Run(name, func(t *testing.T) {
			set := mongotest.SecureFor(t)
			c := newCluster(t, set)
			admin := func(pairs ...bson.E) { t.Helper(); must(t, set.Admin(t.Context(), pairs)) }
			admin(bson.E{Key: "setParameter", Value: 1}, bson.E{Key: "transactionLifetimeLimitSeconds", Value: 10})
			roles := bson.A{bson.D{{Key: "role", Value: "readWrite"}, {Key: "db", Value: c.database}}}
			if privileged {
				admin(bson.E{Key: "createRole", Value: "ender"}, bson.E{Key: "roles", Value: bson.A{}}, bson.E{Key: "privileges", Value: bson.A{
					bson.D{{Key: "resource", Value: bson.D{{Key: "cluster", Value: true}}}, {Key: "actions", Value: bson.A{"killAnySession"}}},
				}})
				roles = append(roles, "ender")
			}
			user := func(name string) string {
				admin(bson.E{Key: "createUser", Value: name}, bson.E{Key: "pwd", Value: mongotest.Password}, bson.E{Key: "roles", Value: roles})
				root := url.UserPassword(mongotest.User, mongotest.Password).String()
				return strings.Replace(set.URI(), root, url.UserPassword(name, mongotest.Password).String(), 1) + "&appName=" + name
			}
			old, fresh := user("old"), user("fresh")
			c.mortal = true
			c.uri = old
			c.start(t, 1)
			c.uri = fresh
			c.start(t, 1)
			l := newReplicaLoad(c)
			stop := l.start(t, 8)
			f, operator := newFlip(t, c, "other"), newSender(t, c.token, 1)
			for range 5 {
				l.await(t, between)
				hang := bson.D{{Key: "failCommands", Value: bson.A{"commitTransaction"}}, {Key: "appName", Value: "old"}, {Key: "closeConnection", Value: true}}
				admin(bson.E{Key: "configureFailPoint", Value: "failCommand"}, bson.E{Key: "mode", Value: "alwaysOn"}, bson.E{Key: "data", Value: hang})
				time.Sleep(500 * time.Millisecond) // likely it has sent a commit, and either way is tested
				c.replicas[0].kill(t)
				admin(bson.E{Key: "configureFailPoint", Value: "failCommand"}, bson.E{Key: "mode", Value: "off"})
				began := time.Now()
				must(t, f.insist(operator, 0, func() []string { return c.urls()[1:] }))
				t.Logf("after the death of a replica with another user a kill switch took %v", time.Since(began).Round(time.Millisecond))
				c.uri = old
				c.replicas[0] = c.launch(t)
				l.serve(c.urls())
			}
			l.await(t, between)
			stop()
			l.audit(t)
			if warned := strings.Contains(c.replicas[1].stderr.String(), "killAnySession"); warned == privileged {
				t.Errorf("a start has warned of the privilege: %t\n%s", warned, c.replicas[1].stderr)
			}
			c.proved(t, len(l.sent), 3)
			rows := history(t, c.replicas[1].url, c.token)
			c.stop(t)
			auditAnswers(t, c.data, l.answers, rows)
		})
	}
}
