package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
)

// maxAnswer bounds what the console reads of one answer of the API.
const maxAnswer = 16 << 20

// visit is one request of somebody who is signed in.
type visit struct {
	c   *Console
	w   http.ResponseWriter
	r   *http.Request
	who session
}

// problem is a problem document of the API.
type problem struct {
	Status    int    `json:"status"`
	Code      string `json:"code"`
	Title     string `json:"title"`
	Detail    string `json:"detail"`
	RequestID string `json:"request_id"`
	Errors    []struct {
		Field   string `json:"field"`
		Message string `json:"message"`
	} `json:"errors"`
}

func (p *problem) Error() string {
	if p.Detail == "" {
		return p.Code
	}
	return p.Detail
}

// stale says that a form was about another state than there is.
type stale string

func (s stale) Error() string { return string(s) }

// do sends a request and decodes its answer. An answer that is no success is a *problem.
func (v *visit) do(method, path string, in, out any) error {
	_, err := v.exchange(method, path, in, out)
	return err
}

func (v *visit) exchange(method, path string, in, out any) (http.Header, error) {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return nil, fmt.Errorf("encoding a request: %w", err)
		}
	}
	return v.c.exchange(Caller{v.who.Credential, v.r}, method, path, body, out)
}

func (c *Console) exchange(by Caller, method, path string, body []byte, out any) (http.Header, error) {
	a, err := c.cfg.API.Do(by.From.Context(), by, method, path, body)
	if err != nil {
		return nil, err
	}
	return read(a, method+" "+path, out)
}

// read decodes an answer. An answer that is no success is a *problem.
func read(a *Answer, what string, out any) (http.Header, error) {
	defer a.Body.Close()
	text, err := io.ReadAll(io.LimitReader(a.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("reading the answer of %s: %w", what, err)
	}
	if a.Status >= http.StatusBadRequest {
		p := &problem{}
		if json.Unmarshal(text, p) != nil || p.Code == "" {
			p.Code, p.Detail = "unreadable", "The server's answer is no problem document."
		}
		p.Status = a.Status
		return nil, p
	}
	if out == nil {
		return a.Header, nil
	}
	if raw, ok := out.(*[]byte); ok {
		*raw = text
		return a.Header, nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return nil, fmt.Errorf("decoding the answer of %s: %w", what, err)
	}
	return a.Header, nil
}

// get reads a resource.
func (v *visit) get(path string, out any) error { return v.do(http.MethodGet, path, nil, out) }

// under joins the elements of a path below /v1. An element may hold any character.
func under(elements ...string) string {
	var b strings.Builder
	b.WriteString("/v1")
	for _, e := range elements {
		b.WriteString("/" + url.PathEscape(e))
	}
	return b.String()
}

// with adds a query to a path.
func with(path string, q url.Values) string {
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// lacks returns the sentence that says which scope the credential lacks, if that is what err says. A page
// shows it in the place of parts that the credential may not see.
func lacks(err error) (string, error) {
	var p *problem
	if errors.As(err, &p) && p.Status == http.StatusForbidden {
		return p.Detail, nil
	}
	return "", err
}

// show answers with a page.
func (v *visit) show(name, title, current string, body any) error {
	return v.answer(http.StatusOK, name, title, current, body)
}

func (v *visit) answer(status int, name, title, current string, body any) error {
	for _, e := range navigation {
		if current == "" && e.Path != cookiePath && strings.HasPrefix(v.r.URL.Path+"/", e.Path+"/") {
			current = e.Name
		}
	}
	v.c.render(v.w, status, name, frame{Title: title, Current: current, Who: &v.who, Body: body})
	return nil
}

// fail answers with what went wrong.
func (v *visit) fail(err error) {
	var (
		p    *problem
		late stale
	)
	switch {
	case errors.As(err, &late):
		v.oops(http.StatusConflict, "It has changed", late.Error(), nil)
	case errors.As(err, &p) && p.Status == http.StatusUnauthorized:
		v.c.leave(v.w, v.r, err)
	case errors.As(err, &p):
		titles := map[int]string{
			http.StatusForbidden: "Not allowed", http.StatusNotFound: "Not found",
			http.StatusConflict: "It has changed", http.StatusTooManyRequests: "Too many requests",
		}
		title, ok := titles[p.Status]
		if !ok {
			title = "That did not work"
		}
		v.oops(p.Status, title, p.Error(), p)
	default:
		v.c.cfg.Log.Error("a page of the console failed", slog.String("error", err.Error()))
		v.oops(http.StatusBadGateway, "The server did not answer", "Whether something was changed is not known. "+
			"Load the page again to see.", nil)
	}
}

func (v *visit) oops(status int, title, text string, p *problem) {
	_ = v.answer(status, "problem", title, "", struct {
		Text    string
		Problem *problem
		Back    string
	}{text, p, v.back()})
}

// back returns the page that a failed form was on. For a missing document it is the list.
func (v *visit) back() string {
	at := v.r.URL.EscapedPath()
	return below(at[:strings.LastIndexByte(at, '/')])
}

// form checks that a form is of the organization that is signed in.
func (v *visit) form() error {
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, 256<<10)
	if err := v.r.ParseForm(); err != nil {
		return &problem{Status: http.StatusBadRequest, Code: "malformed", Detail: "The form cannot be read."}
	}
	if org := v.r.PostForm.Get("organization"); org != v.who.Organization {
		return stale("The form was made for the organization " + quoted(org) + ", but this browser is now signed in " +
			"to " + quoted(v.who.Organization) + ". Nothing was changed.")
	}
	return nil
}

// to sends the browser to a page after a form.
func (v *visit) to(page string) error {
	http.Redirect(v.w, v.r, page, http.StatusSeeOther)
	return nil
}
