package core

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
)

func TestDecision_ExternalEvaluationCore_WhateverIsNoDecisionIsAnError(t *testing.T) {
	yes := `"decision":"allow","reasons":["policy.allowed: yes"]`
	long := strings.Repeat("x", maxAnswer)
	for name, tc := range map[string]struct {
		status int
		body   string
		want   Reason
	}{
		"undefined":              {200, `{}`, Undefined},
		"null result":            {200, `{"result":null}`, Undefined},
		"empty":                  {200, ``, Answer},
		"a boolean":              {200, `{"result":true}`, Answer},
		"a string":               {200, `{"result":"allow"}`, Answer},
		"an array":               {200, `{"result":[{` + yes + `}]}`, Answer},
		"an empty object":        {200, `{"result":{}}`, Answer},
		"the document itself":    {200, `{` + yes + `}`, Answer},
		"no decision":            {200, `{"result":{"reasons":["policy.allowed: yes"]}}`, Answer},
		"unknown decision":       {200, `{"result":{"decision":"ALLOW","reasons":["policy.allowed: yes"]}}`, Answer},
		"null decision":          {200, `{"result":{"decision":null,"reasons":["policy.allowed: yes"]}}`, Answer},
		"no reasons":             {200, `{"result":{"decision":"allow"}}`, Answer},
		"empty reasons":          {200, `{"result":{"decision":"allow","reasons":[]}}`, Answer},
		"null reasons":           {200, `{"result":{"decision":"allow","reasons":null}}`, Answer},
		"a null reason":          {200, `{"result":{"decision":"allow","reasons":[null]}}`, Answer},
		"a reason of no code":    {200, `{"result":{"decision":"allow","reasons":["because"]}}`, Answer},
		"a code without a text":  {200, `{"result":{"decision":"allow","reasons":["policy.allowed: "]}}`, Answer},
		"a code in upper case":   {200, `{"result":{"decision":"allow","reasons":["Policy.Allowed: yes"]}}`, Answer},
		"a control character":    {200, `{"result":{"decision":"allow","reasons":["policy.allowed: y\u001b[2J"]}}`, Answer},
		"a long reason":          {200, `{"result":{"decision":"allow","reasons":["policy.allowed: ` + long[:condition.MaxText] + `"]}}`, Answer},
		"many reasons":           {200, `{"result":{"decision":"allow","reasons":["policy.allowed: y"` + strings.Repeat(`,"a: b"`, maxAnswer/7) + `]}}`, Answer},
		"an object of reasons":   {200, `{"result":{"decision":"allow","reasons":{"policy.allowed":"yes"}}}`, Answer},
		"allowed for a deny":     {200, `{"result":{"decision":"allow","reasons":["resource.blocked: no"]}}`, Answer},
		"allowed for both":       {200, `{"result":{"decision":"allow","reasons":["policy.allowed: yes","rule.deny: no"]}}`, Answer},
		"denied for nothing":     {200, `{"result":{"decision":"deny","reasons":["policy.allowed: yes"]}}`, Answer},
		"approval for a deny":    {200, `{"result":{"decision":"approval_required","reasons":["x.y: z","action.denied: no"]}}`, Answer},
		"an obligation":          {200, `{"result":{` + yes + `,"obligations":["mask"]}}`, Answer},
		"another member":         {200, `{"warning":{},"result":{` + yes + `}}`, Answer},
		"two decisions":          {200, `{"result":{"decision":"deny",` + yes + `}}`, Answer},
		"two results":            {200, `{"result":{"decision":"deny","reasons":["rule.deny: no"]},"result":{` + yes + `}}`, Answer},
		"two cases":              {200, `{"result":{"decision":"allow","Decision":"deny","reasons":["policy.allowed: yes"]}}`, Answer},
		"trailing":               {200, `{"result":{` + yes + `}}{}`, Answer},
		"not UTF-8":              {200, "{\"result\":{\"decision\":\"allow\",\"reasons\":[\"policy.allowed: \xff\"]}}", Answer},
		"cut off":                {200, `{"result":{` + yes, Answer},
		"huge":                   {200, `{"result":{` + yes + `}}` + strings.Repeat(" ", maxAnswer), Answer},
		"deep":                   {200, strings.Repeat("[", maxAnswer/2), Answer},
		"created":                {201, allowed, Status},
		"no content":             {204, ``, Status},
		"unauthorized":           {401, `{"code":"unauthorized"}`, Status},
		"not found":              {404, allowed, Status},
		"ill":                    {500, `{"code":"internal_error","errors":[]}`, Status},
		"ill with a decision":    {500, allowed, Status},
		"unavailable":            {503, ``, Status},
		"a rule fails":           {500, `{"code":"internal_error","errors":[{"code":"eval_builtin_error","message":"x"}]}`, Evaluation},
		"a conflict":             {500, `{"code":"internal_error","errors":[{"code":"eval_conflict_error"}]}`, Evaluation},
		"evaluation is canceled": {500, `{"code":"internal_error","errors":[{"code":"eval_cancel_error"}]}`, Status},
	} {
		t.Run(name, func(t *testing.T) {
			body := strings.ReplaceAll(tc.body, `"result":{"`, `"result":{"policy_version":1,"rules_revision":57,"`)
			got, err := serve(t, constant(tc.status, body)).decide(t)
			wantReason(t, got, err, tc.want)
		})
	}
}

