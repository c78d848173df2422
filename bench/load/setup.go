package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/errgroup"

	"writ/api"
	"writ/bench/corpus"
)

// rulesSeed makes the rules of every run the same.
const rulesSeed = 1

// setup sets up every organization, and returns a key of each.
func setup(ctx context.Context, u *url.URL, o options) ([]string, error) {
	if o.orgs == 0 {
		key, err := setupOrg(ctx, u, o)
		return []string{key}, err
	}
	text, err := os.ReadFile(o.secret)
	if err != nil {
		return nil, err
	}
	secret, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.secret, err)
	}
	keys := make([]string, o.orgs)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for i := range keys {
		g.Go(func() (err error) {
			of := o
			of.org = fmt.Sprintf("org-%d", i)
			if of.operator, err = api.SignOperatorToken(secret, of.org, "bench", time.Now(), time.Hour); err != nil {
				return err
			}
			keys[i], err = setupOrg(ctx, u, of)
			return err
		})
	}
	return keys, g.Wait()
}

// setupOrg registers the reference policy and the missing rules, and returns a new
// API key that can only evaluate.
func setupOrg(ctx context.Context, u *url.URL, o options) (string, error) {
	post := func(path string, body, answer any) error { return call(ctx, u, o, http.MethodPost, path, body, answer) }

	p := corpus.ReferencePolicy()
	p.OrganizationID = o.org
	if err := post("/v1/policies/register", map[string]any{"policy": p}, nil); err != nil {
		return "", err
	}
	var have []jsontext.Value
	if err := call(ctx, u, o, http.MethodGet, "/v1/rules?limit=500", nil, &have); err != nil {
		return "", err
	}
	if len(have) == 0 { // rounds share a server
		for _, r := range corpus.Rules(o.rules, rulesSeed) {
			body := map[string]any{"name": r.Name, "condition": r.Condition, "action": r.Action, "priority": r.Priority}
			if err := post("/v1/rules", body, nil); err != nil {
				return "", err
			}
		}
		for i := range o.rego {
			body := map[string]any{
				"name": fmt.Sprintf("Rego %d", i), "action": `{"decision":"deny","reason":"frozen"}`,
				"condition": fmt.Sprintf(`{"rego":"input.intent.metadata.window == \"freeze-%d\""}`, i),
			}
			if err := post("/v1/rules", body, nil); err != nil {
				return "", err
			}
		}
	}
	var key struct {
		ID    string `json:"id"`
		Token string `json:"token"`
	}
	err := post("/v1/tokens", map[string]any{"name": "load", "scopes": []string{"policy:evaluate"}}, &key)
	return key.Token, err
}

// call sends one request with the operator token and decodes the answer.
func call(ctx context.Context, u *url.URL, o options, method, path string, body, answer any) error {
	var sent io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, u.Scheme+"://"+u.Host+path, sent)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+o.operator)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, got)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(got, answer)
}

// intentIDPlaceholder is the id that every request replaces with its own.
const intentIDPlaceholder = "00000000-0000-4000-8000-000000000000"

// evaluateBody returns the body of a request for the corpus' allowed intent, or
// for a batch of it.
func evaluateBody(batch int) ([]byte, error) {
	in := corpus.AllowedIntent()
	in.IntentID = intentIDPlaceholder
	if batch > 0 {
		return json.Marshal(map[string]any{"mode": "each", "intents": slices.Repeat([]any{in}, batch)})
	}
	return json.Marshal(struct {
		PolicyID string `json:"policy_id"`
		Intent   any    `json:"intent"`
	}{in.PolicyID, in})
}
