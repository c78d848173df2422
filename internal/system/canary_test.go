package system

import (
	"archive/tar"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"writ.example/writ/engine"
	"writ.example/writ/examples"
	"writ.example/writ/internal/scrub/scrubtest"
	"writ.example/writ/storage/datadir"
	"writ.example/writ/storage/embedded"
	"writ.example/writ/storage/registry"
)

// TestCanaries checks that no secret is stored or shown. It puts invented secrets, the canaries,
// into everything that a caller can send. Then it searches for them in the store, logs, history,
// CSV and metrics.
func TestCanaries(t *testing.T) {
	for turn, mode := range []string{"minimal", "full"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			data, operator := newData(t)
			rows := filepath.Join(t.TempDir(), "rows.jsonl")
			p := start(t, data, "--decision-log=file:"+rows, "--audit="+mode, "--rate-limit-credential=off", "--rate-limit-changes=off", "--rate-limit-address=off",
				exportingPlan(t), "--portal-url=http://portal.example",
				"--stripe-key=not-a-key", "--stripe-webhook-secret=not-a-secret", "--stripe-price-pro=pro",
				"--stripe-price-business=business", "--stripe-url=http://127.0.0.1:1")
			register(t, p.url, operator)
			b := &bird{t: t, url: p.url, sender: newSender(t, operator, 16)}
			canaries := scrubtest.Canaries(uint64(len(mode)))
			b.singAll(canaries, turn)
			if b.evaluated.Load() == 0 || b.failures.Load() == 0 || b.refused.Load() == 0 {
				t.Fatalf("%d evaluations, %d logged failures, %d refused documents: want some of each", b.evaluated.Load(), b.failures.Load(), b.refused.Load())
			}
			seen := b.shown(p)
			p.stop(t)
			if text := seen["the bundle"]; !strings.Contains(text, "request failed") || strings.Contains(text, "not-a-key") {
				t.Errorf("the bundle lacks the log, or has a key")
			}
			seen["the log"] = p.stderr.String()
			seen["the decision log"] = fileText(t, rows)
			if !strings.Contains(seen["the log"], "request failed") {
				t.Errorf("no request failed: the test shows nothing about the log\n%s", seen["the log"])
			}
			for _, where := range []string{"GET /v1/authorizations", "the CSV", "the decision log"} {
				if got := strings.Contains(strings.ReplaceAll(seen[where], `""`, `"`), `"harmless":"kept"`); got != (mode == "full") {
					t.Errorf("%s has metadata values = %t in mode %s", where, got, mode)
				}
			}
			expectNone(t, canaries, seen)
			expectNone(t, canaries, kept(t, data))
			expectPlanted(t, data, canaries[0], canaries[0].Value)
			expectPlanted(t, data, canaries[1], encoded(0, canaries[1]))
		})
	}
}

