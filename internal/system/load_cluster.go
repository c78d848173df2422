package system

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// between is the number of answers that a load gets before a fault, during it and after it.
const between = 200

// replicaLoad sends intents to replicas. If one replica fails, it sends the intent to another.
type replicaLoad struct {
	cluster *cluster
	flip    *flip // the switch of bot; nil if there is none

	traffic
	urls    []string
	took    []time.Duration // the times until an answer, with all tries
	retried int
	last    time.Time     // the time of the last answer
	gap     time.Duration // the longest between two answers, since a fault began
}

func newReplicaLoad(c *cluster) *replicaLoad {
	return &replicaLoad{cluster: c, urls: c.urls(), traffic: newTraffic()}
}

// serve directs the load to other replicas.
func (l *replicaLoad) serve(urls []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.urls = urls
}

func (l *replicaLoad) current() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.urls
}

// start starts workers. They end with stop, or at the end of the test.
func (l *replicaLoad) start(t *testing.T, workers int) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	work := func(f func(sender, *rand.Rand), n int) {
		s := newSender(t, l.cluster.token, 2)
		wg.Go(func() {
			for rng := rand.New(rand.NewPCG(5, uint64(n))); ; {
				select {
				case <-done:
					return
				default:
					f(s, rng)
				}
			}
		})
	}
	for i := range workers {
		work(l.step, i)
	}
	if l.flip != nil {
		work(l.throw, workers)
	}
	stop = sync.OnceFunc(func() {
		close(done)
		wg.Wait()
	})
	t.Cleanup(stop)
	return stop
}

// step sends one intent. Seven times in eight it is new. Otherwise another worker sends it or
// has sent it.
func (l *replicaLoad) step(s sender, rng *rand.Rand) { l.send(s, rng.IntN(2), l.next(rng)) }

// throw throws or releases the kill switch.
func (l *replicaLoad) throw(s sender, rng *rand.Rand) {
	if err := l.flip.insist(s, rng.IntN(2), l.current); err != nil {
		l.mu.Lock()
		l.faults = append(l.faults, err.Error())
		l.mu.Unlock()
	}
	time.Sleep(100 * time.Millisecond)
}

// send sends an intent until it is decided. If the intent is sent while the kill switch is in
// force, it must not be allowed, unless it was decided before.
func (l *replicaLoad) send(s sender, i int, in intent) {
	began, tries := time.Now(), 0
	var thrown int64 // the value of flip.thrown when the last try was sent
	got, err := l.cluster.settle(s, i, in, func() []string {
		tries++
		if l.flip != nil {
			thrown = l.flip.thrown.Load()
		}
		return l.current()
	})
	passed := thrown%2 == 1 && l.flip.thrown.Load() == thrown && got.replayed == "" && strings.Contains(got.body, `"decision":"allow"`)
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.took = append(l.took, now.Sub(began)); tries > 1 {
		l.retried++
	}
	if !l.last.IsZero() {
		l.gap = max(l.gap, now.Sub(l.last))
	}
	l.last = now
	switch {
	case err != nil:
		l.faults = append(l.faults, err.Error())
	case passed:
		l.faults = append(l.faults, "WRONG ALLOW after the kill switch was answered: "+got.body)
	default:
		l.noteLocked(in, got)
	}
}

// during begins a fault of a member under load and ends it. It logs how long nothing was
// answered. The fault lasts for the given time. If the time is 0, the fault lasts until some
// intents are answered.
func (l *replicaLoad) during(t *testing.T, what string, lasts time.Duration, begin, end func(member int) error, member int) {
	t.Helper()
	l.await(t, between)
	l.mu.Lock()
	l.gap = 0
	retried := l.retried
	l.mu.Unlock()
	began := time.Now()
	must(t, begin(member))
	if time.Sleep(lasts); lasts == 0 {
		l.await(t, between)
	}
	must(t, end(member))
	ended := time.Since(began)
	l.await(t, between)
	l.mu.Lock()
	defer l.mu.Unlock()
	t.Logf("%s for %v: no answer for %v, %d intents took more than one try",
		what, ended.Round(time.Millisecond), l.gap.Round(time.Millisecond), l.retried-retried)
}

// await waits for n more answers.
func (l *replicaLoad) await(t *testing.T, n int) {
	t.Helper()
	count := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.faults) > 0 {
			t.Fatalf("faults: %q", l.faults)
		}
		return len(l.took)
	}
	from := count()
	for late := time.Now().Add(patience); count() < from+n; time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("%d answers within %v, want %d%s", count()-from, patience, n, l.cluster.stacks())
		}
	}
}