// TestDecision_ExternalEvaluationCore_AnswersUnderOtherVersionsAreErrors checks that an answer is
// not a decision if its versions differ from the question's. The breaker does not count such an
// answer, because the core only needs a new export.
func TestDecision_ExternalEvaluationCore_AnswersUnderOtherVersionsAreErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		versions string
		want     Reason
	}{
		"an older version":      {`,"policy_version":0,"rules_revision":57`, Undefined},
		"a newer version":       {`,"policy_version":2,"rules_revision":57`, Undefined},
		"older rules":           {`,"policy_version":1,"rules_revision":56`, Undefined},
		"newer rules":           {`,"policy_version":1,"rules_revision":58`, Undefined},
		"the two exchanged":     {`,"policy_version":57,"rules_revision":1`, Undefined},
		"the policy's revision": {`,"policy_version":9,"rules_revision":57`, Undefined},
		"none":                  {``, Answer},
		"no version":            {`,"rules_revision":57`, Answer},
		"no rules":              {`,"policy_version":1`, Answer},
		"null":                  {`,"policy_version":1,"rules_revision":null`, Answer},
		"text":                  {`,"policy_version":"1","rules_revision":57`, Answer},
		"a fraction":            {`,"policy_version":1.5,"rules_revision":57`, Answer},
		"two versions":          {`,"policy_version":2,"policy_version":1,"rules_revision":57`, Answer},
		"another member":        {`,"policy_version":1,"rules_revision":57,"agent_revision":3`, Answer},
	} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, constant(200, `{"result":{"decision":"allow","reasons":["policy.allowed: yes"]`+tc.versions+`}}`),
				func(c *Config) { c.failures = 1 })
			got, err := c.decide(t)
			wantReason(t, got, err, tc.want)
			if open := map[Reason]float64{Answer: 2}[tc.want]; c.breaker.state() != open {
				t.Errorf("breaker state = %v, want %v", c.breaker.state(), open)
			}
		})
	}
}

func TestDecision_ExternalEvaluationCore_AnswersOfAnotherTypeAreErrors(t *testing.T) {
	for _, kind := range []string{"", "text/html", "application/json;", "application/x-json", "application/jsonp"} {
		got, err := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = []string{kind}
			_, _ = io.WriteString(w, allowed)
		}).decide(t)
		if kind == "application/json;" { // not valid, but not ambiguous either
			if err != nil {
				t.Errorf("Content-Type %q: Evaluate = %v", kind, err)
			}
			continue
		}
		wantReason(t, got, err, Answer)
	}
}

func TestDecision_ExternalEvaluationCore_RedirectsAreNotFollowed(t *testing.T) {
	followed := false
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		followed = true
		constant(http.StatusOK, allowed)(w, r)
	}))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		got, err := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, status) }).decide(t)
		wantReason(t, got, err, Status)
	}
	if followed {
		t.Error("a redirect was followed")
	}
}

func TestDecision_ExternalEvaluationCore_BrokenConnectionsAreErrors(t *testing.T) {
	for name, reply := range map[string]string{
		"nothing":           "",
		"noise":             "\x00\x16\x03 what",
		"a cut header":      "HTTP/1.1 200 OK\r\nContent-Ty",
		"a cut body":        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n" + allowed,
		"a cut chunk":       "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5b\r\n" + allowed[:50],
		"an endless header": "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2*maxAnswer) + "\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			got, err := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Errorf("hijacking: %v", err)
					return
				}
				_, _ = io.WriteString(conn, reply)
				_ = conn.Close()
			}).decide(t)
			wantReason(t, got, err, Unreachable)
		})
	}
}

func TestDecision_ExternalEvaluationCore_UnreachableIsAnErrorThatNamesNoSecret(t *testing.T) {
	ln := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	addr := ln.Addr().String()
	must.Do(t, ln.Close())
	var logged bytes.Buffer
	c, err := New(Config{
		URL: "http://" + addr + "/canary-path", Token: "canary-token", Log: slog.New(slog.NewTextHandler(&logged, nil)),
	})
	must.Do(t, err)
	for range 3 {
		got, err := c.decide(t)
		failed := wantReason(t, got, err, Unreachable)
		if failed.RetryAfter() != time.Second {
			t.Errorf("RetryAfter = %v, want 1s", failed.RetryAfter())
		}
		if strings.Contains(err.Error(), "canary") {
			t.Errorf("the error tells too much: %v", err)
		}
	}
	if text := logged.String(); strings.Count(text, "\n") != 1 || strings.Contains(text, "canary") {
		t.Errorf("log = %q, want one line without secrets", text)
	}
}

func TestDecision_ExternalEvaluationCore_SlowAnswersTimeOut(t *testing.T) {
	for name, f := range map[string]transport{
		"no answer": hang,
		"slow body": func(r *http.Request) (*http.Response, error) {
			res := response(http.StatusOK, "")
			res.Body = io.NopCloser(slow{r.Context()})
			return res, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := serveFake(t, f, func(c *Config) { c.Timeout = 250 * time.Millisecond })
				start := time.Now()
				got, err := c.decide(t)
				wantReason(t, got, err, Timeout)
				if took := time.Since(start); took != 250*time.Millisecond {
					t.Errorf("Evaluate took %v, want the timeout", took)
				}
			})
		})
	}
}

// slow is an endless body that returns one byte every tenth of a second.
type slow struct{ ctx context.Context }

func (s slow) Read(p []byte) (int, error) {
	select {
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	case <-time.After(100 * time.Millisecond):
		p[0] = ' '
		return 1, nil
	}
}

func TestEvaluate_CallersThatLeaveGetTheirContextsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serveFake(t, hang)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		got, err := c.Evaluate(ctx, testSet(t), testInput())
		var failed *Error
		if !errors.Is(err, context.Canceled) || errors.As(err, &failed) || got.Decision != 0 {
			t.Errorf("Evaluate = %v, %v, want context.Canceled", got, err)
		}
	})
}
