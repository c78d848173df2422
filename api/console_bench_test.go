package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"writ.example/writ/storage"
)

// consolePages are pages of an organization that has documents of each kind.
func consolePages(b *testing.B, h *harness) []string {
	b.Helper()
	const org = "org-0"
	h.register(org)
	token := h.operator(org)
	var rule, agent string
	for i := range 100 {
		rule = h.rule(org, fmt.Sprintf(`{"action_type":"none.%d"}`, i), `{"decision":"deny"}`)
	}
	for i := range 50 {
		agent = h.namedAgent(org, fmt.Sprint("agent ", i))
		h.key(org, "policy:evaluate")
		h.do("PUT", fmt.Sprint("/v1/lists/list-", i), token, obj{"values": []string{"a", "b"}}).wantStatus(http.StatusCreated)
	}
	decided := read[page[storage.Record]](h.do("GET", "/v1/authorizations?limit=1", token, nil).wantStatus(http.StatusOK)).Data[0].DecisionID
	pages := []string{
		"/console/decisions/" + decided, "/console/rules/" + rule, "/console/agents/" + agent, "/console/policies/" + policyID,
		"/console/lists/list-7", "/console/decisions?decision=deny", "/console/decisions?agent_id=team-a%2Fagent-7",
		"/console/decisions?code=rule.deny", "/console/decisions?intent_id=11111111-1111-4111-8111-111111111111",
		"/console/decisions?to=2026-10-30",
	}
	for _, name := range []string{"", "/decisions", "/approvals", "/agents", "/policies", "/rules", "/keys", "/sessions", "/lists", "/webhooks", "/usage", "/chain"} {
		pages = append(pages, "/console"+name)
	}
	return pages
}

// BenchmarkConsole measures the pages of the console over loopback, where the history has benchRows rows.
func BenchmarkConsole(b *testing.B) {
	h := countedHarness(b)
	pages := consolePages(b, h)
	v := h.visit(h.operator("org-0"))
	for _, path := range pages {
		b.Run("page="+path, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				begun := time.Now()
				v.get(path).want(http.StatusOK)
				took = append(took, time.Since(begun))
			}
			reportPercentiles(b, took)
		})
	}
}

// BenchmarkConsole_BesideAnotherOrganization measures decisions of another organization alone, and then beside a crawl of
// all pages and an export of the whole history.
func BenchmarkConsole_BesideAnotherOrganization(b *testing.B) {
	h := countedHarness(b)
	pages := consolePages(b, h)
	h.register(acme)
	key, _ := h.key(acme, "policy:evaluate")
	decide := func(b *testing.B) {
		var took []time.Duration
		for b.Loop() {
			time.Sleep(2 * time.Millisecond) // an open loop of less than 500 a second
			begun := time.Now()
			h.do("POST", "/v1/policy/evaluate", key, intent()).wantStatus(http.StatusOK)
			took = append(took, time.Since(begun))
		}
		reportPercentiles(b, took)
	}
	b.Run("alone", decide)
	b.Run("beside", func(b *testing.B) {
		ctx, end := context.WithCancel(context.Background())
		var rows, crawled atomic.Int64
		ended := make(chan error, 2)
		go func() {
			token := h.operator("org-0")
			for ctx.Err() == nil {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+h.addr+"/v1/authorizations/export", nil)
				if err != nil {
					ended <- err
					return
				}
				req.Header.Set("Authorization", "Bearer "+token)
				res, err := h.client.Do(req)
				if err != nil {
					break
				}
				var n lines
				_, _ = io.Copy(&n, res.Body) // it ends with ctx
				rows.Add(int64(n))
				_ = res.Body.Close()
			}
			ended <- nil
		}()
		v := h.visit(h.operator("org-0"))
		go func() {
			for ctx.Err() == nil {
				for _, path := range pages {
					if got := v.get(path); got.status != http.StatusOK && ctx.Err() == nil {
						ended <- fmt.Errorf("%s = %d", path, got.status)
						return
					}
					crawled.Add(1)
				}
			}
			ended <- nil
		}()
		decide(b)
		end()
		for range 2 {
			must(b, <-ended)
		}
		b.ReportMetric(float64(rows.Load()), "rows-exported")
		b.ReportMetric(float64(crawled.Load()), "pages")
	})
}

// lines counts the lines that are written to it.
type lines int

func (n *lines) Write(p []byte) (int, error) {
	*n += lines(strings.Count(string(p), "\n"))
	return len(p), nil
}
