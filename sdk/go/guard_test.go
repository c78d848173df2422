package writ

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// answers returns a client of a server that answers as the conformance cases of these names, and the
// bodies that the server gets.
func answers(t *testing.T, names ...string) (*Client, *[]map[string]any) {
	t.Helper()
	all := readConformance(t)
	byName := map[string]scripted{}
	for _, c := range all.Cases {
		byName[c.Name] = c.Answers[0]
	}
	sent := &[]map[string]any{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := bodyOf(r)
		if body == nil {
			body = map[string]any{}
		}
		body["path"] = r.URL.Path
		*sent = append(*sent, body)
		switch n := len(*sent); {
		case strings.HasPrefix(r.URL.Path, "/v1/approvals/"):
			_, _ = w.Write([]byte(`{"approval_id":"0198f3c2-7a10-7c3e-9d41-5b1f6f0a9e37","status":"approved"}`))
		case n <= len(names):
			byName[names[n-1]].ServeHTTP(w, r)
		default:
			_, _ = w.Write([]byte("{}"))
		}
	}))
	t.Cleanup(server.Close)
	c, err := New(Config{URL: server.URL, APIKey: all.APIKey, PolicyID: "0198f3c2-7a10-7c3e-9d41-000000000001", AgentID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	return c, sent
}

func TestCredential_ReadsBothEnds(t *testing.T) {
	end := time.Date(2027, 6, 30, 0, 0, 0, 0, time.UTC)
	for body, want := range map[string]Credential{
		`{"organization_id":"o","kind":"api_key","id":"k","scopes":["policy:evaluate"],"expiresAt":"2027-06-30T00:00:00Z",` +
			`"agent_id":"a/**","policy_id":"p"}`: {OrganizationID: "o", Kind: "api_key", ID: "k",
			Scopes: []string{"policy:evaluate"}, ExpiresAt: end, AgentID: "a/**", PolicyID: "p"},
		`{"organization_id":"o","kind":"operator","id":"s","scopes":[],"expiresAt":null}`: {
			OrganizationID: "o", Kind: "operator", ID: "s", Scopes: []string{}},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method+r.URL.Path != "GET/v1/credential" {
				t.Errorf("request = %s %s", r.Method, r.URL.Path)
			}
			_, _ = w.Write([]byte(body))
		}))
		c, err := New(Config{URL: server.URL, APIKey: "sk"})
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Credential(t.Context())
		if server.Close(); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Credential = %+v, %v, want %+v", got, err, want)
		}
	}
}

func TestGuard_RunsWhatIsAllowedAlone(t *testing.T) {
	boom := errors.New("boom")
	for name, want := range map[string]struct {
		ran     bool
		outcome string
	}{
		"an allow": {true, "executed"}, "a deny": {}, "a hold": {}, "status 403": {}, "an allow whose receipt has expired": {},
		"an answer with 200: approved is a text": {},
	} {
		c, sent := answers(t, name)
		ran := false
		got, err := Guard(t.Context(), c, Intent{ActionType: "pay", Resource: "r", Cost: &Cost{5, "EUR"}}, func(context.Context) (int, error) {
			ran = true
			return 7, nil
		})
		if ran != want.ran || (err == nil) != want.ran || (got == 7) != want.ran {
			t.Errorf("%s: ran %t, %d, %v", name, ran, got, err)
		}
		if last := (*sent)[len(*sent)-1]; want.ran && (last["outcome"] != want.outcome || last["amount_minor"] != 5.0 || last["currency"] != "EUR") {
			t.Errorf("%s: recorded %v", name, last)
		}
	}
	c, sent := answers(t, "an allow", "status 403") // the record is refused
	if _, err := Guard(t.Context(), c, Intent{ActionType: "pay", Resource: "r"}, func(context.Context) (int, error) { return 0, boom }); !errors.Is(err, boom) {
		t.Errorf("an action that fails: %v", err)
	}
	if last := (*sent)[1]; last["outcome"] != "failed" {
		t.Errorf("recorded %v", last)
	}
}

func TestMiddleware(t *testing.T) {
	for name, want := range map[string]int{"an allow": 200, "a deny": 403, "a hold": 403, "status 401": 503} {
		c, _ := answers(t, name)
		h := c.Middleware(func(r *http.Request) (Intent, error) {
			if r.URL.Path == "/bad" {
				return Intent{}, errors.New("no")
			}
			return Intent{ActionType: "http." + strings.ToLower(r.Method), Resource: r.URL.Path}, nil
		})(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/pay", nil))
		if w.Code != want || (w.Header().Get("X-Writ-Approval") != "") != (name == "a hold") {
			t.Errorf("%s: %d %v", name, w.Code, w.Header())
		}
		w = httptest.NewRecorder()
		if h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/bad", nil)); w.Code != 400 {
			t.Errorf("a request without an intent: %d", w.Code)
		}
	}
}