// expectPlanted checks that the test would find a leak. It writes c in one spelling to the store,
// without the API.
func expectPlanted(t *testing.T, data datadir.Dir, c scrubtest.Canary, spelled string) {
	t.Helper()
	store, err := embedded.Open(data.Store(), embedded.Options{Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	agent := &engine.Agent{ID: uuid.NewString(), Name: spelled, Status: engine.AgentActive, CreatedAt: time.Now()}
	must(t, registry.New(store).PutAgent(t.Context(), examples.Organization, agent, 1<<30))
	must(t, store.Close())
	if len(leaks([]scrubtest.Canary{c}, kept(t, data))) == 0 {
		t.Error("a secret that was stored on purpose is not found: the test shows nothing")
	}
}

func expectNone(t *testing.T, canaries []scrubtest.Canary, texts map[string]string) {
	t.Helper()
	for _, leak := range leaks(canaries, texts) {
		t.Error(leak)
	}
}

// leaks returns the places where canaries are found. It searches for each spelling that was sent.
// Of an encoded canary it searches for only one half: an encoded canary leaks as a whole or not at
// all.
func leaks(canaries []scrubtest.Canary, texts map[string]string) (found []string) {
	for name, text := range texts {
		text = strings.ToLower(text)
		for i, c := range canaries {
			code := encoded(i, c)
			for _, spelling := range append(spellings(c.Hidden()), code, url.QueryEscape(code), code[:len(code)/2], code[len(code)/2:]) {
				if i := strings.Index(text, strings.ToLower(spelling)); i >= 0 {
					found = append(found, c.Name+" is in "+name+": …"+text[max(i-80, 0):min(i+len(spelling)+20, len(text))])
					break
				}
			}
		}
	}
	return found
}

// spellings returns the forms of s that a leak could have: plain, as a part of a URL, with each
// byte escaped, and in JSON.
func spellings(s string) []string {
	return []string{s, url.PathEscape(s), url.QueryEscape(s), escape(s), strings.ReplaceAll(s, "\n", `\n`)}
}

// encoded returns c in base64 or hexadecimal. i selects the encoding.
func encoded(i int, c scrubtest.Canary) string {
	v := []byte(c.Value)
	return []string{
		base64.StdEncoding.EncodeToString(v), base64.RawURLEncoding.EncodeToString(v), hex.EncodeToString(v),
		base64.URLEncoding.EncodeToString(v), strings.ToUpper(hex.EncodeToString(v)), base64.RawStdEncoding.EncodeToString(v),
	}[i%6]
}

// escape writes each byte of s as a percent-escape.
func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%%%02X", s[i])
	}
	return b.String()
}

// unpacked returns the files of a tar archive, one after the other.
func unpacked(t *testing.T, archive string) string {
	t.Helper()
	packed, err := gzip.NewReader(strings.NewReader(archive))
	must(t, err)
	var text strings.Builder
	for files := tar.NewReader(packed); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return text.String()
		}
		must(t, err)
		fmt.Fprintln(&text, h.Name)
		_, err = io.Copy(&text, files)
		must(t, err)
	}
}

// kept returns everything below data: each file, and each key and value of the store. The store
// compresses its files, so a search of the files alone would find nothing.
func kept(t *testing.T, data datadir.Dir) map[string]string {
	t.Helper()
	texts := make(map[string]string)
	err := filepath.WalkDir(string(data), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		texts[path] = string(content)
		return err
	})
	must(t, err)
	db, err := pebble.Open(data.Store(), &pebble.Options{
		ReadOnly: true, FormatMajorVersion: pebble.FormatValueSeparation, Logger: silent{},
	})
	must(t, err)
	defer db.Close()
	it, err := db.NewIter(nil)
	must(t, err)
	var all strings.Builder
	for it.First(); it.Valid(); it.Next() {
		all.Write(it.Key())
		all.WriteByte('\n')
		all.Write(it.Value())
		all.WriteByte('\n')
	}
	must(t, it.Close())
	texts["the store"] = all.String()
	return texts
}

type silent struct{}

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}
func (silent) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}

// exportingPlan returns the flag of a plan that allows everything to everyone.
func exportingPlan(t *testing.T) string {
	t.Helper()
	return plansFlag(t, object{"free": object{
		"name": "free", "evaluations": 1_000_000_000, "policies": 100_000, "agents": 100_000, "retention_days": 7, "csv_export": true,
	}})
}

// bird sends canaries to a server.
type bird struct {
	t     *testing.T
	url   string
	asker string // an agent's key; an operator approves its intents
	sender
	evaluated, failures, refused atomic.Int64
}

// singAll sends canaries, several at a time, so that they share the waits for the disk. It sends
// each canary in one of three spellings, selected by turn. A soak test sends each canary in all
// spellings.
func (b *bird) singAll(canaries []scrubtest.Canary, turn int) {
	var key struct {
		Token string `json:"token"`
	}
	made := b.send(http.MethodPost, "/v1/tokens", `{"name":"asker","scopes":["policy:evaluate"]}`, nil)
	if err := json.Unmarshal([]byte(made.body), &key); err != nil || key.Token == "" {
		b.t.Fatalf("making a key = %d %s", made.status, made.body)
	}
	b.asker = key.Token
	b.counted()
	var all sync.WaitGroup
	places := make(chan struct{}, 16)
	for i, c := range canaries {
		if testing.Short() && i%5 != 0 {
			continue
		}
		sent := []string{c.Value, escape(c.Value), encoded(i, c)}
		if !soaking() {
			sent = sent[(i+turn)%len(sent):][:1]
		}
		for _, s := range sent {
			places <- struct{}{}
			all.Go(func() {
				b.sing(c, s)
				<-places
			})
		}
	}
	all.Wait()
}

