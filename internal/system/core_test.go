package system

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"writ.example/writ/engine"
	"writ.example/writ/examples"
)

// TestDecision_ExternalEvaluationCore_ARealOPA checks decisions of a real OPA server. OPA is built
// from its Go module and loads the output of `writ rego --core`. It must decide the examples as the
// built-in engine does. Then the test kills OPA under load and starts OPA again.
func TestDecision_ExternalEvaluationCore_ARealOPA(t *testing.T) {
	t.Parallel()
	o := &opaServer{bin: buildOPA(t), addr: freeAddr(t), dir: t.TempDir()}
	set, err := examples.Load()
	must(t, err)
	data, token := newData(t)
	p := start(t, data, manyEvaluations(t), "--evaluation-core-url=http://"+o.addr+"/v1/data/writ/core/result",
		"--evaluation-core-timeout=5s") // generous, because other tests use the machine
	registerExamples(t, newClient(t, p.url, token), set)
	o.export(t, set, filepath.Join("..", "..", "examples", "rules.yaml"))
	o.start(t)
	t.Run("decides as the engine does", func(t *testing.T) { decidesAlike(t, p.url, token, set) })
	t.Run("a version that it does not hold", func(t *testing.T) { newVersionIsRefused(t, p, token, set) })
	t.Run("killed under load", func(t *testing.T) { killUnderLoad(t, o, p, token, set) })
	t.Run("a rule that fails", func(t *testing.T) { failingRuleIsRefused(t, o, p, token, set) })
}

// registerExamples stores the example policies and rules.
func registerExamples(t *testing.T, c client, set *examples.Set) {
	t.Helper()
	for _, p := range set.Policies {
		c.do(t, http.MethodPost, "/v1/policies/register", object{"policy": p}, http.StatusCreated, nil)
	}
	for _, r := range set.Rules {
		c.do(t, http.MethodPost, "/v1/rules", object{"name": r.Name, "condition": r.Condition, "action": r.Action, "priority": r.Priority}, http.StatusCreated, nil)
	}
}

