package core

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json"

	"writ.example/writ/engine"
)

// maxAnswer is how many bytes an answer may have. It has room for some 80 reasons of rules.
// Such a reason, with the name of the rule, has some 800 characters. One reason has at most
// [condition.MaxText] bytes.
const maxAnswer = 64 << 10

// ask sends one question and reads its answer.
func (c *Core) ask(caller context.Context, q question) (engine.Result, error) {
	ctx, cancel := context.WithTimeout(caller, c.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, http.NoBody)
	if err != nil {
		return engine.Result{}, fmt.Errorf("making the request: %w", err)
	}
	req.Body, _ = q.open() // never fails
	req.GetBody, req.ContentLength = q.open, q.len()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	// Deciding has no side effects, so a question may be sent twice. If this header is present
	// and empty, net/http sends the question again when a kept connection turns out to be
	// closed.
	req.Header["Idempotency-Key"] = []string{}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	res, err := c.client.Do(req)
	if err != nil {
		return engine.Result{}, broken(caller, err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return engine.Result{}, broken(caller, err)
	case len(answer) > maxAnswer:
		return engine.Result{}, failure(Answer, "it is longer than %d bytes", maxAnswer)
	case res.StatusCode != http.StatusOK:
		return engine.Result{}, refused(res.StatusCode, answer)
	}
	if kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return engine.Result{}, failure(Answer, "it is not application/json")
	}
	return decision(answer, q)
}

// cause returns err without the URL that net/http adds to its errors.
func cause(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// refused returns the error for a status. OPA answers 500 both when OPA itself fails and when
// the evaluation fails. Only the body tells these two apart.
func refused(status int, body []byte) error {
	var problem struct {
		Errors []struct {
			Code string `json:"code"`
		} `json:"errors"`
	}
	if status == http.StatusInternalServerError && json.Unmarshal(body, &problem) == nil && len(problem.Errors) > 0 {
		switch code := problem.Errors[0].Code; code {
		case "eval_builtin_error", "eval_conflict_error", "eval_type_error", "eval_internal_error":
			return failure(Evaluation, "%s", code)
		}
	}
	return failure(Status, "it is %d", status)
}
