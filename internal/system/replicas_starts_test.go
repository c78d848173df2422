package system

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"writ.example/writ/storage/mongodb/mongotest"
)

// twoForOneSlot kills a replica under load. Once the replica was given up, two replicas start at
// the same time. One of the two must continue the chain of the killed replica.
func twoForOneSlot(t *testing.T, c *cluster) {
	c.mortal = true
	c.start(t, 2)
	l := newReplicaLoad(c)
	stop := l.start(t, 8)
	f := newFlip(t, c, "other")
	operator := newSender(t, c.token, 1)
	for range rounds(1, 20) {
		l.await(t, between)
		c.replicas[1].kill(t)
		if err := f.insist(operator, 0, func() []string { return c.urls()[:1] }); err != nil { // is answered once who is dead was given up
			t.Fatal(err)
		}
		a, aReady := c.begin(t)
		b, bReady := c.begin(t)
		a.serves(t, aReady)
		b.serves(t, bReady)
		c.replicas = []*process{c.replicas[0], a, b}
		l.serve(c.urls())
		l.await(t, between)
		c.replicas = c.replicas[:2]
		l.serve(c.urls())
		b.stop(t)
	}
	stop()
	l.audit(t)
	f.report()
	// There are two chains at first. The second new replica adds a third chain.
	c.proved(t, len(l.sent), 3)
	rows := history(t, c.replicas[0].url, c.token)
	c.stop(t)
	auditAnswers(t, c.data, l.answers, rows)
}

// startWithoutPrimary starts a replica while the replica set has no primary. The replica must log
// what it waits for, and serve once there is a primary. After 30 seconds without a primary it must
// exit and tell the operator what to do.
func startWithoutPrimary(t *testing.T, c *cluster) {
	c.start(t, 1)
	first := newSender(t, c.token, 1)
	in := newIntent("bot", "deploy", "k8s/staging/web")
	before, err := c.settle(first, 0, in, c.urls)
	must(t, err)
	c.stop(t)
	primary := c.primary(t)
	members := []int{primary, (primary + 1) % 3}
	for _, i := range members {
		must(t, c.set.Kill(i))
	}
	if soaking() {
		began := time.Now()
		p, ready := c.begin(t)
		select {
		case ok := <-ready:
			if ok {
				t.Error("writ serve without a primary serves")
			}
		case <-time.After(2 * patience):
			t.Fatalf("writ serve without a primary neither serves nor ends\n%s", p.stderr)
		}
		t.Logf("without a primary writ serve ended after %v: %s", time.Since(began).Round(time.Second), p.stderr)
		if text := p.stderr.String(); !strings.Contains(text, "had no primary that could be reached for 30s: start a majority of its members") {
			t.Errorf("writ serve without a primary says %q, want that it had none for 30s, and what to do", text)
		}
	}
	p, ready := c.begin(t)
	waitFor(t, "a word about the primary", func() bool { return strings.Contains(p.stderr.String(), "waiting for a primary") })
	select {
	case <-ready:
		t.Fatalf("writ serve serves or has ended without a primary\n%s", p.stderr)
	default:
	}
	for _, i := range members {
		must(t, c.set.Restart(i))
	}
	began := time.Now()
	p.serves(t, ready)
	t.Logf("it served %v after two members were started", time.Since(began).Round(time.Millisecond))
	c.replicas = []*process{p}
	after, err := c.settle(first, 0, in, c.urls)
	if err != nil || after.status != http.StatusOK || after.body != before.body {
		t.Errorf("evaluate = %d %s, %v, earlier %s", after.status, after.body, err, before.body)
	}
	c.proved(t, 1, 1)
	c.stop(t)
}

