package system

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/examples"
	"writ.example/writ/internal/scrub"
	"writ.example/writ/storage"
	"writ.example/writ/storage/datadir"
	"writ.example/writ/storage/embedded"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/ledger/ledgertest"
	"writ.example/writ/storage/retention"
)

// pastHistory writes decisions of two organizations to a new data directory. The decisions are an
// hour old. One settlement and two changes follow, under two heads.
func pastHistory(t *testing.T, n int) datadir.Dir {
	t.Helper()
	data := datadir.Dir(filepath.Join(t.TempDir(), "data"))
	past := time.Now().Add(-time.Hour)
	_, l, closeBoth := openLedger(t, data, func() time.Time { return past })
	var last ledger.Outcome
	for i := range n {
		for _, org := range []string{examples.Organization, "rival"} {
			outs, err := ledgertest.Commit(t.Context(), l, org, allowed(fmt.Sprintf("5eed0000-0000-4000-8000-%012d", i)))
			must(t, err)
			if org == examples.Organization {
				last = outs[0]
			}
		}
	}
	if _, _, err := l.Settle(t.Context(), examples.Organization, last.Record.DecisionID, storage.Settlement{Outcome: storage.Executed, RecordedAt: past}); err != nil {
		t.Fatal(err)
	}
	if err := l.SignChanges(t.Context(), &pastChanges{
		{Org: examples.Organization, Kind: storage.PolicyKind, ID: "p", Revision: 7, Actor: "operator:alice"},
		{Org: "rival", Kind: storage.PolicyKind, ID: "p", Revision: 8},
	}); err != nil {
		t.Fatal(err)
	}
	closeBoth()
	return data
}

// allowed returns a decision that allows an intent.
func allowed(intentID string) *ledger.Entry {
	return &ledger.Entry{
		Intent: &engine.Intent{
			IntentID: intentID, PolicyID: testPolicy, AgentID: "bot", ActionType: "deploy", Resource: "k8s/staging", IssuedAt: "2026-11-02T10:00:00Z",
		},
		PolicyVersion: 1,
		Result:        engine.Result{Decision: engine.Allow, Findings: []engine.Finding{{Outcome: engine.Allow, Reason: "policy.allowed: yes"}}},
	}
}

// openLedger opens a ledger on the store of a data directory.
func openLedger(t *testing.T, data datadir.Dir, now func() time.Time) (s *embedded.Store, l *ledger.Ledger, closeBoth func()) {
	t.Helper()
	signer, _, err := data.Signer("")
	must(t, err)
	s, err = embedded.Open(data.Store(), embedded.Options{})
	must(t, err)
	scrubber, err := scrub.New()
	must(t, err)
	tagger, err := scrubber.Tagger(bytes.Repeat([]byte{1}, 32))
	must(t, err)
	l, err = ledger.Open(t.Context(), ledger.Config{Store: s, Signer: signer, Scrub: tagger, Now: now})
	must(t, err)
	return s, l, func() {
		t.Helper()
		must(t, errors.Join(l.Close(context.WithoutCancel(t.Context())), s.Close()))
	}
}

// pastChanges is a list of document changes, which the ledger signs at once.
type pastChanges []storage.Change

func (c *pastChanges) Changes(context.Context, storage.Change, int) ([]storage.Change, error) {
	return *c, nil
}

func (c *pastChanges) Trim(context.Context, []storage.Change) error {
	*c = nil
	return nil
}

// verifyURL verifies the history that a server returns.
func verifyURL(t *testing.T, base, token string, args ...string) (code int, said string) {
	t.Helper()
	return run(t, append([]string{"verify", "--chain", "--url", base, "--api-key", token}, args...)...)
}

// verifyData verifies the history in a directory.
func verifyData(t *testing.T, data datadir.Dir) (code int, said string) {
	t.Helper()
	return run(t, "verify", "--chain", "--data", string(data))
}