// sing sends s, a spelling of c, in every field of every endpoint. Documents may contain the name
// of a person, so sing sends no canary of that kind in documents.
func (b *bird) sing(c scrubtest.Canary, s string) {
	b.intents(s)
	if !c.Somebody {
		b.documents(s)
		b.lists(s)
		b.webhooks(s)
	}
	b.sessions(c, s)
	b.record(s)
	b.approvals(s)
	b.addresses(s)
	b.broken(s)
}

// intents sends s in every field of an intent.
func (b *bird) intents(s string) {
	for _, fields := range []object{
		{"agent_id": s}, {"agent_id": "bot-" + s + "-1"}, {"action_type": s}, {"action_type": "deploy." + s},
		{"resource": s}, {"resource": "https://host.example/v1/" + s + "/x"}, {"resource": "https://host.example/x?token=" + s + "#" + s},
		{"resource": "https://user:" + s + "@host.example/x"}, {"resource": "https://" + s + ".example/"}, {"resource": "/" + s},
		{"resource": "https://host.example/a;jsessionid=" + s + "/b"}, {"resource": "https://host.example/p%3Ftoken=" + s},
		{"resource": "jdbc:sqlserver://db;user=sa;password=" + s}, {"resource": url.PathEscape(s)}, {"agent_id": url.PathEscape(s)},
		{"metadata": object{s: "x", "harmless": "kept"}}, {"metadata": object{"note": s}}, {"metadata": object{"note": "see " + s + ", thanks"}},
		{"metadata": object{"password": s}}, {"metadata": object{"a." + s: s, "b": s}},
		{"cost": object{"amount_minor": 1, "currency": s}}, {"policy_id": s}, {"intent_id": s}, {"issued_at": s}, {s: s},
	} {
		intent := object{
			"intent_id": uuid.NewString(), "policy_id": testPolicy, "agent_id": "bot", "action_type": "deploy",
			"resource": "prod/web", "issued_at": "2026-11-02T10:00:00Z",
		}
		for k, v := range fields {
			intent[k] = v
		}
		if b.json(http.MethodPost, "/v1/policy/evaluate", object{"policy_id": testPolicy, "intent": intent}) == http.StatusOK {
			b.evaluated.Add(1)
		}
	}
	b.json(http.MethodPost, "/v1/governance/authorize", object{"policy_id": testPolicy, "intent": object{
		"intent_id": uuid.NewString(), "policy_id": testPolicy, "agent_id": s, "action_type": "deploy",
		"resource": "prod/" + s, "issued_at": "2026-11-02T10:00:00Z", "metadata": object{s: s},
	}})
	b.json(http.MethodPost, "/v1/policy/evaluate", object{"policy_id": s, "intent": s})
}

