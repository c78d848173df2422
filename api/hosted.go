package api

import (
	"fmt"
	"net/url"
	"strings"

	"writ.example/writ/engine"
)

// Hosted has the addresses of the deployment for clients and people. Only the deployment sets these
// URLs. A request's Host header is never used: its sender controls it.
type Hosted struct {
	// APIURL and PortalURL are absolute http(s) URLs without query or fragment. An empty APIURL means
	// http://localhost:3820. An empty PortalURL means APIURL.
	APIURL, PortalURL string
}

const defaultAPIURL = "http://localhost:3820"

func (h Hosted) withDefaults() Hosted {
	if h.APIURL == "" {
		h.APIURL = defaultAPIURL
	}
	if h.PortalURL == "" {
		h.PortalURL = h.APIURL
	}
	h.APIURL = strings.TrimRight(h.APIURL, "/")
	h.PortalURL = strings.TrimRight(h.PortalURL, "/")
	return h
}

// Validate returns an error if h is not valid in a Config.
func (h Hosted) Validate() error { return h.withDefaults().check() }

func (h Hosted) check() error {
	for name, s := range map[string]string{"API": h.APIURL, "portal": h.PortalURL} {
		u, err := url.Parse(s)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" ||
			u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
			return fmt.Errorf("%s URL %q: want an absolute http(s) URL without user, query and fragment", name, s)
		}
	}
	return nil
}

// hostedConfigBody is the body of GET /v1/hosted/config.
type hostedConfigBody struct {
	APIBaseURL    string     `json:"api_base_url"`
	PortalBaseURL string     `json:"portal_base_url"`
	Plan          string     `json:"plan"`
	Limits        planLimits `json:"limits"`
}

// planLimits are the limits of a plan in the form of an answer.
type planLimits struct {
	Evaluations   int64 `json:"evaluations_per_month"`
	Agents        int   `json:"agents"`
	Policies      int   `json:"policies"`
	Rules         int   `json:"rules"`
	Tokens        int   `json:"tokens"`
	RetentionDays int   `json:"retention_days"`
}

func newPlanLimits(p engine.Plan) planLimits {
	return planLimits{p.Evaluations, p.Agents, p.Policies, p.Rules, p.Tokens, p.RetentionDays}
}

// hostedConfig answers with the deployment's addresses and the limits of the free plan. The answer
// is public and equal for all callers.
func (s *Server) hostedConfig(r *request) error {
	if err := r.query.done(); err != nil {
		return err
	}
	free := s.decisions.Plans.All()[engine.FreePlan]
	return r.ok(hostedConfigBody{
		APIBaseURL:    s.cfg.Hosted.APIURL,
		PortalBaseURL: s.cfg.Hosted.PortalURL,
		Plan:          free.Name,
		Limits:        newPlanLimits(free),
	})
}

// health answers GET /health. A 200 means only that the process runs. /readyz of the admin address
// also checks the store.
func (s *Server) health(r *request) error {
	return r.ok(healthBody{OK: true, Service: "writ"})
}

type healthBody struct {
	OK      bool   `json:"ok"`
	Service string `json:"service"`
}

// jwks answers GET /.well-known/jwks.json with the keys that verify receipts. Clients may cache the answer and
// revalidate it.
func (s *Server) jwks(r *request) error {
	if err := r.query.done(); err != nil {
		return err
	}
	return r.ok(newFixed("application/jwk-set+json", s.cfg.JWKS()))
}