// audit sends every intent once more. The answer must be the same as before.
func (l *replicaLoad) audit(t *testing.T) {
	t.Helper()
	slices.Sort(l.took)
	n := len(l.took)
	t.Logf("%d intents, %d answers: p50 %v, p99 %v, at most %v; %d took more than one try",
		len(l.sent), n, l.took[n/2].Round(time.Millisecond), l.took[n*99/100].Round(time.Millisecond), l.took[n-1].Round(time.Millisecond), l.retried)
	const workers = 8
	together(workers, func(w int) {
		s := newSender(t, l.cluster.token, 1)
		for i := w; i < len(l.order); i += workers {
			in := l.sent[l.order[i]]
			got, err := l.cluster.settle(s, i, in, l.current)
			if err != nil || got.body != l.answers[in.id] {
				t.Errorf("evaluate %s once more = %d %s, %v, earlier %s", in.id, got.status, got.body, err, l.answers[in.id])
			}
		}
	})
	l.auditFaults(t)
}

// flip is the kill switch of an agent, or the one that stops the organization. It is set through
// replicas.
type flip struct {
	t       *testing.T
	cluster *cluster
	path    string // of its status
	off     string // the status with which it refuses
	code    string // with which it refuses
	took    []time.Duration
	// thrown counts the answers to PATCHes. It is odd while the switch is certainly in force.
	thrown atomic.Int64
}

// newFlip registers an active agent and returns its kill switch.
func newFlip(t *testing.T, c *cluster, name string) *flip {
	t.Helper()
	id := newClient(t, c.replicas[0].url, c.token).newAgent(t, name)
	return &flip{t: t, cluster: c, path: "/v1/agents/" + id + "/status", off: "disabled", code: "agent.disabled:"}
}

// newStop returns the switch that stops the organization.
func newStop(t *testing.T, c *cluster) *flip {
	return &flip{t: t, cluster: c, path: organizationStatus, off: "stopped", code: "organization.stopped:"}
}

const organizationStatus = "/v1/organization/status"

// set sets the switch at a replica, off and active in turn.
func (f *flip) set(s sender, p *process) {
	f.t.Helper()
	status := f.off
	if f.thrown.Load()%2 == 1 {
		status = "active"
		f.thrown.Add(1)
	}
	began := time.Now()
	client{s, p.url}.do(f.t, http.MethodPatch, f.path, object{"status": status}, http.StatusOK, nil)
	f.took = append(f.took, time.Since(began))
	if status == f.off {
		f.thrown.Add(1)
	}
}

// insist sets the switch at replicas in turn, from the i-th on, until one answers. A failure
// must be a 503 with Retry-After.
func (f *flip) insist(s sender, i int, urls func() []string) error {
	status := f.off
	if f.thrown.Load()%2 == 1 {
		status = "active"
		f.thrown.Add(1)
	}
	began := time.Now()
	for ; ; i++ {
		all := urls()
		got, err := s.send(http.MethodPatch, all[i%len(all)]+f.path, fmt.Appendf(nil, `{"status": %q}`, status))
		switch {
		case err == nil && got.status == http.StatusOK:
			if f.took = append(f.took, time.Since(began)); status == f.off {
				f.thrown.Add(1)
			}
			return nil
		case err != nil || got.status != http.StatusServiceUnavailable || got.retryAfter == "":
			stacks := ""
			if time.Since(began) > patience {
				stacks = f.cluster.stacks()
			}
			return fmt.Errorf("PATCH of the status = %d %s, Retry-After %q, %w%s", got.status, got.body, got.retryAfter, err, stacks)
		case time.Since(began) > patience:
			return fmt.Errorf("PATCH of the status = %d %s for %v%s", got.status, got.body, patience, f.cluster.stacks())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// report logs how long the PATCHes took.
func (f *flip) report() {
	slices.Sort(f.took)
	n := len(f.took)
	f.t.Logf("%d PATCHes of the status: p50 %v, p99 %v, at most %v", n, f.took[n/2], f.took[n*99/100], f.took[n-1])
}

// watched sends an intent of bot and checks the answer. The intent must not be allowed if the
// switch was in force when the intent was sent and still is when the answer arrives.
func (f *flip) watched(s sender, url string) (allowed bool, err error) {
	before := f.thrown.Load()
	got, err := s.evaluate(url, newIntent("bot", "deploy", "k8s/staging/web"))
	if err != nil || got.status != http.StatusOK {
		return false, fmt.Errorf("evaluate = %d %s, %w", got.status, got.body, err)
	}
	allowed = strings.Contains(got.body, `"decision":"allow"`)
	if allowed && before%2 == 1 && f.thrown.Load() == before {
		return true, fmt.Errorf("WRONG ALLOW after the kill switch was answered: %s", got.body)
	}
	return allowed, nil
}