// TestVerifyChain_URL verifies the history of an honest server, and then forged histories.
func TestVerifyChain_URL(t *testing.T) {
	t.Parallel()
	const n = 600 // heads cover both organizations: more than two pages
	data := pastHistory(t, n)
	keys := filepath.Join(t.TempDir(), "keys.jwks")
	public, err := os.ReadFile(data.JWKS())
	must(t, err)
	must(t, os.WriteFile(keys, public, 0o600))
	p := start(t, data)
	token := tokenOf(t, data)
	register(t, p.url, token)
	evaluate(t, p.url, token, 2) // these heads are too young to be listed
	code, said := verifyURL(t, p.url, token, "--keys", keys)
	said = strings.Replace(said, "2 changes", "1 change", 1) // the policy's change may already be signed
	for _, want := range []string{
		fmt.Sprintf("%s: whole: 1 chain, %d heads, %d decisions, 1 settled, 1 change, 0 removals of 0\n", p.url, 2*n+2, n+2),
		": 2 rows under heads that are not listed, young ones or other stores': each verified by itself\n",
		": not proved: that no row is missing: a server shows the rows of one organization\n",
	} {
		if code != exitOK || !strings.Contains(said, want) {
			t.Errorf("writ verify = exit code %d, %s\nwant %q", code, said, want)
		}
	}
	lines := strings.Split(strings.TrimSpace(said), "\n")
	anchor := filepath.Join(t.TempDir(), "anchor.json")
	must(t, os.WriteFile(anchor, []byte(lines[len(lines)-1]), 0o600))
	if code, said := verifyURL(t, p.url, token, "--keys", keys, "--anchor", anchor); code != exitOK || strings.Contains(said, "--anchor") {
		t.Errorf("writ verify --anchor = exit code %d, %s", code, said)
	}
	if code, said := verifyURL(t, p.url, "writ_wrong", "--keys", keys); code != exitInvalid || !strings.Contains(said, "401 Unauthorized") {
		t.Errorf("writ verify with a wrong key = exit code %d, %s", code, said)
	}

	for name, test := range map[string]struct {
		path string // answers under this path are forged
		do   func(items []any) []any
		code int
		want string
		args []string
	}{
		"a head is left out": {"/v1/ledger/heads", func(items []any) []any { return append(items[:3], items[4:]...) }, exitFailed, "receipt: broken chain", nil},
		"a head is changed":  {"/v1/ledger/heads", func(items []any) []any { items[3].(map[string]any)["size"] = 9; return items }, exitFailed, "receipt: ", nil},
		"a head is no head":  {"/v1/ledger/heads", func(items []any) []any { items[3] = "x"; return items }, exitInvalid, "receipt: malformed", nil},
		"heads come twice":   {"/v1/ledger/heads", func(items []any) []any { return append(items, items...) }, exitInvalid, "the server lists head ", nil},
		"the tail is cut":    {"/v1/ledger/heads", func(items []any) []any { return items[:0] }, exitFailed, "and the history has no heads", []string{"--anchor", anchor}},
		"a row is changed":   {"/v1/authorizations", func(items []any) []any { items[7].(map[string]any)["reasons"] = []string{"x"}; return items }, exitFailed, `organization "` + examples.Organization + `", decision `, nil},
		"a row is another's": {"/v1/authorizations", func(items []any) []any { items[7].(map[string]any)["organization_id"] = "rival"; return items }, exitFailed, `organization "rival", decision `, nil},
		"rows come twice":    {"/v1/authorizations", func(items []any) []any { return append(items, items...) }, exitInvalid, "the server lists decision ", nil},
		"a settlement is forged": {"/v1/authorizations", func(items []any) []any {
			items[7].(map[string]any)["settlement"] = storage.Settlement{Outcome: "undone"}
			return items
		}, exitFailed, `its settlement has the outcome "undone"`, nil},
		"a settlement is changed": {"/v1/authorizations", func(items []any) []any {
			for _, item := range items {
				if s, ok := item.(map[string]any)["settlement"].(map[string]any); ok {
					s["outcome"] = "failed"
				}
			}
			return items
		}, exitFailed, "its settlement: it is not what head ", nil},
		"a change is changed": {"/v1/changes", func(items []any) []any { oldest(items)["actor"] = "operator:bob"; return items }, exitFailed, `change "policy/p/7": it is not what head `, nil},
		"a change is another's": {"/v1/changes", func(items []any) []any {
			oldest(items)["organization_id"] = "rival"
			return items
		}, exitFailed, `organization "rival": change "policy/p/7": it is not what head `, nil},
		"changes come twice": {"/v1/changes", func(items []any) []any { return append(items, items...) }, exitInvalid, "the server lists change policy/", nil},
	} {
		t.Run(name, func(t *testing.T) {
			liar := forging(t, p.url, test.path, test.do)
			code, said := verifyURL(t, liar, token, append(test.args, "--keys", keys)...)
			if code != test.code || !strings.Contains(said, test.want) || strings.Contains(said, "whole") {
				t.Errorf("writ verify = exit code %d, %s\nwant %d, %q", code, said, test.code, test.want)
			}
		})
	}
}