// documents sends s in every field of documents that are stored as they are written.
func (b *bird) documents(s string) {
	send := func(method, path string, doc, fields object) {
		for k, v := range fields {
			sent := object{}
			for k, v := range doc {
				sent[k] = v
			}
			sent[k] = v
			var body any = sent
			if strings.HasPrefix(path, "/v1/policies") {
				body = object{"policy": sent}
			}
			if b.json(method, path, body) == http.StatusBadRequest {
				b.refused.Add(1)
			}
		}
	}
	send(http.MethodPost, "/v1/policies/register", object{
		"policy_id": uuid.NewString(), "version": 1, "organization_id": examples.Organization, "agent_id": "bot",
		"allowed_action_types": []string{"deploy"}, "status": "active", "updated_at": "2026-11-01T09:00:00Z",
	}, object{
		"policy_id": s, "organization_id": s, "agent_id": s, "allowed_action_types": []string{s}, "denied_action_types": []string{s},
		"allowed_resource_patterns": []string{"a", "https://h/" + s + "/**"}, "blocked_resource_patterns": []string{s},
		"currency": s, "status": s, "updated_at": s, s: s,
	})
	quoted, err := json.Marshal(s)
	if err != nil {
		return
	}
	rule := object{"name": "r", "condition": `{"action_type":"deploy"}`, "action": `{"decision":"deny","reason":"no"}`}
	fields := object{
		"name": s, "description": "see " + s, "condition": `{"metadata.env":` + string(quoted) + `}`,
		"action": `{"decision":"deny","reason":` + string(quoted) + `}`, "priority": s, s: s,
	}
	send(http.MethodPost, "/v1/rules", rule, fields)
	for _, cel := range []string{`intent.resource == "` + s + `"`, `intent.metadata.x != '` + s + `'`} {
		send(http.MethodPost, "/v1/rules", rule, object{"condition": encode(b.t, object{"cel": cel})})
	}
	send(http.MethodPost, "/v1/rules", rule, object{"condition": encode(b.t, object{"rego": `input.intent.agent_id == "` + s + `"`})})
	for _, counter := range []object{{"by": []string{"agent_id"}, "window": "1h", "action_type": s}, {"window": s}, {"by": []string{s}, "window": "1h"}} {
		send(http.MethodPost, "/v1/rules", rule, object{"condition": encode(b.t, object{"count": counter, "gt": 1e6})})
	}
	send(http.MethodPost, "/v1/agents", object{"name": "a"}, object{"name": s, "externalId": s})
	send(http.MethodPost, "/v1/tokens", object{"name": "t"}, object{"name": s, "scopes": []string{s}, "expiresAt": s})
	send(http.MethodPost, "/v1/billing/checkout", object{}, object{"plan": s, s: s})
	var made struct {
		ID string `json:"id"`
	}
	if err := (client{b.sender, b.url}).call(http.MethodPost, "/v1/rules", rule, http.StatusCreated, &made); err != nil {
		b.t.Errorf("making a rule: %v", err)
		return
	}
	send(http.MethodPatch, "/v1/rules/"+made.ID, object{}, fields)
	b.send(http.MethodDelete, "/v1/rules/"+made.ID, "", nil)
}

// record sends s as the outcome of an action.
func (b *bird) record(s string) {
	var decided struct {
		DecisionID string `json:"decision_id"`
	}
	in := newIntent("bot", "deploy", "prod/web")
	answer := b.send(http.MethodPost, "/v1/policy/evaluate", string(in.body), nil)
	if err := json.Unmarshal([]byte(answer.body), &decided); err != nil || answer.status != http.StatusOK {
		b.t.Errorf("evaluate = %d %s", answer.status, answer.body)
		return
	}
	for _, doc := range []object{
		{"decision_id": decided.DecisionID, "outcome": s}, {"decision_id": decided.DecisionID, "outcome": "executed", "currency": s},
		{"decision_id": s, "outcome": "executed"}, {"decision_id": decided.DecisionID, "outcome": "executed", "external_ref": s},
	} {
		b.json(http.MethodPost, "/v1/actions/record", doc)
	}
}