// TestReplicas_DroppedIndex drops the indexes of 2,000,000 rows before replicas start, and one again while they run.
// They must start and decide while indexes are built, and say how far it is. Only what needs an index waits.
func TestReplicas_DroppedIndex(t *testing.T) {
	if !soaking() {
		t.Skip("SKIPPED but for make soak: writes 2,000,000 rows")
	}
	t.Run("Many", func(t *testing.T) {
		c := newCluster(t, mongotest.For(t, 1))
		c.start(t, 1)
		l := newReplicaLoad(c)
		c.stop(t)
		client, err := mongo.Connect(options.Client().ApplyURI(c.set.URI()).SetWriteConcern(writeconcern.W1()))
		must(t, err)
		defer func() { must(t, client.Disconnect(context.Background())) }()
		records := client.Database(c.database).Collection("records")
		const rows = 2_000_000
		must(t, records.Indexes().DropAll(t.Context()))
		began := time.Now()
		addRows(t, records, rows)
		t.Logf("%d rows were added in %v", rows, time.Since(began).Round(time.Second))

		began = time.Now()
		c.replicas = []*process{c.launch(t), c.launch(t)}
		t.Logf("two replicas serve after %v", time.Since(began).Round(time.Millisecond))
		l.serve(c.urls())
		l.flip = newFlip(t, c, "bot")
		stop := l.start(t, 8)
		l.built(t, rows)
		must(t, records.Indexes().DropOne(t.Context(), "o_1_d_-1"))
		waitFor(t, "a replica to notice that an index was dropped", func() bool {
			_, text := get(t, c.replicas[0].admin+"/readyz")
			return strings.Contains(text, "is being built")
		})
		l.built(t, rows)
		l.await(t, between)
		stop()
		l.audit(t)
		l.flip.report()
		all := history(t, c.replicas[0].url, c.token)
		c.stop(t)
		auditAnswers(t, c.data, l.answers, all)
	})
}

// addRows adds rows of an organization that nobody asks for.
func addRows(t *testing.T, records *mongo.Collection, rows int) {
	t.Helper()
	some := make([]any, 5000)
	for n := 0; n < rows; n += len(some) {
		for i := range some {
			id := make([]byte, 16)
			_, _ = rand.Read(id) // never fails
			some[i] = bson.D{{Key: "_id", Value: fmt.Appendf(nil, "ballast\x00\x01%x", id)}, {Key: "o", Value: "ballast"},
				{Key: "d", Value: id}, {Key: "k", Value: int32(1)}, {Key: "a", Value: "bot"}, {Key: "p", Value: "policy"},
				{Key: "t", Value: "deploy"}, {Key: "r", Value: "k8s/staging/web"}}
		}
		if _, err := records.InsertMany(t.Context(), some, options.InsertMany().SetOrdered(false)); err != nil {
			t.Fatal(err)
		}
	}
}

var buildProgress = regexp.MustCompile(`is being built, for \S+: \d+ of (\d+) rows`)

// built waits until the indexes of so many rows are built. Meanwhile decisions must go on, the history must be refused,
// and /readyz and the log must say how far they are.
func (l *replicaLoad) built(t *testing.T, rows int) {
	t.Helper()
	p, s := l.cluster.replicas[0], newSender(t, l.cluster.token, 1)
	began, refused, said := time.Now(), 0, ""
	before := len(buildProgress.FindAllString(p.stderr.String(), -1))
	for late := time.Now().Add(10 * patience); ; time.Sleep(50 * time.Millisecond) {
		status, text := get(t, p.admin+"/readyz")
		if status != http.StatusOK {
			t.Fatalf("/readyz while an index is built = %d %s", status, text)
		}
		if !strings.Contains(text, "is being built") {
			break
		}
		if buildProgress.MatchString(text) {
			said = text
		}
		got, err := s.send(http.MethodGet, p.url+"/v1/authorizations", nil)
		if must(t, err); got.status == http.StatusServiceUnavailable && got.retryAfter != "" {
			refused++
		}
		l.await(t, 1)
		if time.Now().After(late) {
			t.Fatalf("the index is not built: %s", text)
		}
	}
	logged := buildProgress.FindAllString(p.stderr.String(), -1)[before:]
	t.Logf("it was built in %v; %d reads that need it were refused; /readyz said %q, the log %q",
		time.Since(began).Round(time.Millisecond), refused, said, logged)
	if refused == 0 {
		t.Errorf("no read was refused while the indexes of %d rows were built", rows)
	}
	const told = 15 * time.Second // how far a build is is told every 10 s
	if time.Since(began) > told && (said == "" || len(logged) == 0) {
		t.Errorf("/readyz said %q and the log %q, want how far the indexes of %d rows are", said, logged, rows)
	}
}
