package api

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// BenchmarkCounts measures the counts of 30 days by the hour, over loopback. The rows have 20 agents,
// 10 types of actions and 8 rules. They are all kept. p50-ms and p99-ms are of whole requests, client
// included. The store is opened again after it was filled, so that it has no work left.
func BenchmarkCounts(b *testing.B) {
	h := countedHarness(b)
	for _, by := range []string{"decision", "rule_id", "code", "agent_id", "action_type"} {
		b.Run("by="+by, func(b *testing.B) {
			url := "http://" + h.addr + "/v1/authorizations/counts?by=" + by + "&from=2026-10-22T11:00:00Z&to=2026-11-21T10:00:00Z"
			var took []time.Duration
			for b.Loop() {
				req, err := http.NewRequest(http.MethodGet, url, nil)
				must(b, err)
				req.Header.Set("Authorization", "Bearer "+h.operator("org-0"))
				begun := time.Now()
				res, err := h.client.Do(req)
				must(b, err)
				n, err := io.Copy(io.Discard, res.Body)
				must(b, errors.Join(err, res.Body.Close()))
				if res.StatusCode != http.StatusOK || n < 719*40 {
					b.Fatalf("%d, %d bytes", res.StatusCode, n)
				}
				took = append(took, time.Since(begun))
			}
			reportPercentiles(b, took)
		})
	}
}

// reportPercentiles reports the median and the 99th percentile of times.
func reportPercentiles(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

// countedHarness starts a server whose store has benchRows rows of the organization org-0, made in the last 30 days.
func countedHarness(b *testing.B) *harness {
	b.Helper()
	dir := b.TempDir()
	store := benchStore(b, dir)
	b.Cleanup(func() { must(b, store.Close()) })
	end := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for n, rows := 0, benchRows(b); n < rows; {
		batch := make([]*storage.Record, min(1000, rows-n))
		for i := range batch {
			batch[i] = countedRow(n, end.Add(-30*24*time.Hour/time.Duration(rows)*time.Duration(rows-n)))
			n++
		}
		_, err := store.Append(context.Background(), storage.Batch{Records: batch}, storagetest.Unsigned())
		must(b, err)
	}
	if os.Getenv("WRIT_BENCH_STORE") == "" {
		must(b, store.Close())
		store = benchStore(b, dir)
	}
	return start(b, func(c *setup) {
		c.Service.Store = store
		c.Service.Plans = map[string]engine.Plan{"free": {Name: "free", Evaluations: 1 << 50, Agents: 100, Policies: 100, CSVExport: true}}
	})
}

// countedRow returns a row that is decided at a time.
func countedRow(n int, at time.Time) *storage.Record {
	r := historyRow(n, 1)
	id := storage.IDAt(at)
	binary.BigEndian.PutUint32(id[12:], uint32(n))
	id[6], id[8] = id[6]&0x0f|0x70, id[8]&0x3f|0x80
	r.DecidedAt, r.DecisionID = at, id.String()
	r.IntentID, r.Receipt.DecisionID = uuid.NewSHA1(uuid.Nil, id[:]).String(), r.DecisionID
	r.AgentID, r.ActionType = fmt.Sprint("team-a/agent-", n*7%20), fmt.Sprint("action.", n*3%10)
	if r.Decision == engine.Deny {
		r.Findings = []storage.Finding{{Code: "rule.deny", Outcome: engine.Deny, Decides: true, RuleID: fmt.Sprint("rule-", n/10%8)}}
	}
	return r
}
