package system

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	writ "writ.example/writ/sdk/go"
)

// TestSDK_StreamOfIntents kills the real binary, and stops it, under a client of sdk/go with a stream. Each intent gets
// one decision.
func TestSDK_StreamOfIntents(t *testing.T) {
	const workers, each = 100, 5
	data, token := newData(t)
	plans := manyEvaluations(t)
	p := start(t, data, plans)
	register(t, p.url, token)
	var addr atomic.Value
	addr.Store(strings.TrimPrefix(p.url, "http://"))
	config := writ.Config{
		URL: "http://writ.example", APIKey: token, PolicyID: testPolicy, AgentID: "bot", Timeout: time.Minute, Stream: true,
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", addr.Load().(string))
		}},
	}
	client, err := writ.New(config)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var count atomic.Int64
	decided := make([]writ.Decision, workers*each)
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for n := w * each; n < (w+1)*each; n++ {
				in := writ.Intent{IntentID: newIntent("bot", "deploy", "r").id, ActionType: "deploy", Resource: "k8s/staging/web",
					IssuedAt: "2026-11-02T10:00:00Z"}
				for err := context.Canceled; err != nil && ctx.Err() == nil; {
					if decided[n], err = client.Require(ctx, in); err != nil {
						time.Sleep(10 * time.Millisecond) // the server is being started
					}
				}
				count.Add(1)
			}
		})
	}
	for round, end := range []func(*testing.T){p.kill, func(t *testing.T) { p.stop(t) }} {
		waitFor(t, "decisions", func() bool { return count.Load() >= int64(50+200*round) })
		if text := metricsOf(t, p); round == 0 && !strings.Contains(text, "\nwrit_intent_streams 1\n") {
			t.Errorf("the client has another number of streams than 1:\n%s", text)
		}
		end(t)
		p = start(t, data, plans)
		addr.Store(strings.TrimPrefix(p.url, "http://"))
	}
	group.Wait()
	must(t, ctx.Err())

	config.Stream = false
	plain, err := writ.New(config)
	must(t, err)
	for _, d := range decided {
		again, err := plain.Require(t.Context(), d.Intent)
		if err != nil || again.ID != d.ID || !again.Replayed {
			t.Fatalf("%s was decided as %s, and then as %s, %v", d.Intent.IntentID, d.ID, again.ID, err)
		}
	}
	if rows := history(t, p.url, token); len(rows) != len(decided) {
		t.Errorf("%d rows, want %d", len(rows), len(decided))
	}
}
