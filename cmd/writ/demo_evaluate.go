package main

import (
	"context"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/engine"
	"writ.example/writ/storage/receipt"
)

// evaluate sends an intent. If approvalID is not empty, the intent is sent under that approval.
// evaluate reads the answer as strictly as a verifier does.
func (d *demo) evaluate(ctx context.Context, in *engine.Intent, approvalID string) (receipt.Result, error) {
	body := object{"policy_id": in.PolicyID, "intent": in}
	if approvalID != "" {
		body["approval_id"] = approvalID
	}
	var got jsontext.Value
	if err := d.agent.Do(ctx, http.MethodPost, "/v1/policy/evaluate", body, &got); err != nil {
		return receipt.Result{}, err
	}
	return receipt.ParseResult(got)
}

func (d *demo) mintKey(ctx context.Context) (revoke func() error, err error) {
	var key struct {
		ID    string `json:"id"`
		Token string `json:"token"`
	}
	body := object{"name": "writ demo", "scopes": []string{"policy:evaluate"},
		"expiresAt": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}
	if err := d.operator.Do(ctx, http.MethodPost, "/v1/tokens", body, &key); err != nil {
		return nil, err
	}
	d.agent = d.operator
	d.agent.Token = key.Token
	return func() error {
		return d.operator.Do(context.WithoutCancel(ctx), http.MethodDelete, "/v1/tokens/"+key.ID, nil, nil)
	}, nil
}
