package bench

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
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
	Rules         int    `json:"rules"`    // the generated rules of each organization
	Rego          int    `json:"rego"`     // the rules of each organization that have a condition in Rego
	History       int    `json:"history"`  // the decisions that are stored before the measurement
	Batch         int    `json:"batch"`    // the intents of a request to the batch endpoint; 0: the evaluate endpoint
	// Stream is how many intents a stream has on their way; 0: requests. Approvals has each intent held, approved and
	// sent again.
	Stream    int  `json:"stream,omitzero"`
	Approvals bool `json:"approvals,omitzero"`
	// Deny adds a rule to each organization that denies every intent.
	Deny bool `json:"deny,omitzero"`

	// Policy, Own and Mix stand in place of the reference policy, the generated rules and the intent that the reference
	// policy allows. With Mix and without Policy, the server has the policies of the intents already.
	Policy *engine.ActionPolicy `json:"-"`
	Own    []engine.Rule        `json:"-"`
	Mix    []Intent             `json:"-"`
	// Header is sent with each request. It may have secrets.
	Header http.Header `json:"-"`
	// Documents is the digest of Policy, Own and Mix: see [Work.Digest].
	Documents string `json:"documents,omitzero"`
}

// Digest returns a digest of the documents of the user, or an empty text if there are none.
func (w Work) Digest() (string, error) {
	if w.Policy == nil && w.Own == nil && w.Mix == nil {
		return "", nil
	}
	text, err := json.Marshal([]any{w.Policy, w.Own, w.Mix}, json.Deterministic(true))
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:]), err
}

// With returns w with a change. change is the name of a number with its value, such as "orgs=1000", or a way to
// send intents: see [Work.Sending].
func (w Work) With(change string) (Work, error) {
	switch name, _, _ := strings.Cut(change, "="); name {
	case "single", "batch", "stream", "approvals":
		return w.Sending(change)
	}
	numbers := map[string]*int{
		"orgs": &w.Organizations, "policies": &w.Policies, "rules": &w.Rules, "rego": &w.Rego, "history": &w.History,
	}
	name, text, _ := strings.Cut(change, "=")
	n, err := strconv.Atoi(text)
	if w.Policy != nil && name == "policies" || w.Own != nil && name == "rules" {
		return w, fmt.Errorf("%q: the %s are those of a file", change, name)
	}
	if number := numbers[name]; number != nil && err == nil && n > 0 {
		*number = n
		return w, nil
	}
	return w, fmt.Errorf("%q: want orgs, policies, rules, rego or history, and a number, such as orgs=1000; or "+
		"single, batch=N, stream=N or approvals", change)
}

// Sending returns w with another way to send intents: "single" is one a request, "batch=64" so many a request,
// "stream=64" so many on their way on each stream, "approvals" one that is held, approved and sent again.
func (w Work) Sending(way string) (Work, error) {
	w.Batch, w.Stream, w.Approvals = 0, 0, way == "approvals"
	if way == "single" || w.Approvals {
		return w, nil
	}
	name, text, _ := strings.Cut(way, "=")
	n, err := strconv.Atoi(text)
	switch {
	case name == "batch" && err == nil && n > 0 && n <= 100:
		w.Batch = n
	case name == "stream" && err == nil && n > 0 && n <= 1024:
		w.Stream = n
	default:
		return w, fmt.Errorf("%q: want single, batch=N with 1 to 100 intents, stream=N with 1 to 1024, or approvals",
			way)
	}
	return w, nil
}

// Sends describes the requests.
func (w Work) Sends() string {
	switch {
	case w.Batch > 0:
		return fmt.Sprintf("batches of %d intents", w.Batch)
	case w.Stream > 0:
		return fmt.Sprintf("streams with %d intents on their way", w.Stream)
	case w.Approvals:
		return "intents that are held, approved and sent again"
	}
	return "one intent a request"
}

// rulesSeed is the seed of the rules. It makes the rules of every run the same.
const rulesSeed = 1

// eachAsked is how many requests each policy gets on average before the measurement. 1 policy
// in 150 gets none.
const eachAsked = 5

// historyBatch is how many intents a request has that fills the history.
const historyBatch = 64

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
				callers[i], err = w.register(inner, w.client(base, token), i)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("setting up: %w", err)
	}
	t, err := w.ask(base, slices.Concat(callers...))
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

// intents returns what requests are about.
func (w Work) intents() []Intent {
	if len(w.Mix) > 0 {
		return w.Mix
	}
	in := Intent{Weight: 1, Want: engine.Allow.String(), Intent: corpus.AllowedIntent()}
	switch {
	case w.Deny:
		in.Want = engine.Deny.String()
	case w.Approvals:
		in.Want = engine.ApprovalRequired.String()
	}
	in.IntentID, in.PolicyID = load.IntentID, load.PolicyID
	if w.Policy != nil {
		in.PolicyID = w.Policy.PolicyID
	}
	return []Intent{in}
}

