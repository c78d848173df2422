package envoy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"unicode/utf8"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"github.com/google/uuid"

	writ "writ.example/writ/sdk/go"
)

// Settings say who asks about requests whose route does not say it.
type Settings struct {
	URL      string // the writ server
	APIKey   string
	PolicyID string // the default is the policy that the key is bound to
	AgentID  string // the default is the agent that the key is bound to
	// Transport sends the requests to the server. The default is [http.DefaultTransport].
	Transport http.RoundTripper
	Log       *slog.Logger
}

// Authorizer answers Envoy's checks. It is safe for concurrent use.
type Authorizer struct {
	authv3.UnimplementedAuthorizationServer
	settings Settings

	mu      sync.Mutex
	callers map[string]*caller // by API key
}

// New returns an Authorizer. It asks the server nothing.
func New(s Settings) *Authorizer {
	if s.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxIdleConnsPerHost = maxStreams
		s.Transport = t
	}
	return &Authorizer{settings: s, callers: make(map[string]*caller)}
}

// caller asks for decisions with one API key.
type caller struct {
	*writ.Client
	mu    sync.Mutex
	bound *writ.Credential // nil until it was asked for
}

// with returns the caller of an API key.
func (a *Authorizer) with(key string) (*caller, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.callers[key]; c != nil {
		return c, nil
	}
	client, err := writ.New(writ.Config{URL: a.settings.URL, APIKey: key, Transport: a.settings.Transport})
	if err != nil {
		return nil, err
	}
	a.callers[key] = &caller{Client: client}
	return a.callers[key], nil
}

// binding returns the policy and the agents to which the caller's key is bound, with its other properties.
func (c *caller) binding(ctx context.Context) (writ.Credential, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bound == nil {
		bound, err := c.Credential(ctx)
		if err != nil {
			return writ.Credential{}, err
		}
		c.bound = &bound
	}
	return *c.bound, nil
}

// The names of context_extensions, and the headers.
const (
	extPolicy = "policy_id"
	extAgent  = "agent_id"
	extKey    = "api_key"
	extServer = "mcp_server"

	headerApproval = "x-writ-approval"
	headerDecision = "x-writ-decision"
)

// Check implements [authv3.AuthorizationServer].
func (a *Authorizer) Check(ctx context.Context, check *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	at := check.GetAttributes()
	client, in, err := a.asker(ctx, at.GetContextExtensions())
	var r request
	if err == nil {
		r, err = read(at.GetRequest().GetHttp(), at.GetContextExtensions()[extServer], in)
	}
	if err == nil && r.passes {
		return allow(writ.Decision{}), nil
	}
	var d writ.Decision
	if err == nil {
		d, err = decide(ctx, client, r)
	}
	var denied *writ.Denied
	var held *writ.Held
	switch {
	case err == nil && d.Allowed():
		return allow(d), nil
	case errors.As(err, &held):
		return hold(held.Decision), nil
	case errors.As(err, &denied):
		return deny(denied.Decision), nil
	}
	a.settings.Log.Warn("a request through Envoy was refused without a decision", "problem", err)
	return undecided(err), nil
}

// mistake is the error of a request that is no intent.
type mistake struct{ field, why string }

func (m *mistake) Error() string { return m.field + ": " + m.why }

// asker returns the client that asks about requests of a route, and a new intent with its policy and agent.
func (a *Authorizer) asker(ctx context.Context, ext map[string]string) (*caller, writ.Intent, error) {
	in := writ.Intent{
		IntentID: uuid.NewString(),
		PolicyID: cmp.Or(ext[extPolicy], a.settings.PolicyID), AgentID: cmp.Or(ext[extAgent], a.settings.AgentID),
	}
	key := cmp.Or(ext[extKey], a.settings.APIKey)
	if key == "" {
		return nil, in, &mistake{extKey, "neither the route nor the settings have it"}
	}
	client, err := a.with(key)
	if err != nil {
		return nil, in, err
	}
	if in.PolicyID == "" || in.AgentID == "" {
		bound, err := client.binding(ctx)
		if err != nil {
			return nil, in, err
		}
		in.PolicyID, in.AgentID = cmp.Or(in.PolicyID, bound.PolicyID), cmp.Or(in.AgentID, bound.AgentID)
	}
	switch {
	case in.PolicyID == "":
		return nil, in, &mistake{extPolicy, "neither the route, the settings nor the key says it"}
	case in.AgentID == "" || strings.Contains(in.AgentID, "*"):
		return nil, in, &mistake{extAgent, "neither the route, the settings nor the key names one agent"}
	}
	return client, in, nil
}

