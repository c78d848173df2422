package system

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"writ.example/writ/api/webhook"
	"writ.example/writ/engine"
	"writ.example/writ/examples"
	"writ.example/writ/storage/mongodb/mongotest"
)

// hearer receives webhooks and verifies them.
type hearer struct {
	*httptest.Server
	mu       sync.Mutex
	secret   string
	received map[string]int  // events by webhook-id
	subjects map[string]bool // the held decisions in the received events
	faults   []string
	attempts int
}

// received is the body of an event.
type received struct {
	Data struct {
		ApprovalID string `json:"approval_id"`
	} `json:"data"`
}

// hear returns a hearer that refuses every nth attempt of a delivery.
func hear(t *testing.T, nth int) *hearer {
	l := &hearer{received: make(map[string]int), subjects: make(map[string]bool)}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // sent by a process that was killed
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.attempts++; l.attempts%nth == 0 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		hook, err := standardwebhooks.NewWebhook(l.secret)
		if err == nil {
			err = hook.Verify(body, r.Header)
		}
		var event received
		if err == nil {
			err = json.Unmarshal(body, &event)
		}
		if err != nil {
			l.faults = append(l.faults, err.Error())
			return
		}
		l.received[r.Header.Get("webhook-id")]++
		l.subjects[event.Data.ApprovalID] = true
	}))
	t.Cleanup(l.Close)
	return l
}

func (l *hearer) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.received)
}

// hook makes a webhook that delivers to l.
func (l *hearer) hook(t *testing.T, c client, events string) (id string) {
	t.Helper()
	var made struct {
		ID     string `json:"id"`
		Secret string `json:"secret"`
	}
	c.do(t, http.MethodPost, "/v1/webhooks", `{"url":"`+l.URL+`","events":[`+events+`]}`, http.StatusCreated, &made)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.secret = made.Secret
	return made.ID
}

// heldBatches sends batches of intents that need an approval. It sends each batch until the
// serving process answers.
func heldBatches(t *testing.T, s sender, url func() string, batches int) {
	for range batches {
		var intents []any
		for range 100 {
			var in struct {
				Intent any `json:"intent"`
			}
			if err := json.Unmarshal(newIntent("somebody", "deploy", "prod/a").body, &in); err != nil {
				t.Error(err)
				return
			}
			intents = append(intents, in.Intent)
		}
		body, err := json.Marshal(object{"policy_id": testPolicy, "mode": "each", "intents": intents})
		if err != nil {
			t.Error(err)
			return
		}
		for late := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
			if a, err := s.send(http.MethodPost, url()+"/v1/policy/evaluate/batch", body); err == nil && a.status == http.StatusOK {
				break
			}
			if time.Now().After(late) {
				t.Errorf("no answer to a batch within %v", patience)
				return
			}
		}
	}
}

