package console

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// signin is the page on which one signs in.
type signin struct {
	Next, Reason, Error string
}

// reasons says why one is on the sign-in page.
var reasons = map[string]string{
	"expired": "Your credential has expired.",
	"ended":   "You were signed in for 12 hours. Sign in again.",
	"refused": "The server no longer accepts your credential: it was revoked, or it has expired.",
	"out":     "You are signed out.",
}

func (c *Console) askCredential(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	c.signin(w, http.StatusOK, signin{Next: below(q.Get("next")), Reason: reasons[q.Get("reason")]})
}

func (c *Console) signin(w http.ResponseWriter, status int, body signin) {
	c.render(w, status, "signin", frame{Title: "Sign in", Body: body})
}

// enter signs somebody in whose credential the API knows.
func (c *Console) enter(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	if err := r.ParseForm(); err != nil {
		c.signin(w, http.StatusBadRequest, signin{Next: cookiePath, Error: "The form cannot be read."})
		return
	}
	body := signin{Next: below(r.PostForm.Get("next"))}
	credential := strings.TrimSpace(r.PostForm.Get("credential"))
	if credential == "" || strings.ContainsFunc(credential, func(r rune) bool { return r <= ' ' || r > '~' }) {
		body.Error = "This is no operator token and no API key."
		c.signin(w, http.StatusUnauthorized, body)
		return
	}
	var known struct {
		Organization string     `json:"organization_id"`
		Kind         string     `json:"kind"`
		ID           string     `json:"id"`
		ExpiresAt    *time.Time `json:"expiresAt"`
	}
	if _, err := c.exchange(Caller{credential, r}, http.MethodGet, "/v1/credential", nil, &known); err != nil {
		status := http.StatusBadGateway
		body.Error = "The server did not answer. Try again."
		var p *problem
		if errors.As(err, &p) {
			if status, body.Error = p.Status, p.Error(); status == http.StatusUnauthorized {
				body.Error = "The server does not accept this token or key. It is wrong, was revoked or has expired."
			}
		}
		c.signin(w, status, body)
		return
	}
	now := c.cfg.Now()
	s := session{
		Credential: credential, Organization: known.Organization, Kind: known.Kind, ID: known.ID,
		Expires: now.Add(maxSession),
	}
	if known.ExpiresAt != nil && !known.ExpiresAt.After(s.Expires) {
		s.Expires, s.Ending = *known.ExpiresAt, true
	}
	sealed, err := c.seal.close(s)
	if err != nil {
		body.Error = "This token is too long for a cookie. Use an API key."
		c.signin(w, http.StatusBadRequest, body)
		return
	}
	http.SetCookie(w, c.cookie(sealed, s.Expires))
	http.Redirect(w, r, body.Next, http.StatusSeeOther)
}

// signOut removes the cookie.
func (c *Console) signOut(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, c.cookie("", time.Unix(0, 0)))
	http.Redirect(w, r, "/console/login?"+url.Values{"reason": {"out"}}.Encode(), http.StatusSeeOther)
}
