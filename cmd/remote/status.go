package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"writ.example/writ/authoring/workspace"
	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// Credential is what a credential may do.
type Credential struct {
	Organization string     `json:"organization_id"`
	Kind         string     `json:"kind"`
	ID           string     `json:"id"`
	Scopes       []string   `json:"scopes"`
	AgentID      string     `json:"agent_id,omitzero"`
	PolicyID     string     `json:"policy_id,omitzero"`
	ExpiresAt    *time.Time `json:"expiresAt"`
}

// String names the credential.
func (c Credential) String() string {
	kind := map[string]string{"operator": "operator", "api_key": "API key"}[c.Kind]
	return fmt.Sprintf("%s %s of %s", kind, c.ID, c.Organization)
}

// Whoami asks the server what the credential may do.
func Whoami(ctx context.Context, call workspace.Call) (c Credential, err error) {
	doc, err := Get(ctx, call, "/v1/credential")
	if err == nil {
		err = decode(doc, &c)
	}
	return c, err
}

// Public is what a server tells anybody.
type Public struct {
	Keys []string  `json:"keys"` // ids of the keys that sign receipts, or have signed them
	Time time.Time `json:"-"`    // of the answer, in whole seconds
}

// Published asks a server for its public facts. It needs no credential.
func Published(ctx context.Context, call workspace.Call) (p Public, err error) {
	var health struct {
		Service string `json:"service"`
	}
	h, err := call(ctx, workspace.Request{Method: http.MethodGet, Path: "/health", Want: http.StatusOK}, &health)
	if err == nil && health.Service != "writ" {
		err = errors.New("GET /health: the answer is not of a writ")
	}
	if err != nil {
		return p, err //nolint:wrapcheck // the server's own words
	}
	p.Time, _ = http.ParseTime(h.Get("Date")) // without it there is no time
	doc, err := Get(ctx, call, "/.well-known/jwks.json")
	if err != nil {
		return p, err
	}
	keys, err := receipt.ParseKeys(doc)
	if err != nil {
		return p, fmt.Errorf("GET /.well-known/jwks.json: %w", err)
	}
	p.Keys = keys.IDs()
	return p, nil
}

// Status is the state of an organization as far as a credential may see it. Unseen has the reasons why parts
// are missing, by their names.
type Status struct {
	URL     string `json:"url"`
	Profile string `json:"profile,omitzero"` // of writ login
	Public
	Credential *Credential      `json:"credential,omitzero"` // nil without one
	Decisions  map[string]int64 `json:"decisions_24h,omitzero"`
	Waiting    *int             `json:"approvals_waiting,omitzero"` // up to storage.MaxPage
	// Organization says whether everything is stopped.
	Organization *organizationStatus `json:"organization,omitzero"`
	Disabled     []string            `json:"agents_disabled,omitzero"`
	// SignedWith is the id of the key that signed the newest decision.
	SignedWith string            `json:"signed_with,omitzero"`
	Unseen     map[string]string `json:"unseen,omitzero"`
}

// StatusOf asks for the state of an organization. Without a credential it asks for the public facts.
func StatusOf(
	ctx context.Context, call workspace.Call, server string, credential bool, now time.Time,
) (s Status, err error) {
	s = Status{URL: server, Unseen: make(map[string]string)}
	if s.Public, err = Published(ctx, call); err != nil || !credential {
		return s, err
	}
	me, err := Whoami(ctx, call)
	if err != nil {
		return s, err
	}
	s.Credential = &me
	for what, ask := range map[string]func() error{
		"decisions":    func() error { return s.decisions(ctx, call, now) },
		"approvals":    func() error { return s.waiting(ctx, call) },
		"agents":       func() error { return s.agents(ctx, call) },
		"organization": func() error { return s.stop(ctx, call) },
		"signed with":  func() error { return s.signedWith(ctx, call) },
	} {
		err := ask()
		switch {
		case Refused(err):
			s.Unseen[what] = err.Error()
		case err != nil:
			return s, err
		}
	}
	return s, nil
}

