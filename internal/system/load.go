package system

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"writ.example/writ/storage"
)

const (
	crashWorkers = 16
	// crashAnswers is about how many answers a server gives before it is killed.
	crashAnswers = 1000
)

// traffic has the intents that were sent and their answers.
type traffic struct {
	mu      sync.Mutex
	sent    map[string]intent
	order   []string
	answers map[string]string // body by intent
	faults  []string
}

func newTraffic() traffic {
	return traffic{sent: make(map[string]intent), answers: make(map[string]string)}
}

// next returns an intent. Seven times in eight it is new. Otherwise it is one that is being
// decided, or was decided lately, perhaps without an answer.
func (l *traffic) next(rng *rand.Rand) intent {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.order); n > 0 && rng.IntN(8) == 0 {
		return l.sent[l.order[n-1-rng.IntN(min(n, 2*crashWorkers))]]
	}
	agent, action := "bot", "deploy"
	switch rng.IntN(4) {
	case 0:
		agent = "stranger"
	case 1:
		action = "delete"
	}
	in := newIntent(agent, action, fmt.Sprintf("k8s/staging/%d", len(l.order)))
	l.addLocked(in)
	return in
}

func (l *traffic) addLocked(in intent) { l.sent[in.id], l.order = in, append(l.order, in.id) }

// note remembers an answer. The intent must never get another answer.
func (l *traffic) note(in intent, got answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noteLocked(in, got)
}

func (l *traffic) noteLocked(in intent, got answer) {
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

// auditFaults reports answers that are not a 200, and intents with two answers.
func (l *traffic) auditFaults(t *testing.T) {
	t.Helper()
	for _, fault := range l.faults {
		t.Error(fault)
	}
}

// load sends intents to the running server and remembers every answer.
type load struct {
	sender   sender
	answered chan struct{} // gets a value for each answer
	stopped  chan struct{}

	traffic
	url   string        // of the server that is alive
	moved chan struct{} // closed when url changes
}

func newLoad(t *testing.T, token string) *load {
	return &load{
		sender: newSender(t, token, crashWorkers), answered: make(chan struct{}), stopped: make(chan struct{}),
		moved: make(chan struct{}), traffic: newTraffic(),
	}
}

// serve directs the load to another server.
func (l *load) serve(url string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.url = url
	close(l.moved)
	l.moved = make(chan struct{})
}

func (l *load) stop() { close(l.stopped) }

// start starts workers. They end after stop.
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

// awaitAnswers waits for n more answers.
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

// step sends one intent. It reports whether to go on.
func (l *load) step(rng *rand.Rand) bool {
	in := l.next(rng)
	l.mu.Lock()
	url, moved := l.url, l.moved
	l.mu.Unlock()
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

// resend sends each intent without an answer twice, and some of the others once more. An intent
// has one answer, however often it is sent.
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

// auditIntents checks that the decided intents are exactly the intents that were sent.
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
