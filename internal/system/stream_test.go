package system

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/tmaxmax/go-sse"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// streamed is what a reader of the stream has, over all its connections.
type streamed struct {
	mu      sync.Mutex
	id      string // of the last event, or of the place before it
	rows    []*storage.Record
	skipped int
	times   int // how often it has connected
}

func (s *streamed) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.rows) + s.skipped
}

// read reads the stream of one server until the connection ends.
func (s *streamed) read(ctx context.Context, base, token string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/v1/authorizations/stream", nil)
	if err != nil {
		return
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if s.id != "" {
		req.Header.Set("Last-Event-ID", s.id)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil || res.StatusCode != http.StatusOK {
		return
	}
	defer res.Body.Close()
	body := bufio.NewReader(res.Body)
	if _, err := body.ReadString('\n'); err != nil {
		return
	}
	first, err := body.ReadString('\n')
	if err != nil {
		return
	}
	s.mu.Lock()
	s.id, s.times = strings.TrimSpace(strings.TrimPrefix(first, "id: ")), s.times+1
	s.mu.Unlock()
	for e, err := range sse.Read(body, &sse.ReadConfig{MaxEventSize: 16 << 20}) {
		if err != nil {
			return
		}
		if e.Data == "" {
			continue
		}
		s.event(&e)
	}
}

func (s *streamed) event(e *sse.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id = e.LastEventID
	if e.Type == "skipped" {
		var skipped struct {
			Count int `json:"count"`
		}
		if err := json.Unmarshal([]byte(e.Data), &skipped); err == nil {
			s.skipped += skipped.Count
		}
		return
	}
	r := new(storage.Record)
	if err := json.Unmarshal([]byte(e.Data), r); err == nil {
		s.rows = append(s.rows, r)
	}
}

// follow reads until ctx ends. Each connection goes to another server.
func (s *streamed) follow(ctx context.Context, urls func() []string, token string) {
	for n := 0; ctx.Err() == nil; n++ {
		all := urls()
		s.read(ctx, all[n%len(all)], token)
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond): // a server that is away refuses at once
		}
	}
}

// streamsOfReplicas kills replicas under load while readers follow the stream and change servers. Each row
// must be sent once or be counted, in the order of its chain.
func streamsOfReplicas(t *testing.T, c *cluster) {
	c.mortal = true
	for range 3 {
		c.replicas = append(c.replicas, c.launch(t))
	}
	register(t, c.replicas[0].url, c.token)
	l := newReplicaLoad(c)
	l.serve(c.urls())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	readers := make([]streamed, 3)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for i := range readers {
		all.Go(func() { readers[i].follow(ctx, l.current, c.token) })
	}
	waitFor(t, "readers", func() bool {
		for i := range readers {
			readers[i].mu.Lock()
			begun := readers[i].id != ""
			readers[i].mu.Unlock()
			if !begun {
				return false
			}
		}
		return true
	})
	stop := l.start(t, 8)
	for i := range rounds(3, 20) {
		l.await(t, between)
		c.replicas[i%3].kill(t)
		c.replicas[i%3] = c.launch(t)
		l.serve(c.urls())
	}
	l.await(t, between)
	stop()
	l.audit(t)
	rows := history(t, c.replicas[0].url, c.token)
	waitFor(t, "every row", func() bool {
		for i := range readers {
			if readers[i].count() < len(rows) {
				return false
			}
		}
		return true
	})
	cancel()
	all.Wait()
	for i := range readers {
		readers[i].audit(t, rows)
	}
	c.stop(t)
}

// audit checks that each row came once or was counted, in the order of its chain.
func (s *streamed) audit(t *testing.T, rows map[string]*storage.Record) {
	t.Helper()
	seen := make(map[string]bool)
	last := make(map[[16]byte]receipt.Leaf)
	for _, r := range s.rows {
		if diff := cmp.Diff(rows[r.IntentID], r); diff != "" {
			t.Fatalf("row %s: GET -, stream +:\n%s", r.DecisionID, diff)
		}
		at := place(t, r)
		if before, ok := last[at.Chain]; ok && (at.Seq < before.Seq || at.Seq == before.Seq && at.Index <= before.Index) {
			t.Errorf("row %s is out of its chain's order", r.DecisionID)
		}
		if seen[r.DecisionID] {
			t.Errorf("row %s came twice", r.DecisionID)
		}
		seen[r.DecisionID], last[at.Chain] = true, at
	}
	if len(seen)+s.skipped != len(rows) {
		t.Errorf("%d rows came and %d were skipped of %d", len(seen), s.skipped, len(rows))
	}
	t.Logf("%d rows, %d skipped, of %d, over %d connections", len(seen), s.skipped, len(rows), s.times)
}
