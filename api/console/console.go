package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"sync"
	"time"
)

// web holds the style sheet, the script and the icon.
//
//go:embed web/console.css web/console.js web/icon.svg
var web embed.FS

// Config configures a Console. API, Now and Secret are required.
type Config struct {
	API API
	Now func() time.Time
	// Secret is where the key of the cookies comes from. Replicas must have the same secret.
	Secret []byte
	// PublicURL is how browsers reach the server. If it begins with https, the console believes that
	// they do so over https.
	PublicURL string
	// Log gets a line for each page that could not be made. Nil discards the lines.
	Log *slog.Logger
}

// Console serves the pages below /console. It implements [http.Handler].
type Console struct {
	cfg    Config
	seal   seal
	mux    *http.ServeMux
	making sync.Mutex // held from reading the keys until one is made, so that a form sent twice makes one
}

// New returns a console.
func New(cfg Config) (*Console, error) {
	if len(cfg.Secret) == 0 {
		return nil, errors.New("configuring the console: no secret for its cookies")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s, err := newSeal(cfg.Secret)
	if err != nil {
		return nil, err
	}
	c := &Console{cfg: cfg, seal: s, mux: http.NewServeMux()}
	c.routes()
	return c, nil
}

// ServeHTTP answers a request for a page.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secureHeaders(w.Header())
	switch {
	case !c.private(r):
		c.refuse(w, http.StatusForbidden, "Use https",
			"The console takes credentials, so it is served over https, or over http to a browser on the same host "+
				"that asks for localhost. Behind a balancer that ends TLS, start the server with --public-url "+
				"https://…")
	case r.Method == http.MethodPost && !c.fromForm(r):
		c.refuse(w, http.StatusForbidden, "Not from the console",
			"This request did not come from a form of this console. Nothing was changed.")
	default:
		c.mux.ServeHTTP(w, r)
	}
}

// Knows reports whether r is of somebody who is signed in. The credential may be revoked meanwhile.
func (c *Console) Knows(r *http.Request) bool {
	_, err := c.seal.open(r, c.cfg.Now())
	return err == nil
}

// get and post add a page that needs a session.
func (c *Console) get(pattern string, h func(*visit) error)  { c.handle("GET "+pattern, h) }
func (c *Console) post(pattern string, h func(*visit) error) { c.handle("POST "+pattern, h) }

func (c *Console) handle(pattern string, h func(*visit) error) {
	c.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		s, err := c.seal.open(r, c.cfg.Now())
		if err != nil {
			c.leave(w, r, err)
			return
		}
		v := &visit{c: c, w: w, r: r, who: s}
		if err := h(v); err != nil {
			v.fail(err)
		}
	})
}

// leave sends a browser to the sign-in page and says why.
func (c *Console) leave(w http.ResponseWriter, r *http.Request, why error) {
	q := url.Values{}
	switch {
	case errors.Is(why, errExpired):
		q.Set("reason", "expired")
	case errors.Is(why, errTimedOut):
		q.Set("reason", "ended")
	case !errors.Is(why, errNoSession):
		q.Set("reason", "refused")
	}
	if next := below(r.URL.RequestURI()); r.Method == http.MethodGet && next != cookiePath {
		q.Set("next", next)
	}
	to := "/console/login"
	if len(q) > 0 {
		to += "?" + q.Encode()
	}
	http.SetCookie(w, c.cookie("", time.Unix(0, 0)))
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// refuse answers a request without a session with a page in words.
func (c *Console) refuse(w http.ResponseWriter, status int, title, text string) {
	c.render(w, status, "refused", frame{Title: title, Body: text})
}

// asset adds a file of the pages. Browsers may keep it, but ask whether it has changed.
func (c *Console) asset(name, contentType string) {
	data, err := web.ReadFile("web/" + name)
	if err != nil {
		panic(fmt.Sprintf("console: %v", err)) // the file is embedded
	}
	sum := sha256.Sum256(data)
	etag := `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
	c.mux.HandleFunc("GET "+path.Join("/console/assets", name), func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("ETag", etag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	})
}