// decidesAlike evaluates the examples at url and compares the decisions with the decisions of the
// built-in engine.
func decidesAlike(t *testing.T, url, token string, set *examples.Set) {
	data, builtin := newData(t)
	p := start(t, data)
	registerExamples(t, newClient(t, p.url, builtin), set)
	s, b := newSender(t, token, 1), newSender(t, builtin, 1)
	for i, c := range set.Cases {
		in := exampleIntent(t, set, i)
		got, want := decisionOf(t, s, url, in), decisionOf(t, b, p.url, in)
		for i := range min(len(got.Reasons), len(want.Reasons)) {
			if sameCode(got.Reasons[i], want.Reasons[i]) && saysMore(want.Reasons[i]) {
				got.Reasons[i] = want.Reasons[i]
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || got.Decision != c.Want.String() {
			t.Errorf("%s/%s is decided otherwise by OPA, want %s (-engine +OPA):\n%s", c.Policy, c.Name, c.Want, diff)
		}
	}
}

// decided is the part of an answer that must be equal for both cores.
type decided struct {
	Decision string
	Reasons  []string
}

func sameCode(a, b string) bool {
	codeOfA, _, _ := strings.Cut(a, ":")
	codeOfB, _, _ := strings.Cut(b, ":")
	return codeOfA == codeOfB
}

// saysMore reports whether the engine's reason is longer than Rego's reason. Rego does not name the
// pattern that refused. It also does not name a condition that failed and therefore counts as a
// match.
func saysMore(reason string) bool {
	return strings.HasPrefix(reason, string(engine.CodeResourceBlocked)) || strings.HasPrefix(reason, string(engine.CodeActionDenied)) ||
		strings.Contains(reason, "could not be evaluated")
}

func decisionOf(t *testing.T, s sender, url string, in intent) decided {
	t.Helper()
	got := s.decide(t, url, in)
	var res struct {
		Reasons []string `json:"reasons"`
		Receipt struct {
			Decision string `json:"decision"`
		} `json:"receipt"`
	}
	must(t, json.Unmarshal([]byte(got.body), &res))
	return decided{res.Receipt.Decision, res.Reasons}
}

// exampleIntent returns the i-th example with a new id.
func exampleIntent(t *testing.T, set *examples.Set, i int) intent {
	t.Helper()
	in := *set.Intents[i]
	in.IntentID = uuid.NewString()
	return encodeIntent(t, in)
}

func encodeIntent(t *testing.T, in engine.Intent) intent {
	t.Helper()
	body, err := json.Marshal(object{"policy_id": in.PolicyID, "intent": &in})
	must(t, err)
	return intent{in.IntentID, body}
}

// newVersionIsRefused checks that a policy version which OPA has not loaded is refused. Other
// versions are still decided.
func newVersionIsRefused(t *testing.T, p *process, token string, set *examples.Set) {
	doc := *set.Policies["email"]
	doc.Version++
	api := newClient(t, p.url, token)
	api.do(t, http.MethodPost, "/v1/policies/register", object{"policy": doc}, http.StatusCreated, nil)
	s := newSender(t, token, 1)
	for range 10 {
		for i, c := range set.Cases {
			want := http.StatusOK
			if c.Policy == "email" {
				want = http.StatusInternalServerError
			}
			if got, err := s.evaluate(p.url, exampleIntent(t, set, i)); err != nil || got.status != want {
				t.Fatalf("%s/%s: evaluate = %d %s, %v, want %d", c.Policy, c.Name, got.status, got.body, err, want)
			}
		}
	}
}

// killUnderLoad kills OPA while clients send intents that OPA allows. After that nothing is
// approved, and the breaker opens. When OPA runs again, the intents are approved again.
func killUnderLoad(t *testing.T, o *opaServer, p *process, token string, set *examples.Set) {
	allowed := allowedDeploy(set)
	var dead atomic.Bool // OPA has ended, and its restart has not begun
	var approved, refused, wrong atomic.Int64
	release := background(t, 8, token, func(s sender) bool {
		in, sentDead := exampleIntent(t, set, allowed), dead.Load()
		got, err := s.evaluate(p.url, in)
		switch {
		case err == nil && got.status == http.StatusOK && strings.Contains(got.body, `"approved":true`):
			approved.Add(1)
			if sentDead && dead.Load() {
				wrong.Add(1)
			}
		case err == nil && got.status == http.StatusServiceUnavailable && strings.Contains(got.body, "evaluation_core_unavailable"):
			refused.Add(1)
		default:
			t.Errorf("evaluate = %d %s, %v, want 200 or evaluation_core_unavailable", got.status, got.body, err)
			return false
		}
		return true
	})
	defer release()
	waitFor(t, "OPA to allow", func() bool { return approved.Load() > 100 })
	o.kill(t)
	dead.Store(true)
	diedAt := time.Now()
	waitFor(t, "the breaker to open", func() bool { return strings.Contains(metricsOf(t, p), "\nwrit_core_breaker_state 2\n") })
	before := refused.Load()
	waitFor(t, "refusals", func() bool { return refused.Load() > before+1000 })
	dead.Store(false)
	backAt := time.Now()
	o.start(t)
	before = approved.Load()
	waitFor(t, "OPA to allow again", func() bool { return approved.Load() > before+100 })
	waitFor(t, "the breaker to close", func() bool { return strings.Contains(metricsOf(t, p), "\nwrit_core_breaker_state 0\n") })
	if n := wrong.Load(); n != 0 {
		t.Errorf("%d intents were approved while there was no OPA, want none", n)
	}
	for id, row := range history(t, p.url, token) {
		if row.DecidedAt.After(diedAt) && row.DecidedAt.Before(backAt) {
			t.Errorf("intent %s was decided (%s) while there was no OPA", id, row.Decision)
		}
	}
}

func metricsOf(t *testing.T, p *process) string {
	t.Helper()
	status, text := get(t, p.admin+"/metrics")
	if status != http.StatusOK {
		t.Fatalf("GET /metrics = %d", status)
	}
	return text
}

// failingRuleIsRefused adds a rule in Rego that fails for some intents. The engine counts a failure
// as a match. Without strict errors, OPA would count the failure as no match, and allow the intent.
func failingRuleIsRefused(t *testing.T, o *opaServer, p *process, token string, set *examples.Set) {
	api := newClient(t, p.url, token)
	rule := object{
		"name": "Few replicas", "condition": `{"rego": "to_number(input.intent.metadata.replicas) > 5"}`, "action": `{"decision": "deny"}`,
	}
	api.do(t, http.MethodPost, "/v1/rules", rule, http.StatusCreated, nil)
	var rules jsontext.Value
	api.do(t, http.MethodGet, "/v1/rules?limit=500", nil, http.StatusOK, &rules)
	name := filepath.Join(t.TempDir(), "rules.json")
	must(t, os.WriteFile(name, rules, 0o600))
	s, i := newSender(t, token, 1), allowedDeploy(set)
	if got, err := s.evaluate(p.url, exampleIntent(t, set, i)); err != nil || got.status != http.StatusServiceUnavailable {
		t.Errorf("before the export: evaluate = %d %s, %v, want 503", got.status, got.body, err)
	}
	o.kill(t)
	o.export(t, set, name)
	o.start(t)
	for replicas, want := range map[string]string{"3": "allow", "7": "deny", "many": ""} {
		in := *set.Intents[i]
		in.Metadata = map[string]string{"replicas": replicas}
		for range 10 { // more failures than open the breaker
			in.IntentID = uuid.NewString()
			if want == "" {
				got, err := s.evaluate(p.url, encodeIntent(t, in))
				if err != nil || got.status != http.StatusInternalServerError {
					t.Errorf("%s replicas: evaluate = %d %s, %v, want 500", replicas, got.status, got.body, err)
				}
			} else if got := decisionOf(t, s, p.url, encodeIntent(t, in)); got.Decision != want {
				t.Errorf("%s replicas: decided %v, want %s", replicas, got, want)
			}
		}
	}
	if text := metricsOf(t, p); !strings.Contains(text, "\nwrit_core_breaker_state 0\n") {
		t.Error("a rule that fails opened the breaker")
	}
}

// allowedDeploy returns the index of an example that is allowed.
func allowedDeploy(set *examples.Set) int {
	return slices.IndexFunc(set.Cases, func(c examples.Case) bool { return c.Policy == "deploys" && c.Want == engine.Allow })
}