// approvals sends s in held intents and in the comments of their approver. Every second
// approval stays pending, with its details.
func (b *bird) approvals(s string) {
	for _, status := range []string{"", "approved", "rejected"} {
		intent := object{
			"intent_id": uuid.NewString(), "policy_id": testPolicy, "agent_id": "stranger", "action_type": "deploy",
			"resource": "prod/web", "issued_at": "2026-11-02T10:00:00Z", "metadata": object{s: "x", "note": s, "password": "see " + s},
		}
		var held struct {
			DecisionID string `json:"decision_id"`
		}
		agent := http.Header{"Authorization": {"Bearer " + b.asker}}
		answer := b.send(http.MethodPost, "/v1/policy/evaluate", encode(b.t, object{"policy_id": testPolicy, "intent": intent}), agent)
		if answer.status == http.StatusBadRequest {
			return // a metadata key cannot contain s
		}
		if err := json.Unmarshal([]byte(answer.body), &held); err != nil || answer.status != http.StatusOK {
			b.t.Errorf("evaluate = %d %s", answer.status, answer.body)
			return
		}
		path := "/v1/approvals/" + held.DecisionID
		b.json(http.MethodPatch, path, object{"status": s})
		if status != "" {
			got := b.send(http.MethodPatch, path, encode(b.t, object{"status": status, "comment": "for " + s}), nil)
			// A concurrently created rule may have denied the request.
			if got.status != http.StatusOK && got.status != http.StatusBadRequest && got.status != http.StatusNotFound {
				b.t.Errorf("PATCH %s = %d %s", path, got.status, got.body)
			}
		}
		b.json(http.MethodPost, "/v1/policy/evaluate", object{"policy_id": testPolicy, "intent": intent, "approval_id": held.DecisionID})
		b.json(http.MethodPost, "/v1/policy/evaluate", object{"policy_id": testPolicy, "intent": intent, "approval_id": s})
	}
}

// counted creates rules that count intents by agent and add up their costs.
func (b *bird) counted() {
	for i, leaf := range []string{
		`{"count":{"by":["agent_id"],"window":"1h"},"gt":1000000000}`,
		`{"sum":{"field":"cost.amount_minor","currency":"EUR","by":["agent_id","session_id"],"window":"1h"},"gt":1000000000}`,
	} {
		rule := object{"name": fmt.Sprint("limit ", i), "condition": leaf, "action": `{"decision":"deny"}`}
		if got := b.json(http.MethodPost, "/v1/rules", rule); got != http.StatusCreated {
			b.t.Fatalf("making a limit over time = %d", got)
		}
	}
}

// sessions sends s in every field of a session, and in intents of sessions. Sessions may contain
// the name of a person, so no canary of that kind is sent in sessions.
func (b *bird) sessions(c scrubtest.Canary, s string) {
	whole := object{"policy_id": testPolicy, "agent_id": "bot", "allowed_action_types": []string{"deploy"}, "ttl": 600}
	for k, v := range (object{
		"": "", "policy_id": s, "agent_id": s, "allowed_action_types": []string{s}, "allowed_resource_patterns": []string{"prod/web", "prod/" + s},
		"max_cost_minor": s, "ttl": s, s: s,
	}) {
		if c.Somebody && k != "" {
			continue
		}
		sent := object{}
		for name, value := range whole {
			sent[name] = value
		}
		if k != "" {
			sent[k] = v
		}
		var made struct {
			ID string `json:"session_id"`
		}
		answer := b.send(http.MethodPost, "/v1/sessions", encode(b.t, sent), nil)
		switch {
		case answer.status == http.StatusBadRequest:
			b.refused.Add(1)
			continue
		case answer.status != http.StatusCreated || json.Unmarshal([]byte(answer.body), &made) != nil:
			b.t.Errorf("POST /v1/sessions = %d %s", answer.status, answer.body)
			continue
		}
		intent := object{
			"intent_id": uuid.NewString(), "policy_id": testPolicy, "agent_id": "bot", "action_type": "deploy",
			"resource": "prod/" + s, "issued_at": "2026-11-02T10:00:00Z", "cost": object{"amount_minor": 1, "currency": "EUR"},
		}
		b.json(http.MethodPost, "/v1/policy/evaluate", object{"policy_id": testPolicy, "session_id": made.ID, "intent": intent})
		b.json(http.MethodPatch, "/v1/sessions/"+made.ID, object{"status": s})
	}
	intent := object{
		"intent_id": uuid.NewString(), "policy_id": testPolicy, "agent_id": "bot", "action_type": "deploy",
		"resource": "prod/web", "issued_at": "2026-11-02T10:00:00Z",
	}
	b.json(http.MethodPost, "/v1/policy/evaluate", object{"policy_id": testPolicy, "session_id": s, "intent": intent})
	b.send(http.MethodGet, "/v1/sessions/"+url.PathEscape(s), "", nil)
	b.send(http.MethodPatch, "/v1/sessions/"+url.PathEscape(s), `{"status":"closed"}`, nil)
}