func TestHeld_InAnotherProcess(t *testing.T) {
	c, sent := answers(t, "a hold", "", "an allow")
	_, err := c.Require(t.Context(), Intent{ActionType: "pay", Resource: "r", Metadata: map[string]string{"k": "v"}})
	var held *Held
	if !errors.As(err, &held) {
		t.Fatal(err)
	}
	kept, err := json.Marshal(held)
	if err != nil {
		t.Fatal(err)
	}
	var again Held
	if err := json.Unmarshal(kept, &again); err != nil {
		t.Fatal(err)
	}
	*sent = append(*sent, nil)[:2] // the next answer is the third
	// The scripted allow has the id of the held decision, as a pending approval has.
	if _, err := c.Wait(t.Context(), &again, time.Second); err == nil {
		t.Error("the held decision itself was taken for the redemption")
	}
	asked, redeemed := (*sent)[0], (*sent)[len(*sent)-1]
	for _, m := range []string{"intent_id", "issued_at", "policy_id", "agent_id", "action_type", "resource"} {
		if asked[m] != redeemed[m] || asked[m] == "" {
			t.Errorf("%s was %v, then %v", m, asked[m], redeemed[m])
		}
	}
	if redeemed["approval_id"] != held.Decision.ID {
		t.Errorf("approval_id %v", redeemed["approval_id"])
	}
	for _, bad := range []string{`{}`, `[]`, `{"approval_id":"x"}`} {
		if err := json.Unmarshal([]byte(bad), new(Held)); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}

func TestNew_NamesWhatIsMissing(t *testing.T) {
	for _, v := range []string{"WRIT_URL", "WRIT_API_KEY", "WRIT_POLICY_ID", "WRIT_AGENT_ID"} {
		t.Setenv(v, "")
	}
	for want, c := range map[string]Config{
		"WRIT_URL":     {APIKey: "k"},
		"http or":      {URL: "writ.example", APIKey: "k"},
		"a user":       {URL: "https://u@writ.example", APIKey: "k"},
		"WRIT_API_KEY": {URL: "https://writ.example"},
		"no key has":   {URL: "https://writ.example", APIKey: "k\nX: y"},
	} {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want a text with %q", c, err, want)
		}
	}
	c, err := New(Config{URL: "https://writ.example", APIKey: "k"})
	if err != nil {
		t.Fatal(err)
	}
	for want, in := range map[string]Intent{
		"WRIT_POLICY_ID": {AgentID: "a", ActionType: "t", Resource: "r"},
		"WRIT_AGENT_ID":  {PolicyID: "p", ActionType: "t", Resource: "r"},
		"ActionType":     {PolicyID: "p", AgentID: "a", Resource: "r"},
	} {
		if _, err := c.Evaluate(t.Context(), in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want a text with %q", in, err, want)
		}
	}
}

// TestDeps holds that the package brings the standard library, the receipts, and a WebSocket that brings nothing else.
func TestDeps(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	got := slices.DeleteFunc(strings.Fields(string(out)), func(path string) bool {
		return strings.HasPrefix(path, "github.com/coder/websocket")
	})
	if want := []string{"writ.example/writ/storage/receipt", "writ.example/writ/sdk/go"}; !slices.Equal(got, want) {
		t.Errorf("the package brings %v, want %v", got, want)
	}
}

// TestEvaluate_Body holds the members of a request: the policy and the session stand beside the
// intent, as the server takes them.
func TestEvaluate_Body(t *testing.T) {
	c, sent := answers(t, "an allow", "an allow")
	in := Intent{IntentID: newUUID(), ActionType: "a", Resource: "/r", SessionID: "s", IssuedAt: "2026-11-21T10:00:00Z"}
	if _, err := c.Evaluate(context.Background(), in); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"path": "/v1/policy/evaluate", "policy_id": c.config.PolicyID, "session_id": "s",
		"intent": map[string]any{
			"intent_id": in.IntentID, "policy_id": c.config.PolicyID, "agent_id": "a", "action_type": "a", "resource": "/r", "issued_at": in.IssuedAt,
		},
	}
	if got := (*sent)[0]; !reflect.DeepEqual(got, want) {
		t.Errorf("the body is %v, want %v", got, want)
	}
}
