package system

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"writ.example/writ/storage/datadir"
	"writ.example/writ/storage/mongodb/mongotest"
)

// cluster has replicas on one database. The replicas share a data directory for the keys. Without a
// database there is one replica, which has a store of its own in the directory.
type cluster struct {
	set      *mongotest.Set
	database string
	data     datadir.Dir
	token    string
	flags    []string
	replicas []*process
	// program is the binary of the replicas that start next. Empty means the released one. uri is their
	// connection string. Empty means the one of set.
	program, uri string
	// mortal says that the test kills replicas, so that a lost connection is not a fault.
	mortal bool

	mu       sync.Mutex
	launched []*process // all that have served
	asked    bool       // stacks was called
}

func newCluster(t *testing.T, set *mongotest.Set) *cluster {
	t.Helper()
	data, token := newData(t)
	_, name, _ := strings.Cut(t.Name(), "/")
	return &cluster{set: set, database: "writ" + name, data: data, token: token, flags: []string{manyEvaluations(t)}}
}

// start adds replicas. The first replica of all gets the policy of register.
func (c *cluster) start(t *testing.T, n int) {
	t.Helper()
	fresh := len(c.replicas) == 0
	for range n {
		c.replicas = append(c.replicas, c.launch(t))
	}
	if fresh {
		register(t, c.replicas[0].url, c.token)
	}
}

func (c *cluster) launch(t *testing.T) *process {
	t.Helper()
	p, ready := c.begin(t)
	p.serves(t, ready)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.launched = append(c.launched, p)
	return p
}

// stacks ends all replicas and returns their logs, which then have the stacks of all goroutines. A failure calls it
// that is about a replica that does not answer. A later call returns nothing, and so does one without a cluster.
func (c *cluster) stacks() string {
	if c == nil {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked {
		return ""
	}
	c.asked = true
	var all strings.Builder
	for _, p := range c.launched {
		select {
		case <-p.done:
		default:
			fmt.Fprintf(&all, "\n%s", p.stacks())
		}
	}
	return all.String()
}

// begin is like launch for a new replica. It does not wait until the replica serves.
func (c *cluster) begin(t *testing.T) (*process, <-chan bool) {
	t.Helper()
	if c.program != "" {
		return launchProgram(t, c.program, nil, c.data, c.serveFlags()...)
	}
	return launch(t, c.data, c.serveFlags()...)
}

func (c *cluster) serveFlags() []string {
	if c.set == nil {
		return c.flags
	}
	return append(c.flags, "--store=mongodb", "--mongodb-uri", cmp.Or(c.uri, c.set.URI()), "--mongodb-database",
		c.database)
}

// stop stops all replicas. It fails the test if one of them does not end well.
func (c *cluster) stop(t *testing.T) {
	t.Helper()
	for _, p := range c.replicas {
		p.terminate(t)
	}
	for _, p := range c.replicas {
		p.ended(t)
	}
}

// proved checks the whole history with `writ verify`. The history must have the number of
// decisions, and at most so many chains.
func (c *cluster) proved(t *testing.T, decisions, chains int) {
	t.Helper()
	code, said := run(t, "verify", "--chain", "--store=mongodb", "--mongodb-uri", c.set.URI(), "--mongodb-database", c.database, "--data", string(c.data))
	first, _, _ := strings.Cut(said, "\n")
	t.Log(first)
	var gotChains, heads, got int
	plural := strings.NewReplacer(" 1 chain,", " 1 chains,", " 1 head,", " 1 heads,", " 1 decision,", " 1 decisions,").Replace(first)
	if _, err := fmt.Sscanf(plural, "MongoDB: whole: %d chains, %d heads, %d decisions,", &gotChains, &heads, &got); code != exitOK || err != nil {
		t.Fatalf("writ verify = exit code %d, %s", code, said)
	}
	if got != decisions || gotChains > chains {
		t.Errorf("writ verify = %s, want %d decisions in at most %d chains", first, decisions, chains)
	}
}

// settle sends an intent to replicas in turn, from the i-th on, until one returns its decision.
// A failure must be a 503 with Retry-After. If replicas are killed, it may also be a lost
// connection. The error lists all tries.
func (c *cluster) settle(s sender, i int, in intent, urls func() []string) (answer, error) {
	var tries []string
	for began := time.Now(); ; i++ {
		all := urls()
		url, sent := all[i%len(all)], time.Now()
		got, err := s.evaluate(url, in)
		switch {
		case err == nil && got.status != 503:
			return got, nil
		case err == nil && got.retryAfter == "":
			return got, fmt.Errorf("evaluate %s = 503 without Retry-After: %s", in.id, got.body)
		case err != nil && !c.mortal:
			return got, fmt.Errorf("evaluate %s: %w", in.id, err)
		}
		tries = append(tries, fmt.Sprintf("%v +%v %s = %d %s %v", sent.Sub(began).Round(time.Millisecond), time.Since(sent).Round(time.Millisecond), url, got.status, got.body, err))
		if time.Since(began) > patience {
			return got, fmt.Errorf("evaluate %s: no decision for %v:\n%s%s", in.id, patience, strings.Join(tries, "\n"), c.stacks())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// primary returns the index of the primary.
func (c *cluster) primary(t *testing.T) int {
	t.Helper()
	primary, err := c.set.Primary(t.Context())
	must(t, err)
	return primary
}

// urls returns the addresses of the replicas.
func (c *cluster) urls() (urls []string) {
	for _, p := range c.replicas {
		urls = append(urls, p.url)
	}
	return urls
}

// plan gives the organization a plan of so many evaluations.
func (c *cluster) plan(t *testing.T, evaluations int) {
	t.Helper()
	c.flags = []string{plansOf(t, evaluations, 1)}
}