// lists sends s as the name of a list and as a value in it.
func (b *bird) lists(s string) {
	for _, l := range []struct {
		name string
		body object
	}{
		{s, object{"values": []string{"a"}}}, {"payees", object{"values": []string{"a", s}}},
		{"payees", object{"values": []string{"see " + s + ", thanks"}}}, {"payees", object{"values": s}}, {"payees", object{"values": []string{}, s: s}},
	} {
		if b.json(http.MethodPut, "/v1/lists/"+url.PathEscape(l.name), l.body) == http.StatusBadRequest {
			b.refused.Add(1)
		}
	}
	b.send(http.MethodGet, "/v1/lists/"+url.PathEscape(s), "", nil)
	b.send(http.MethodDelete, "/v1/lists/"+url.PathEscape(s), "", nil)
}

// webhooks sends s in every field of a webhook.
func (b *bird) webhooks(s string) {
	for _, body := range []object{
		{"url": "https://hooks.example/" + s, "events": []string{"approval.pending"}}, {"url": "https://hooks.example/?token=" + s, "events": []string{"approval.pending"}},
		{"url": s, "events": []string{"approval.pending"}}, {"url": "https://hooks.example/", "events": []string{s}}, {s: s},
	} {
		if b.json(http.MethodPost, "/v1/webhooks", body) == http.StatusBadRequest {
			b.refused.Add(1)
		}
	}
	b.send(http.MethodGet, "/v1/webhooks/"+url.PathEscape(s), "", nil)
	b.send(http.MethodDelete, "/v1/webhooks/"+url.PathEscape(s), "", nil)
}

// addresses sends s in paths, queries and headers. A checkout fails because there is no Stripe, and
// the failure is logged with the request's id.
func (b *bird) addresses(s string) {
	line, query := url.PathEscape(s), url.QueryEscape(s)
	for _, path := range []string{"/v1/" + line, "/" + line + "/x"} {
		b.send(http.MethodGet, path, "", nil)
		b.send(http.MethodPost, path, "{}", nil)
	}
	b.send(http.MethodPatch, "/v1/agents/"+line+"/status", `{"status":"active"}`, nil)
	b.send(http.MethodPatch, "/v1/rules/"+line, `{"name":"x"}`, nil)
	b.send(http.MethodDelete, "/v1/rules/"+line, "", nil)
	b.send(http.MethodDelete, "/v1/tokens/"+line, "", nil)
	b.send(http.MethodGet, "/v1/approvals/"+line, "", nil)
	b.send(http.MethodPatch, "/v1/approvals/"+line, `{"status":"rejected"}`, nil)
	b.send(http.MethodGet, "/v1/approvals?limit=1&agent_id="+query, "", nil)
	for _, name := range []string{"agent_id", "action_type", "policy_id", "decision", "from", "cursor", "limit", query} {
		b.send(http.MethodGet, "/v1/authorizations?limit=1&"+name+"="+query, "", nil)
	}
	b.send(http.MethodGet, "/v1/authorizations/export?from=2100-01-01T00:00:00Z&agent_id="+query, "", nil)
	if strings.ContainsAny(s, "\n\r") {
		return // a header cannot contain s
	}
	for _, name := range []string{"X-Request-Id", "User-Agent", "Referer", "Cookie", "Accept", "Content-Type", "Authorization", "Idempotency-Key", "Last-Event-ID"} {
		value := s
		if name == "Authorization" {
			value = "Bearer " + s
		}
		got := b.send(http.MethodPost, "/v1/billing/checkout", `{"plan":"pro"}`, http.Header{name: {value}})
		if got.status >= http.StatusInternalServerError {
			b.failures.Add(1)
		}
	}
	b.send(http.MethodPost, "/v1/billing/webhook", `{"id":"`+s+`"}`, http.Header{"Stripe-Signature": {"t=1,v1=" + s}})
}