// TestCrash_WebhooksLoseNothing kills the real binary during 2,000 deliveries, or 10,000 in a soak
// test. At the end, each held decision in the history must have been delivered.
func TestCrash_WebhooksLoseNothing(t *testing.T) {
	t.Parallel()
	batches, kills := rounds(20, 100), rounds(3, 6)
	data, token := newData(t)
	flags := []string{manyEvaluations(t), "--webhook-allow=127.0.0.0/8", "--rate-limit-credential=off"}
	p := start(t, data, flags...)
	register(t, p.url, token)
	l := hear(t, 700)
	l.hook(t, newClient(t, p.url, token), `"approval.pending","agent.disabled"`)

	var mu sync.Mutex
	url := p.url
	serves := func() string {
		mu.Lock()
		defer mu.Unlock()
		return url
	}
	var sending sync.WaitGroup
	sending.Go(func() { heldBatches(t, newSender(t, token, 1), serves, batches) })
	for i := range kills {
		waitFor(t, "deliveries", func() bool { return l.count() > (i+1)*batches*100/(kills+1) })
		p.kill(t)
		p = start(t, data, flags...)
		mu.Lock()
		url = p.url
		mu.Unlock()
	}
	sending.Wait()
	rows := history(t, p.url, token)
	if len(rows) != batches*100 {
		t.Errorf("%d decisions in the history, want %d", len(rows), batches*100)
	}
	late := time.Now().Add(3 * time.Minute) // a refused delivery is repeated
	for l.count() < len(rows) && time.Now().Before(late) {
		time.Sleep(10 * time.Millisecond)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	lost, twice := 0, 0
	for _, r := range rows {
		if r.Decision != engine.ApprovalRequired {
			t.Fatalf("decision %v, want approval_required", r.Decision)
		}
		if !l.subjects[r.DecisionID] {
			lost++
		}
	}
	for _, n := range l.received {
		if n > 1 {
			twice++
		}
	}
	t.Logf("%d kills, %d deliveries in %d attempts, %d more than once, %d lost", kills, len(l.received), l.attempts, twice, lost)
	if lost > 0 || len(l.received) != len(rows) || len(l.faults) > 0 {
		t.Errorf("%d of %d events lost; %d ids; faults %.3q", lost, len(rows), len(l.received), l.faults)
	}
	p.stop(t)
}

// TestCrash_DecisionEvents kills the real binary while denials become events. At the end each denial was
// delivered as an event, as no more are decided than a minute allows.
func TestCrash_DecisionEvents(t *testing.T) {
	data, token := newData(t)
	flags := []string{manyEvaluations(t), "--webhook-allow=127.0.0.0/8", "--webhook-decisions=10000"}
	p := start(t, data, flags...)
	register(t, p.url, token)
	l := hear(t, 1<<30)
	l.hook(t, newClient(t, p.url, token), `"decision.denied"`)
	s, denied := newSender(t, token, 1), 0
	for range 3 {
		for range 40 {
			s.decide(t, p.url, newIntent("bot", "drop", "prod/a"))
			s.decide(t, p.url, newIntent("bot", "deploy", "prod/a"))
			denied++
		}
		p.kill(t)
		p = start(t, data, flags...)
	}
	waitFor(t, "an event for each denial", func() bool { return l.count() == denied })
	p.stop(t)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.received) != denied || len(l.faults) > 0 {
		t.Errorf("%d events of %d denials, faults %.3q", len(l.received), denied, l.faults)
	}
}

// TestWebhooks_SecretsStayInTheStore checks that no log, metric, export or answer contains the
// secret of a webhook.
func TestWebhooks_SecretsStayInTheStore(t *testing.T) {
	data, token := newData(t)
	p := start(t, data, "--webhook-allow=127.0.0.0/8")
	c := newClient(t, p.url, token)
	register(t, p.url, token)
	l := hear(t, 1<<30)
	id := l.hook(t, c, `"agent.disabled"`)
	c.do(t, http.MethodPost, "/v1/webhooks/"+id+"/test", "", http.StatusAccepted, nil)
	waitFor(t, "a delivery", func() bool { return l.count() == 1 })
	l.CloseClientConnections()
	l.Config.SetKeepAlivesEnabled(false)
	l.Listener.Close()
	c.do(t, http.MethodPost, "/v1/webhooks/"+id+"/test", "", http.StatusAccepted, nil)
	seen := make(map[string]string)
	waitFor(t, "a failure", func() bool {
		_, metrics := get(t, p.admin+"/metrics")
		seen["metrics"] = metrics
		return strings.Contains(metrics, "writ_webhook_failing 1")
	})
	for _, path := range []string{"/v1/webhooks", "/v1/webhooks/" + id, "/v1/webhooks/" + id + "/deliveries", "/v1/changes"} {
		a, err := c.send(http.MethodGet, p.url+path, nil)
		if err != nil || a.status != http.StatusOK {
			t.Fatalf("GET %s = %+v, %v", path, a, err)
		}
		seen[path] = a.body
	}
	p.stop(t)
	seen["log"] = p.stderr.String()
	file := filepath.Join(t.TempDir(), "export")
	wantCode(t, exitOK, "export", "--data", string(data), "--org", examples.Organization, "--out", file)
	export, err := os.ReadFile(file)
	must(t, err)
	seen["export"] = string(export)
	key := strings.TrimPrefix(l.secret, "whsec_")
	for where, text := range seen {
		if strings.Contains(text, key) || strings.Contains(text, l.URL) && (where == "metrics" || where == "log" || where == "export") {
			t.Errorf("%s shows a secret or the URL of a webhook", where)
		}
	}
	if !strings.Contains(kept(t, data)["the store"], key) {
		t.Error("the secret is not in the store: the test shows nothing")
	}
}

