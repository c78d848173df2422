package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/errgroup"

	"writ.example/writ/authoring/workspace"
	"writ.example/writ/bench/corpus"
	"writ.example/writ/bench/load"
	"writ.example/writ/engine"
)

// Work describes the work that a server is given.
type Work struct {
	Organization  string `json:"organization"` // several have a number after this name, such as bench-0
	Organizations int    `json:"organizations"`
	Policies      int    `json:"policies"` // the different policies of each organization
	Rules         int    `json:"rules"`    // the rules of each organization
	Rego          int    `json:"rego"`     // the rules of each organization that have a condition in Rego
	History       int    `json:"history"`  // the decisions that are stored before the measurement
	Batch         int    `json:"batch"`    // the intents of a request to the batch endpoint; 0: the evaluate endpoint
	// Deny adds a rule to each organization that denies every intent.
	Deny bool `json:"deny,omitzero"`
}

// With returns w with one of its numbers changed. change has the name of the flag, such as
// "orgs=1000".
func (w Work) With(change string) (Work, error) {
	numbers := map[string]*int{
		"orgs": &w.Organizations, "policies": &w.Policies, "rules": &w.Rules, "rego": &w.Rego, "history": &w.History,
		"batch": &w.Batch,
	}
	name, text, _ := strings.Cut(change, "=")
	n, err := strconv.Atoi(text)
	if number := numbers[name]; number != nil && err == nil && n > 0 {
		*number = n
		return w, nil
	}
	return w, fmt.Errorf(
		"%q: want orgs, policies, rules, rego, history or batch, and a number, such as orgs=1000", change,
	)
}

// rulesSeed is the seed of the rules. It makes the rules of every run the same.
const rulesSeed = 1

// eachAsked is how many requests each policy gets on average before the measurement. 1 policy
// in 150 gets none.
const eachAsked = 5

// historyBatch is how many intents a request has that fills the history.
const historyBatch = 64

// Intents returns how many intents a request has.
func (w Work) Intents() int { return max(1, w.Batch) }

// Bearer returns a credential of an organization. The credential may register policies and
// rules and evaluate intents.
type Bearer func(organization string) (string, error)

// name returns the name of the i-th organization.
func (w Work) name(i int) string {
	if w.Organizations == 1 {
		return w.Organization
	}
	return fmt.Sprintf("%s-%d", w.Organization, i)
}

// target sets up the organizations of w at a writ server. It returns the target for requests.
func (w Work) target(ctx context.Context, base *url.URL, bearer Bearer) (*load.Target, error) {
	callers := make([][]load.Caller, w.Organizations)
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for i := range callers {
		g.Go(func() error {
			token, err := bearer(w.name(i))
			if err == nil {
				callers[i], err = w.register(inner, clientAt(base, token), i)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("setting up: %w", err)
	}
	t, err := w.ask(base, slices.Concat(callers...), corpus.AllowedIntent())
	if err != nil {
		return nil, err
	}
	if n := len(t.Callers); n > 1 { // makes the server compile everything before the measurement
		if _, err := load.Drive(ctx, t, load.Options{Conns: 16, Requests: eachAsked * n}); err != nil {
			return nil, err
		}
	}
	return t, w.fill(ctx, base, t.Callers)
}

// ask returns a target with requests to a writ server about an intent.
func (w Work) ask(base *url.URL, callers []load.Caller, in *engine.Intent) (*load.Target, error) {
	in.IntentID, in.PolicyID = load.IntentID, load.PolicyID
	u := *base
	u.Path = "/v1/policy/evaluate"
	t := &load.Target{URL: &u, Callers: callers, Allowed: `"approved":true`, Intents: w.Intents()}
	if w.Deny {
		t.Allowed = `"approved":false`
	}
	var body any = struct {
		PolicyID string `json:"policy_id"`
		Intent   any    `json:"intent"`
	}{in.PolicyID, in}
	if w.Batch > 0 {
		u.Path += "/batch"
		body = map[string]any{"mode": "each", "intents": slices.Repeat([]any{in}, w.Batch)}
	}
	var err error
	t.Body, err = json.Marshal(body, json.Deterministic(true))
	return t, err
}

// fill makes a server decide as many intents as the history is to have.
func (w Work) fill(ctx context.Context, base *url.URL, callers []load.Caller) error {
	if w.History == 0 {
		return nil
	}
	t, err := Work{Batch: historyBatch}.ask(base, callers, corpus.AllowedIntent())
	if err != nil {
		return err
	}
	_, err = load.Drive(ctx, t, load.Options{Conns: 16, Requests: (w.History + historyBatch - 1) / historyBatch})
	return err
}

// register registers the policies and the missing rules of the i-th organization. It returns
// the callers that evaluate under the policies.
func (w Work) register(ctx context.Context, c workspace.Client, i int) ([]load.Caller, error) {
	ids := make([]string, w.Policies)
	for n := range ids {
		p := corpus.Policy(i*w.Policies + n)
		p.OrganizationID = w.name(i)
		ids[n] = p.PolicyID
		if err := c.Do(ctx, http.MethodPost, "/v1/policies/register", map[string]any{"policy": p}, nil); err != nil {
			return nil, err
		}
	}
	if err := w.addRules(ctx, c); err != nil {
		return nil, err
	}
	key, err := mint(ctx, c, "policy:evaluate")
	callers := make([]load.Caller, len(ids))
	for n, id := range ids {
		callers[n] = load.Caller{Key: key, PolicyID: id}
	}
	return callers, err
}

func (w Work) addRules(ctx context.Context, c workspace.Client) error {
	if w.Rules+w.Rego == 0 && !w.Deny {
		return nil
	}
	var have []jsontext.Value
	if err := c.Do(ctx, http.MethodGet, "/v1/rules?limit=500", nil, &have); err != nil || len(have) > 0 {
		return err // the rules of an earlier run exist
	}
	for _, r := range corpus.Rules(w.Rules, rulesSeed) {
		body := map[string]any{"name": r.Name, "condition": r.Condition, "action": r.Action, "priority": r.Priority}
		if err := c.Do(ctx, http.MethodPost, "/v1/rules", body, nil); err != nil {
			return err
		}
	}
	if w.Deny {
		body := map[string]any{"name": "Deny", "condition": "{}", "action": `{"decision":"deny","reason":"frozen"}`}
		if err := c.Do(ctx, http.MethodPost, "/v1/rules", body, nil); err != nil {
			return err
		}
	}
	for i := range w.Rego {
		body := map[string]any{
			"name": fmt.Sprintf("Rego %d", i), "action": `{"decision":"deny","reason":"frozen"}`,
			"condition": fmt.Sprintf(`{"rego":"input.intent.metadata.window == \"freeze-%d\""}`, i),
		}
		if err := c.Do(ctx, http.MethodPost, "/v1/rules", body, nil); err != nil {
			return err
		}
	}
	return nil
}

// clientAt returns a client of the server at base.
func clientAt(base *url.URL, token string) workspace.Client {
	return workspace.Client{Base: base.Scheme + "://" + base.Host, Token: token}
}

// mint returns an API key with scopes. If the credential may not make keys, mint returns the
// credential.
func mint(ctx context.Context, c workspace.Client, scopes ...string) (string, error) {
	var key struct {
		Token string `json:"token"`
	}
	err := c.Do(ctx, http.MethodPost, "/v1/tokens", map[string]any{"name": "writ bench", "scopes": scopes}, &key)
	if refused := (*workspace.AnswerError)(nil); errors.As(err, &refused) && refused.Status == http.StatusForbidden {
		return c.Token, nil
	}
	return key.Token, err
}