// decide returns the allow for a request. Otherwise it returns an error of [writ.Client.Require].
func decide(ctx context.Context, client *caller, r request) (writ.Decision, error) {
	if r.approval == "" {
		return client.Require(ctx, r.intent)
	}
	return redeem(ctx, client, r.intent, r.approval)
}

// redeem asks for the decision about an intent that was held, under its approval.
func redeem(ctx context.Context, client *caller, in writ.Intent, approval string) (writ.Decision, error) {
	a, err := client.Approval(ctx, approval, 0)
	if err != nil {
		return writ.Decision{}, err
	}
	in.IntentID, in.IssuedAt = a.IntentID, a.IssuedAt
	held := &writ.Held{Decision: writ.Decision{
		ID: approval, Outcome: writ.ApprovalRequired, Intent: in, Reasons: []string{"the approval is " + writ.Pending},
	}}
	d, err := client.Redeem(ctx, held)
	if errors.Is(err, writ.ErrPending) {
		return writ.Decision{}, held
	}
	return d, err
}

// request is a request as an intent.
type request struct {
	intent   writ.Intent
	approval string // that it redeems, or empty
	passes   bool   // needs no decision
}

// read reads a request as Envoy sends it on, into the intent in. A POST to an MCP server is read by its
// body.
func read(h *authv3.AttributeContext_HttpRequest, server string, in writ.Intent) (request, error) {
	r := request{intent: in}
	path := h.GetPath()
	headers, err := headersOf(h)
	if err != nil {
		return r, err
	}
	if raw, ok := headers[":path"]; ok {
		path = raw // not mended
	}
	switch {
	case h.GetMethod() == "":
		return r, &mistake{"method", "is missing"}
	case h.GetScheme() != "http" && h.GetScheme() != "https":
		return r, &mistake{"scheme", "want http or https"}
	case h.GetHost() == "":
		return r, &mistake{"host", "is missing"}
	case !strings.HasPrefix(path, "/"):
		return r, &mistake{"path", "want one that begins with a slash"}
	case !utf8.ValidString(path):
		return r, &mistake{"path", "want UTF-8"}
	}
	if id, ok := headers[headerApproval]; ok {
		parsed, err := uuid.Parse(id)
		if err != nil || len(id) != len(parsed.String()) {
			return r, &mistake{headerApproval, "want the id of one approval"}
		}
		r.approval = parsed.String()
	}
	r.intent.ActionType = "http_" + strings.ToLower(h.GetMethod())
	r.intent.Resource = h.GetScheme() + "://" + h.GetHost() + path
	if server != "" && h.GetMethod() == http.MethodPost {
		decided, err := call(server, h, headers, &r.intent)
		r.passes = err == nil && !decided
		return r, err
	}
	return r, nil
}

// headersOf returns the headers that Envoy has sent in either form: encode_raw_headers decides in which.
func headersOf(h *authv3.AttributeContext_HttpRequest) (map[string]string, error) {
	if h.GetHeaderMap() == nil {
		return h.GetHeaders(), nil
	}
	headers := make(map[string]string)
	for _, header := range h.GetHeaderMap().GetHeaders() {
		value := header.GetValue()
		if raw := header.GetRawValue(); len(raw) > 0 {
			value = string(raw)
		}
		name := strings.ToLower(header.GetKey())
		if _, twice := headers[name]; twice && (name == ":path" || name == headerApproval) {
			return nil, &mistake{name, "is given twice"}
		}
		headers[name] = value
	}
	return headers, nil
}

func why(err error) string {
	var m *mistake
	var p *writ.Problem
	switch {
	case errors.As(err, &m):
		return m.Error()
	case errors.As(err, &p) && p.Code != "":
		return fmt.Sprintf("%s: %s", p.Code, p.Detail)
	case errors.Is(err, writ.ErrAlreadyRedeemed):
		return "the approval was used"
	}
	return "writ has not answered"
}