// TestWebhooks_SnippetsVerify runs the receivers' code from docs/webhooks.md.
func TestWebhooks_SnippetsVerify(t *testing.T) {
	page, err := os.ReadFile("../../docs/webhooks.md")
	must(t, err)
	secret, body := webhook.NewSecret(), `{"type":"webhook.test","data":{"ü":"é"}}`
	hook, err := standardwebhooks.NewWebhook(secret)
	must(t, err)
	other, err := standardwebhooks.NewWebhook(webhook.NewSecret())
	must(t, err)
	type request struct {
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
		Good    bool              `json:"good"`
	}
	var requests []request
	for _, tc := range []struct {
		signers []*standardwebhooks.Webhook
		at      time.Duration
		sent    string
		good    bool
	}{
		{[]*standardwebhooks.Webhook{hook}, 0, body, true},
		{[]*standardwebhooks.Webhook{other, hook}, 0, body, true},
		{[]*standardwebhooks.Webhook{other}, 0, body, false},
		{[]*standardwebhooks.Webhook{hook}, 0, body + " ", false},
		{[]*standardwebhooks.Webhook{hook}, -time.Hour, body, false},
	} {
		at := time.Now().Add(tc.at)
		var signatures []string
		for _, s := range tc.signers {
			signature, err := s.Sign("msg_1", at, []byte(body))
			must(t, err)
			signatures = append(signatures, signature)
		}
		requests = append(requests, request{map[string]string{
			"webhook-id": "msg_1", "webhook-timestamp": strconv.FormatInt(at.Unix(), 10), "webhook-signature": strings.Join(signatures, " "),
		}, tc.sent, tc.good})
	}
	input, err := json.Marshal(object{"secret": secret, "requests": requests})
	must(t, err)
	for _, lang := range []struct{ fence, program, file, rest string }{
		{"python", "python3", "check.py", `
import json, sys
given = json.load(sys.stdin)
for r in given["requests"]:
    assert verify(given["secret"], r["headers"], r["body"].encode()) == r["good"], r
`},
		{"js", "node", "check.js", `
const given = JSON.parse(require('node:fs').readFileSync(0));
for (const r of given.requests) {
  if (verify(given.secret, r.headers, Buffer.from(r.body)) !== r.good) throw new Error(JSON.stringify(r));
}
`},
		{"go", "go", "check_test.go", `
func TestVerify(t *testing.T) {
	var given struct {
		Secret   string
		Requests []struct {
			Headers map[string]string
			Body    string
			Good    bool
		}
	}
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil {
		t.Fatal(err)
	}
	for _, r := range given.Requests {
		req := httptest.NewRequest("POST", "/", strings.NewReader(r.Body))
		for name, value := range r.Headers {
			req.Header.Set(name, value)
		}
		if _, err := Verify(given.Secret, req); (err == nil) != r.Good {
			t.Errorf("Verify(%+v) = %v", r, err)
		}
	}
}
`},
	} {
		t.Run(lang.fence, func(t *testing.T) {
			snippet := regexp.MustCompile("(?s)\n```" + lang.fence + "\n(.*?)```").FindSubmatch(page)
			if snippet == nil {
				t.Fatalf("docs/webhooks.md has no block of %s", lang.fence)
			}
			program, err := exec.LookPath(lang.program)
			if err != nil {
				t.Skipf("SKIPPED: there is no %s", lang.program)
			}
			dir := t.TempDir()
			if lang.fence == "go" {
				if dir, err = os.MkdirTemp(".", "testdata-webhooks-"); err != nil { // in the module, for its library
					t.Fatal(err)
				}
				t.Cleanup(func() { os.RemoveAll(dir) })
				snippet[1] = bytes.Replace(snippet[1], []byte("import ("), []byte("import (\n\t\"encoding/json\"\n\t\"net/http/httptest\"\n\t\"os\"\n\t\"strings\"\n\t\"testing\"\n"), 1)
			}
			file := filepath.Join(dir, lang.file)
			must(t, os.WriteFile(file, append(snippet[1], lang.rest...), 0o600))
			args := []string{file}
			if lang.fence == "go" {
				bin := filepath.Join(t.TempDir(), "check")
				if out, err := exec.Command(program, "test", "-c", "-o", bin, "./"+dir).CombinedOutput(); err != nil {
					t.Fatalf("compiling: %v\n%s", err, out)
				}
				program, args = bin, nil
			}
			cmd := exec.Command(program, args...)
			cmd.Stdin = bytes.NewReader(input)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestMongoDB_WebhooksOutliveTheLeader checks deliveries with two replicas. The leader must deliver
// the events of both replicas. After the leader is killed, the other replica must deliver them.
func TestMongoDB_WebhooksOutliveTheLeader(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED in short mode: starts a replica set")
	}
	set := mongotest.For(t, 1)
	data, token := newData(t)
	flags := []string{"--store=mongodb", "--mongodb-uri", set.URI(), "--webhook-allow=127.0.0.0/8", manyEvaluations(t)}
	a := start(t, data, append(flags, "--replica=a")...)
	b := start(t, data, append(flags, "--replica=b")...)
	register(t, a.url, token)
	l := hear(t, 1<<30)
	id := l.hook(t, newClient(t, b.url, token), `"approval.pending","agent.disabled"`)
	s := newSender(t, token, 1)
	held := func(p *process) { heldBatches(t, s, func() string { return p.url }, 2) }
	held(a)
	held(b)
	waitFor(t, "a delivery", func() bool { return l.count() > 0 })
	leader, other := a, b
	if _, metrics := get(t, b.admin+"/metrics"); strings.Contains(metrics, "\nwrit_leads 1\n") {
		leader, other = b, a
	}
	leader.kill(t)
	held(other)
	operator := client{s, other.url}
	agent := operator.newAgent(t, "n")
	operator.setStatus(t, agent, "disabled")
	late := time.Now().Add(2 * time.Minute)
	for l.count() < 601 && time.Now().Before(late) {
		time.Sleep(10 * time.Millisecond)
	}
	rows := history(t, other.url, token)
	l.mu.Lock()
	defer l.mu.Unlock()
	writers := make(map[string]int)
	for _, r := range rows {
		writers[r.Writer]++
		if !l.subjects[r.DecisionID] {
			t.Errorf("decision %s of writer %s is lost", r.DecisionID, r.Writer)
		}
	}
	if min(writers["a"], writers["b"]) != 200 || max(writers["a"], writers["b"]) != 400 {
		t.Errorf("rows by writer = %v, want 200 of the replica that was killed and 400 of the other", writers)
	}
	if len(rows) != 600 || len(l.received) != 601 || len(l.faults) > 0 {
		t.Errorf("%d rows, %d events, want 600 and the agent's; faults %.3q", len(rows), len(l.received), l.faults)
	}
	operator.do(t, http.MethodDelete, "/v1/webhooks/"+id, "", http.StatusNoContent, nil)
	other.stop(t)
}

// TestWebhooks_TellOfExpiredApprovals checks the event of an approval that expired without a
// verdict. The real binary must send the event once, even if it was stopped in between. It sends
// the event only when the approval has expired on every possible clock. The second process
// therefore has a clock that is ahead.
func TestWebhooks_TellOfExpiredApprovals(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("SKIPPED: the clock of a process can be changed on Linux on amd64 alone")
	}
	data, operator := newData(t)
	flags := []string{"--webhook-allow=127.0.0.0/8", "--approval-ttl=1s"}
	p := start(t, data, flags...)
	register(t, p.url, operator)
	c := newClient(t, p.url, operator)
	l := hear(t, 1<<30)
	l.hook(t, c, `"approval.expired"`)
	var held struct {
		DecisionID string `json:"decision_id"`
	}
	c.do(t, http.MethodPost, "/v1/policy/evaluate", string(newIntent("somebody", "deploy", "prod/a").body), http.StatusOK, &held)
	p.stop(t)
	startFaulty(t, []string{clockAhead + "=4m"}, data, flags...) // receivers take five at most
	waitFor(t, "the event", func() bool { return l.count() > 0 })
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.received) != 1 || !l.subjects[held.DecisionID] || len(l.faults) > 0 {
		t.Errorf("events %v of %v, faults %v; want one of %s", l.received, l.subjects, l.faults, held.DecisionID)
	}
}