// ask returns a target with requests to a writ server.
func (w Work) ask(base *url.URL, callers []load.Caller) (*load.Target, error) {
	u := *base
	u.Path = "/v1/policy/evaluate"
	t := &load.Target{URL: &u, TLS: trusted(), Header: w.Header, Callers: callers, Intents: max(1, w.Batch),
		Decides: true, Counts: len(w.Mix) > 0}
	t.Approves = w.Approvals && w.Batch == 0
	switch {
	case w.Stream > 0:
		u.Path += "/stream"
		t.Window = w.Stream
	case w.Batch > 0:
		u.Path += "/batch"
		t.Before, t.After = `{"mode":"each","intents":[`, "]}"
	}
	for _, in := range w.intents() {
		var body any = in.Intent
		if w.Batch == 0 {
			body = map[string]any{"policy_id": in.PolicyID, "intent": in.Intent}
		}
		text, err := json.Marshal(body, json.Deterministic(true))
		if err != nil {
			return nil, err
		}
		t.Messages = append(t.Messages, load.Message{Body: text, Weight: in.Weight, Want: in.Want, Name: in.Name})
	}
	return t, nil
}

// fill makes a server decide as many intents as the history is to have.
func (w Work) fill(ctx context.Context, base *url.URL, callers []load.Caller) error {
	if w.History == 0 {
		return nil
	}
	requests := (w.History + historyBatch - 1) / historyBatch
	w.Batch, w.Stream = historyBatch, 0
	t, err := w.ask(base, callers)
	if err != nil {
		return err
	}
	_, err = load.Drive(ctx, t, load.Options{Conns: 16, Requests: requests})
	return err
}

// register registers the policies and the missing rules of the i-th organization. It returns
// the callers that evaluate under the policies.
func (w Work) register(ctx context.Context, c workspace.Client, i int) ([]load.Caller, error) {
	var ids []string
	for _, p := range w.policies(i) {
		p.OrganizationID = w.name(i)
		ids = append(ids, p.PolicyID)
		if err := c.Do(ctx, http.MethodPost, "/v1/policies/register", map[string]any{"policy": p}, nil); err != nil {
			return nil, err
		}
	}
	if err := w.addRules(ctx, c); err != nil {
		return nil, err
	}
	scopes := []string{"policy:evaluate"}
	if states(w.Mix) {
		scopes = append(scopes, "facts:assert")
	}
	key, err := mint(ctx, c, scopes...)
	if err != nil {
		return nil, err
	}
	approver := ""
	if w.Approvals {
		if approver, err = mint(ctx, c, "approvals:decide"); err != nil {
			return nil, err
		}
	}
	if len(ids) == 0 { // the intents name the policies of the server
		return []load.Caller{{Key: key, Approver: approver}}, nil
	}
	callers := make([]load.Caller, len(ids))
	for n, id := range ids {
		callers[n] = load.Caller{Key: key, PolicyID: id, Approver: approver}
	}
	return callers, nil
}

// policies returns the policies of the i-th organization.
func (w Work) policies(i int) (all []*engine.ActionPolicy) {
	if w.Policy != nil {
		own := *w.Policy
		return []*engine.ActionPolicy{&own}
	}
	if len(w.Mix) > 0 {
		return nil
	}
	for n := range w.Policies {
		all = append(all, corpus.Policy(i*w.Policies+n))
	}
	return all
}

func (w Work) addRules(ctx context.Context, c workspace.Client) error {
	holds := w.Approvals && w.Mix == nil
	if w.Rules+w.Rego+len(w.Own) == 0 && !w.Deny && !holds {
		return nil
	}
	var have []engine.Rule
	if err := c.Do(ctx, http.MethodGet, "/v1/rules?limit=500", nil, &have); err != nil {
		return err
	}
	if len(have) > 0 && w.Own == nil {
		return nil // the rules of an earlier run exist
	}
	if len(have) > 0 {
		return w.sameRules(have)
	}
	for _, r := range w.Own {
		body := map[string]any{"name": r.Name, "condition": r.Condition, "action": r.Action, "priority": r.Priority}
		if err := c.Do(ctx, http.MethodPost, "/v1/rules", body, nil); err != nil {
			return fmt.Errorf("rule %q: %w", r.Name, err)
		}
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
	if holds {
		body := map[string]any{"name": "Hold", "condition": "{}",
			"action": `{"decision":"approval_required","reason":"a person has to look at this"}`}
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

// sameRules returns an error unless the server has the rules of the user and no others. What other rules decide would
// be measured as the user's.
func (w Work) sameRules(have []engine.Rule) error {
	type key struct {
		name, condition, action string
		priority                int64
	}
	of := func(r engine.Rule) key { return key{r.Name, r.Condition, r.Action, r.Priority} }
	have = slices.DeleteFunc(have, func(r engine.Rule) bool { return !r.IsActive })
	at := make(map[key]int)
	for _, r := range have {
		at[of(r)]++
	}
	for _, r := range w.Own {
		if at[of(r)]--; at[of(r)] < 0 {
			return fmt.Errorf("rule %q: the organization has rules, and this is none of them: want an organization "+
				"without rules, or with those of the file", r.Name)
		}
	}
	if len(have) > len(w.Own) {
		return fmt.Errorf("the organization has %d rules, the file %d: want an organization without rules, or with "+
			"those of the file", len(have), len(w.Own))
	}
	return nil
}

// client returns a client of the server at base that sends the header of w.
func (w Work) client(base *url.URL, token string) workspace.Client {
	c := clientAt(base, token)
	c.Transport = headed{w.Header}
	return c
}

// headed sends a header with each request.
type headed struct{ header http.Header }

func (h headed) RoundTrip(r *http.Request) (*http.Response, error) {
	if len(h.header) > 0 {
		r = r.Clone(r.Context())
		maps.Copy(r.Header, h.header)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// trusted returns the authorities that the process trusts.
func trusted() *tls.Config {
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		return t.TLSClientConfig
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