func (s *Status) decisions(ctx context.Context, call workspace.Call, now time.Time) error {
	from := url.Values{"by": {"decision"}, "from": {now.UTC().Add(-24 * time.Hour).Format(time.RFC3339)}}
	doc, err := Get(ctx, call, "/v1/authorizations/counts?"+from.Encode())
	if err != nil {
		return err
	}
	var hours workspace.Page[struct {
		Counts map[string]int64 `json:"counts"`
	}]
	if err := decode(doc, &hours); err != nil {
		return err
	}
	s.Decisions = make(map[string]int64)
	for _, hour := range hours.Data {
		for outcome, n := range hour.Counts {
			s.Decisions[outcome] += n
		}
	}
	return nil
}

func (s *Status) waiting(ctx context.Context, call workspace.Call) error {
	items, _, err := List(ctx, call, "/v1/approvals", url.Values{"status": {"pending"}}, storage.MaxPage)
	if n := len(items); err == nil {
		s.Waiting = &n
	}
	return err
}

// signedWith asks with which key the newest decision was signed.
func (s *Status) signedWith(ctx context.Context, call workspace.Call) error {
	items, _, err := List(ctx, call, "/v1/authorizations", nil, 1)
	if err != nil || len(items) == 0 {
		return err
	}
	var row struct {
		Receipt struct {
			KeyID string `json:"kid"`
		} `json:"receipt"`
	}
	err = decode(items[0], &row)
	s.SignedWith = row.Receipt.KeyID
	return err
}

func (s *Status) stop(ctx context.Context, call workspace.Call) error {
	doc, err := Get(ctx, call, organizationPath)
	if err != nil {
		return err
	}
	s.Organization = new(organizationStatus)
	return decode(doc, s.Organization)
}

func (s *Status) agents(ctx context.Context, call workspace.Call) error {
	items, err := Agents(ctx, call)
	if err != nil {
		return err
	}
	s.Disabled = []string{}
	for _, item := range items {
		var a engine.Agent
		if err := decode(item, &a); err != nil {
			return err
		}
		if a.Status == engine.AgentDisabled {
			s.Disabled = append(s.Disabled, agentName(a))
		}
	}
	return nil
}

// Print prints the state for people.
func (s Status) Print(w io.Writer) error {
	pairs := []string{"server", s.URL, "keys", strings.Join(s.Keys, ", "), "profile", s.Profile}
	if me := s.Credential; me != nil {
		expires := "never"
		if me.ExpiresAt != nil {
			expires = Time(*me.ExpiresAt)
		}
		pairs = append(pairs, "you are", me.String(), "bound to", me.AgentID, "scopes", strings.Join(me.Scopes, " "),
			"expires", expires)
	} else {
		pairs = append(pairs, "you are", "unknown: writ login, or WRIT_API_KEY, shows the organization")
	}
	if s.Organization != nil {
		pairs = append(pairs, "organization", s.Organization.String())
	}
	if s.Decisions != nil {
		pairs = append(pairs, "decisions, 24 h", fmt.Sprintf("%d allow, %d deny, %d approval_required",
			s.Decisions["allow"], s.Decisions["deny"], s.Decisions["approval_required"]))
	}
	if s.Waiting != nil {
		more := ""
		if *s.Waiting == storage.MaxPage {
			more = " or more"
		}
		pairs = append(pairs, "approvals", fmt.Sprintf("%d%s waiting", *s.Waiting, more))
	}
	if s.Disabled != nil {
		pairs = append(pairs, "disabled agents", strings.Join(orNone(s.Disabled), ", "))
	}
	if s.SignedWith != "" {
		pairs = append(pairs, "signed with", s.SignedWith)
	}
	for _, what := range []string{"organization", "decisions", "approvals", "agents", "signed with"} {
		if why := s.Unseen[what]; why != "" {
			pairs = append(pairs, what, "not shown: "+why)
		}
	}
	return Fields(w, pairs...)
}

func orNone(all []string) []string {
	if len(all) == 0 {
		return []string{"none"}
	}
	return slices.Sorted(slices.Values(all))
}