// broken sends s in bodies that are not documents, and in requests that are not HTTP.
func (b *bird) broken(s string) {
	for _, request := range []string{
		"GET /" + s + " HTTP/9\r\n" + s + "\r\n\r\n", s + "\r\n\r\n",
		"POST /v1/rules HTTP/1.1\r\nHost: " + s + "\r\nContent-Length: " + s + "\r\n " + s + "\r\n\r\n",
		"POST /v1/rules HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + s,
	} {
		b.raw(request)
	}
	for _, body := range []string{s, `{"policy_id":"` + s, `{"intent":{"` + s + `":`, `["` + s + `"]`, `{"policy":"` + s + `"} ` + s} {
		for _, path := range []string{"/v1/policy/evaluate", "/v1/policies/register", "/v1/rules", "/v1/agents", "/v1/actions/record"} {
			b.send(http.MethodPost, path, body, nil)
		}
	}
}

// raw sends request and waits until the server answers or closes the connection.
func (b *bird) raw(request string) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.url, "http://"))
	if err != nil {
		b.t.Errorf("dialling: %v", err)
		return
	}
	defer conn.Close()
	tcp := conn.(*net.TCPConn)
	if _, err := io.WriteString(tcp, request); err == nil {
		_ = tcp.CloseWrite()            // ends the request
		_, _ = io.Copy(io.Discard, tcp) // any answer is fine
	}
}

// json sends a document. It fails the test if the answer is a 5xx.
func (b *bird) json(method, path string, doc any) int {
	b.t.Helper()
	body := encode(b.t, doc)
	got := b.send(method, path, body, nil)
	if got.status >= http.StatusInternalServerError && path != "/v1/billing/checkout" {
		b.t.Errorf("%s %s = %d %s", method, path, got.status, got.body)
	}
	return got.status
}

// send sends a request. If the server is overloaded, send waits for Retry-After and tries again,
// because other tests use the processors too.
func (b *bird) send(method, path, body string, header http.Header) answer {
	b.t.Helper()
	got := b.sendOnce(method, path, body, header)
	for tries := 0; got.status == http.StatusServiceUnavailable && tries < 20; tries++ {
		time.Sleep(time.Second)
		got = b.sendOnce(method, path, body, header)
	}
	return got
}

func (b *bird) sendOnce(method, path, body string, header http.Header) answer {
	b.t.Helper()
	got, err := b.sender.send(method, b.url+path, []byte(body), header)
	if err != nil {
		b.t.Errorf("%s %s: %v", method, path, err)
	}
	return got
}

// shown returns the answers to all reading requests, with all pages.
func (b *bird) shown(p *process) map[string]string {
	b.t.Helper()
	texts := make(map[string]string)
	_, texts["/metrics"] = get(b.t, p.admin+"/metrics")
	_, packed := get(b.t, p.admin+"/debug/bundle")
	texts["the bundle"] = unpacked(b.t, packed)
	for _, path := range []string{"/v1/policies", "/v1/rules", "/v1/agents", "/v1/tokens", "/v1/approvals?limit=500", "/v1/sessions?limit=500", "/v1/lists", "/v1/lists/payees", "/v1/webhooks", "/v1/changes?limit=500", "/v1/usage/summary", "/v1/billing/subscription"} {
		texts["GET "+path] = b.send(http.MethodGet, path, "", nil).body
	}
	export := b.send(http.MethodGet, "/v1/authorizations/export", "", nil)
	if export.status != http.StatusOK || strings.Count(export.body, "\n") < 10 {
		b.t.Fatalf("the export = %d, %d bytes: the test shows nothing about it", export.status, len(export.body))
	}
	texts["the CSV"] = export.body
	var history strings.Builder
	for next := ""; ; {
		got := b.send(http.MethodGet, "/v1/authorizations?limit=500"+next, "", nil).body
		history.WriteString(got)
		var page struct {
			Cursor *string `json:"next_cursor"`
		}
		must(b.t, json.Unmarshal([]byte(got), &page))
		if page.Cursor == nil {
			break
		}
		next = "&cursor=" + url.QueryEscape(*page.Cursor)
	}
	texts["GET /v1/authorizations"] = history.String()
	return texts
}
