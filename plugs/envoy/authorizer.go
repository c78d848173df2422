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

	writ "writ/sdk/go"
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

// binding returns what the caller's key is bound to.
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
	d, err := a.decide(ctx, check.GetAttributes())
	var denied *writ.Denied
	var held *writ.Held
	switch {
	case err == nil && d.Allowed(), errors.Is(err, errPasses):
		return allow(d), nil
	case errors.As(err, &held):
		return hold(held.Decision), nil
	case errors.As(err, &denied):
		return deny(denied.Decision), nil
	}
	a.settings.Log.Warn("a request through Envoy was refused without a decision", "problem", err)
	return undecided(err), nil
}

// errPasses says that a message needs no decision.
var errPasses = errors.New("the message passes")

// mistake is the error of a request that is no intent.
type mistake struct{ field, why string }

func (m *mistake) Error() string { return m.field + ": " + m.why }

// decide returns the allow for a request. Otherwise it returns an error of [writ.Client.Require].
func (a *Authorizer) decide(ctx context.Context, at *authv3.AttributeContext) (writ.Decision, error) {
	ext := at.GetContextExtensions()
	key := cmp.Or(ext[extKey], a.settings.APIKey)
	if key == "" {
		return writ.Decision{}, &mistake{extKey, "neither the route nor the settings have it"}
	}
	client, err := a.with(key)
	if err != nil {
		return writ.Decision{}, err
	}
	in := writ.Intent{
		IntentID: uuid.NewString(),
		PolicyID: cmp.Or(ext[extPolicy], a.settings.PolicyID), AgentID: cmp.Or(ext[extAgent], a.settings.AgentID),
	}
	if in.PolicyID == "" || in.AgentID == "" {
		bound, err := client.binding(ctx)
		if err != nil {
			return writ.Decision{}, err
		}
		in.PolicyID, in.AgentID = cmp.Or(in.PolicyID, bound.PolicyID), cmp.Or(in.AgentID, bound.AgentID)
	}
	switch {
	case in.PolicyID == "":
		return writ.Decision{}, &mistake{extPolicy, "neither the route, the settings nor the key says it"}
	case in.AgentID == "" || strings.Contains(in.AgentID, "*"):
		return writ.Decision{}, &mistake{extAgent, "neither the route, the settings nor the key names one agent"}
	}
	r, err := read(at.GetRequest().GetHttp())
	if err != nil {
		return writ.Decision{}, err
	}
	in.ActionType, in.Resource = "http_"+strings.ToLower(r.method), r.url
	if server := ext[extServer]; server != "" && r.method == http.MethodPost {
		if decided, err := call(server, at.GetRequest().GetHttp(), r.headers, &in); err != nil || !decided {
			return writ.Decision{}, cmp.Or(err, errPasses)
		}
	}
	if r.approval == "" {
		return client.Require(ctx, in)
	}
	return redeem(ctx, client, in, r.approval)
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

// request is what a decision needs of a request.
type request struct {
	method, url, approval string
	headers               map[string]string
}

// read reads a request as Envoy sends it on.
func read(h *authv3.AttributeContext_HttpRequest) (request, error) {
	path := h.GetPath()
	headers, err := headersOf(h)
	if err != nil {
		return request{}, err
	}
	r := request{method: h.GetMethod(), headers: headers}
	if raw, ok := headers[":path"]; ok {
		path = raw // not mended
	}
	switch {
	case r.method == "":
		return request{}, &mistake{"method", "is missing"}
	case h.GetScheme() != "http" && h.GetScheme() != "https":
		return request{}, &mistake{"scheme", "want http or https"}
	case h.GetHost() == "":
		return request{}, &mistake{"host", "is missing"}
	case !strings.HasPrefix(path, "/"):
		return request{}, &mistake{"path", "want one that begins with a slash"}
	case !utf8.ValidString(path):
		return request{}, &mistake{"path", "want UTF-8"}
	}
	r.url = h.GetScheme() + "://" + h.GetHost() + path
	if id, ok := headers[headerApproval]; ok {
		parsed, err := uuid.Parse(id)
		if err != nil || len(id) != len(parsed.String()) {
			return request{}, &mistake{headerApproval, "want the id of one approval"}
		}
		r.approval = parsed.String()
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
