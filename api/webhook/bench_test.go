package webhook_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"writ.example/writ/api/webhook"
	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded"
	"writ.example/writ/storage/registry"
)

// receiverProcess is the environment variable of the process that receives the deliveries of BenchmarkDelivery. A
// separate process keeps the receiver's work out of the measurement.
const receiverProcess = "WEBHOOK_TEST_RECEIVER"

// TestMain runs the tests. In the receiver process it serves until its input ends.
func TestMain(m *testing.M) {
	if os.Getenv(receiverProcess) == "" {
		os.Exit(m.Run())
	}
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
	}))
	fmt.Println(s.URL)
	io.Copy(io.Discard, os.Stdin)
}

// cpu returns the processor time of this process.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkDelivery measures the cost of an event over loopback without TLS. Both results are processor time of this
// process. cpu-µs/stored is the time to make a delivery from a fact. cpu-µs/delivered is the time to find a delivery,
// send it and store the outcome. The benchmark fails if cpu-µs/delivered exceeds 100.
func BenchmarkDelivery(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // as the server does
	receiver := exec.Command(os.Args[0])
	receiver.Env = append(os.Environ(), receiverProcess+"=1")
	stop, err := receiver.StdinPipe()
	must(b, err)
	out, err := receiver.StdoutPipe()
	must(b, err)
	must(b, receiver.Start())
	defer receiver.Wait()
	defer stop.Close()
	url, err := bufio.NewReader(out).ReadString('\n')
	must(b, err)

	store, err := embedded.Open(b.TempDir(), embedded.Options{Log: slog.New(slog.DiscardHandler)})
	must(b, err)
	docs := registry.New(store)
	var paused atomic.Bool // so that storing and delivering are measured separately
	d, err := webhook.New(webhook.Config{Outboxes: docs, Leads: func() bool { return !paused.Load() }, Targets: loopback, Agent: "writ"})
	must(b, err)
	must(b, docs.PutWebhook(b.Context(), org, &storage.Webhook{
		ID: "h", URL: strings.TrimSpace(url), Events: []string{storage.ApprovalPending},
		Secrets: []storage.WebhookSecret{{Secret: webhook.NewSecret()}}, CreatedAt: time.Now().Add(-time.Hour),
	}))
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); d.Run(ctx) }()
	defer func() {
		end()
		<-ended
		must(b, store.Close())
	}()
	const at, most = 50, 5000
	n := 0
	feed := func() {
		events := make([]storage.Event, at)
		for i := range events {
			n++
			events[i] = storage.Event{
				Type: storage.ApprovalPending, Subject: fmt.Sprint("approval/", n), Fact: "pending", At: time.Now(),
				Data: map[string]any{
					"approval_id": "01a1fde3-7a10-7c31-9f6e-0d1a6f3b2c41", "policy_id": "01a1fde3-7a10-7c31-9f6e-0d1a6f3b2c41", "agent_id": "billing-agent",
					"action_type": "payments.refund", "resource": "https://api.example.com/v1/refunds", "reasons": []string{"cost.exceeded: the cost is above the cap"},
				},
			}
		}
		must(b, docs.Feed(b.Context(), org, "bench", "", time.Now(), events))
	}
	wait := func() {
		for {
			told, err := docs.AllOutboxes(b.Context())
			must(b, err)
			if told[0].Pending == 0 {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	feed()
	wait()
	b.ResetTimer()
	var fed, began time.Duration
	for i := 0; i < b.N; i += most {
		paused.Store(true)
		before := cpu(b)
		for j := 0; j < most; j += at {
			feed()
		}
		fed += cpu(b) - before
		paused.Store(false)
		before = cpu(b)
		wait()
		began += cpu(b) - before
	}
	events := float64(max(most, (b.N+most-1)/most*most))
	b.ReportMetric(float64(fed.Microseconds())/events, "cpu-µs/stored")
	per := float64(began.Microseconds()) / events
	b.ReportMetric(per, "cpu-µs/delivered")
	if b.N >= most && per > 100 {
		b.Errorf("a delivery takes %.0f µs of processor time, want at most 100", per)
	}
}