// TestVerifyChain_URLResumed verifies what a server shows since the last run, of an honest server and of forged ones.
func TestVerifyChain_URLResumed(t *testing.T) {
	t.Parallel()
	data := pastHistory(t, 600)
	p := start(t, data)
	token, keys := tokenOf(t, data), data.JWKS()
	kept := filepath.Join(t.TempDir(), "heads.json")
	verify := func(base string) (int, string) { return verifyURL(t, base, token, "--keys", keys, "--resume", kept) }
	if code, said := verify(p.url); code != exitOK || !strings.Contains(said, ": whole: 1 chain, 1202 heads, 600 decisions, 1 settled,") {
		t.Fatalf("the first writ verify --resume = exit code %d, %s", code, said)
	}
	p.stop(t)
	const later = 30
	past := time.Now().Add(-10 * time.Minute)
	_, l, closeBoth := openLedger(t, data, func() time.Time { return past })
	for i := range later {
		_, err := ledgertest.Commit(t.Context(), l, examples.Organization, allowed(fmt.Sprintf("5eed0000-0000-4000-9000-%012d", i)))
		must(t, err)
	}
	closeBoth()
	p = start(t, data)
	before, err := os.ReadFile(kept)
	must(t, err)
	for name, test := range map[string]struct {
		path string
		do   func(items []any) []any
		want string
	}{
		"a head is left out":         {"/v1/ledger/heads", func(items []any) []any { return append(items[:3], items[4:]...) }, "receipt: broken chain"},
		"the anchor is left out":     {"/v1/ledger/heads", func(items []any) []any { return items[:later] }, "it is not the one that was kept as the anchor"},
		"the history is an older":    {"/v1/ledger/heads", func(items []any) []any { return items[later+1:] }, "it was kept as the anchor, and the history has no heads"},
		"a row since then is forged": {"/v1/authorizations", func(items []any) []any { items[7].(map[string]any)["reasons"] = []string{"x"}; return items }, "decision "},
	} {
		if code, said := verify(forging(t, p.url, test.path, test.do)); code != exitFailed || !strings.Contains(said, test.want) {
			t.Errorf("writ verify --resume where %s = exit code %d, %s\nwant %q", name, code, said, test.want)
		}
		if is, err := os.ReadFile(kept); err != nil || !bytes.Equal(is, before) {
			t.Errorf("after a broken history the file has %s, %v, want %s", is, err, before)
		}
	}
	rows, heads := 0, 0
	counting := forging(t, p.url, "/v1/authorizations", func(items []any) []any { rows += len(items); return items })
	counting = forging(t, counting, "/v1/ledger/heads", func(items []any) []any { heads += len(items); return items })
	want := fmt.Sprintf(": whole since the anchors: 1 chain, %d heads, %d decisions, 0 settled,", later, later)
	if code, said := verify(counting); code != exitOK || !strings.Contains(said, want) {
		t.Errorf("the second writ verify --resume = exit code %d, %s\nwant %q", code, said, want)
	}
	if rows >= 630 || heads != later+1 {
		t.Errorf("it has read %d rows and %d heads, want not all rows, and %d heads from the anchor on", rows, heads, later+1)
	}
}

func oldest(items []any) map[string]any { return items[len(items)-1].(map[string]any) }

// forging returns the address of a proxy to base. The proxy changes the list in the answers under
// path.
func forging(t *testing.T, base, path string, do func([]any) []any) string {
	t.Helper()
	return proxied(t, base, func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		if r.URL.Path != path {
			server.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, r)
		var page map[string]any
		if err := json.Unmarshal(answer.Body.Bytes(), &page); err != nil {
			t.Error(err)
			return
		}
		page["data"] = do(page["data"].([]any))
		io.WriteString(w, encode(t, page))
	})
}

// TestVerifyChain_Retention verifies two directories. In the first, retention has removed rows. In
// the second, rows were deleted without an entry of the removal.
func TestVerifyChain_Retention(t *testing.T) {
	data := pastHistory(t, 5)
	sweep := func(announce func(*ledger.Ledger) func(context.Context, string, time.Time, storage.Expired) error, kept string) {
		t.Helper()
		store, l, closeBoth := openLedger(t, data, nil)
		s, err := retention.New(retention.Config{
			Store: store, Announce: announce(l),
			Keep: func(_ context.Context, org string) (time.Duration, error) {
				if org == kept {
					return 0, nil
				}
				return time.Minute, nil
			},
			Wait: func(context.Context, time.Duration) error { return context.Canceled },
		})
		must(t, err)
		s.Run(t.Context())
		closeBoth()
	}
	sweep(func(l *ledger.Ledger) func(context.Context, string, time.Time, storage.Expired) error {
		return l.Retain
	}, "rival")
	code, said := verifyData(t, data)
	for _, want := range []string{
		": whole: 1 chain, 13 heads, 5 decisions, 0 settled, 2 changes, 1 removal of 5\n",
		": of 1 organization\n",
		": 5 rows that retention removed, as it had announced, the newest decided at ",
	} {
		if code != exitOK || !strings.Contains(said, want) {
			t.Errorf("writ verify = exit code %d, %s\nwant %q", code, said, want)
		}
	}
	sweep(func(*ledger.Ledger) func(context.Context, string, time.Time, storage.Expired) error {
		return func(context.Context, string, time.Time, storage.Expired) error { return nil }
	}, "")
	if code, said = verifyData(t, data); code != exitFailed || !strings.Contains(said, "it was removed, and no retention entry covers it") {
		t.Errorf("writ verify = exit code %d, %s\nwant a break", code, said)
	}
}
