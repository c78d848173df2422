package system

import (
	"bufio"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"writ.example/writ/storage/mongodb/mongotest"
)

// TestOutage_LogIsSummed counts the lines that the real binary writes while its MongoDB is dead and many
// organizations ask: at most a hundred a second for requests, and one for each activity of the store.
func TestOutage_LogIsSummed(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED in short mode: starts a replica set and a replica")
	}
	set := mongotest.For(t, 1)
	c := newCluster(t, set)
	c.database = "writ"
	c.flags = append(c.flags, "--log-format=json")
	c.start(t, 1)
	p := c.replicas[0]
	var senders []sender
	for i := range 10 {
		org := fmt.Sprint("org-", i)
		token := signed(t, c.data, org)
		registerIn(t, p.url, token, org)
		s := newSender(t, token, 2)
		s.decide(t, p.url, newIntent("bot", "deploy", "db")) // its places are held from now on
		senders = append(senders, s)
	}
	before := len(p.stderr.String())
	began := time.Now()
	must(t, set.Kill(0))
	lasts := time.Duration(rounds(8, 120)) * time.Second
	var wg sync.WaitGroup
	var refused [10]int
	for i, s := range senders {
		wg.Go(func() {
			for time.Since(began) < lasts {
				if got, err := s.evaluate(p.url, newIntent("bot", "deploy", "db")); err != nil || got.status != 503 {
					t.Errorf("evaluate in an outage = %d %s, %v, want 503", got.status, got.body, err)
					return
				}
				refused[i]++
				if i == 0 { // a quiet one
					time.Sleep(time.Second)
				}
			}
		})
	}
	wg.Wait()
	asked := 0
	for _, n := range refused {
		asked += n
	}
	messages := make(map[string]int)
	total, seconds := 0, int(time.Since(began)/time.Second)+2
	for lines := bufio.NewScanner(strings.NewReader(p.stderr.String()[before:])); lines.Scan(); {
		var line struct {
			Message string `json:"msg"`
			In      string `json:"in"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Errorf("a line is no JSON: %v: %s", err, lines.Text())
		}
		messages[strings.TrimSpace(line.Message+" "+line.In)]++
		total++
	}
	t.Logf("%d requests were refused in %ds, with %d lines: %v", asked, seconds, total, messages)
	for message, n := range messages {
		switch most := 2; {
		case message == "request failed" || message == "request refused":
			if n > 100*seconds {
				t.Errorf("%d lines %q in %d seconds, want at most 100 a second", n, message, seconds)
			}
		case strings.HasPrefix(message, "requests refused or failed"):
			if n > seconds {
				t.Errorf("%d lines %q in %d seconds, want one a second", n, message, seconds)
			}
		case n > most:
			t.Errorf("%d lines %q, want at most %d", n, message, most)
		}
	}
}
