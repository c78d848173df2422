package system

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"writ/storage"
)

const (
	crashWorkers = 16
	// crashAnswers is about how many answers a server gives before it is killed.
	crashAnswers = 1000
)

// TestCrash kills the real binary under load, time and again, and then holds
// it to all that any of its lives has told a client: every receipt received is
// in the history, verifies and stands in an unbroken chain; no intent has two
// decisions; the meters are the number of distinct intents.
func TestCrash(t *testing.T) {
	kills := 20
	if testing.Short() {
		kills = 5
		t.Logf("-short: %d kills instead of 20", kills)
	}
	data, token := newData(t)
	plans := manyEvaluations(t)
	p := start(t, data, plans)
	register(t, p.url, token)

	l := newLoad(t, token)
	l.serve(p.url)
	workers := l.start(crashWorkers)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range kills {
		l.awaitAnswers(t, rng.IntN(2*crashAnswers))
		p.kill(t)
		if i%4 == 3 { // a crash while it recovers from the last one
			dying, ready := launch(t, data, plans)
			select {
			case <-ready:
			case <-time.After(time.Duration(rng.IntN(60)) * time.Millisecond):
			}
			dying.kill(t)
		}
		p = start(t, data, plans)
		l.serve(p.url)
	}
	l.awaitAnswers(t, crashAnswers)
	l.stop()
	workers.Wait()
	t.Logf("%d kills: %d intents, of which %d got no answer", kills, len(l.sent), len(l.sent)-len(l.answers))

	l.resend(t, p.url)
	rows := history(t, p.url, token)
	l.auditIntents(t, rows)
	p.stop(t)
	auditAnswers(t, data, l.answers, rows)
	auditStore(t, data, rows)
}

// load sends intents to whichever server is alive and remembers every answer.
type load struct {
	sender   sender
	answered chan struct{} // gets a value for each answer
	stopped  chan struct{}

	mu      sync.Mutex
	url     string        // of the server that is alive
	moved   chan struct{} // closed when url changes
	sent    map[string]intent
	order   []string
	answers map[string]string // body by intent
	faults  []string
}

func newLoad(t *testing.T, token string) *load {
	return &load{
		sender: newSender(t, token, crashWorkers), answered: make(chan struct{}), stopped: make(chan struct{}),
		moved: make(chan struct{}), sent: make(map[string]intent), answers: make(map[string]string),
	}
}

// serve moves the load to another server.
func (l *load) serve(url string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.url = url
	close(l.moved)
	l.moved = make(chan struct{})
}

func (l *load) stop() { close(l.stopped) }

// start starts workers, which end after stop.
func (l *load) start(workers int) *sync.WaitGroup {
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(3, uint64(i)))
			for l.step(rng) {
			}
		})
	}
	return &wg
}

// awaitAnswers lets n answers arrive.
func (l *load) awaitAnswers(t *testing.T, n int) {
	t.Helper()
	late := time.After(patience)
	for range n {
		select {
		case <-l.answered:
		case <-late:
			l.mu.Lock()
			defer l.mu.Unlock()
			t.Fatalf("no %d answers within %v; faults: %q", n, patience, l.faults)
		}
	}
}

// step sends one intent and reports whether to go on.
func (l *load) step(rng *rand.Rand) bool {
	in, url, moved := l.next(rng)
	got, err := l.sender.evaluate(url, in)
	if err != nil { // killed: wait for the next server
		select {
		case <-moved:
			return true
		case <-l.stopped:
			return false
		}
	}
	l.note(in, got)
	select {
	case l.answered <- struct{}{}:
		return true
	case <-l.stopped:
		return false
	}
}

// next returns a new intent or, one time in eight, one that is being decided or
// was decided lately, perhaps without an answer.
func (l *load) next(rng *rand.Rand) (in intent, url string, moved <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.order); n > 0 && rng.IntN(8) == 0 {
		return l.sent[l.order[n-1-rng.IntN(min(n, 2*crashWorkers))]], l.url, l.moved
	}
	agent, action := "bot", "deploy"
	switch rng.IntN(4) {
	case 0:
		agent = "stranger"
	case 1:
		action = "delete"
	}
	in = newIntent(agent, action, fmt.Sprintf("k8s/staging/%d", len(l.order)))
	l.sent[in.id] = in
	l.order = append(l.order, in.id)
	return in, l.url, l.moved
}

// note remembers an answer, which must be the only one its intent ever gets.
func (l *load) note(in intent, got answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first, again := l.answers[in.id]
	switch {
	case got.status != http.StatusOK:
		l.faults = append(l.faults, fmt.Sprintf("evaluate %s = %d %s, want 200", in.id, got.status, got.body))
	case again && got.body != first:
		l.faults = append(l.faults, fmt.Sprintf("evaluate %s = %s, earlier %s", in.id, got.body, first))
	default:
		l.answers[in.id] = got.body
	}
}

// resend sends each intent whose answer was lost twice, and some of the others
// once more: an intent has one answer, however often it is asked for.
func (l *load) resend(t *testing.T, url string) {
	t.Helper()
	var again []intent
	for i, id := range l.order {
		if _, ok := l.answers[id]; !ok {
			again = append(again, l.sent[id], l.sent[id])
		} else if i%16 == 0 {
			again = append(again, l.sent[id])
		}
	}
	var wg sync.WaitGroup
	for chunk := range slices.Chunk(again, 1+len(again)/crashWorkers) {
		wg.Go(func() {
			for _, in := range chunk {
				got, err := l.sender.evaluate(url, in)
				if err != nil {
					t.Errorf("evaluate %s: %v", in.id, err)
					return
				}
				l.note(in, got)
			}
		})
	}
	wg.Wait()
}

// auditIntents checks that exactly the intents that were sent were decided.
func (l *load) auditIntents(t *testing.T, rows map[string]*storage.Record) {
	t.Helper()
	l.auditFaults(t)
	for id := range l.sent {
		if _, ok := l.answers[id]; !ok {
			t.Errorf("intent %s has no answer", id)
		}
	}
	if len(rows) != len(l.sent) {
		t.Errorf("the history has %d intents, want the %d that were sent", len(rows), len(l.sent))
	}
}
