package api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"writ/decision/admission"
	"writ/engine/condition"
	"writ/storage"
)

// request is one call as a handler sees it. Its memory is its own, except body, which is
// Fiber's and invalid after the handler returns.
type request struct {
	ctx   context.Context
	now   time.Time
	id    []byte // the request id
	who   principal
	param string // the path's parameter, percent-decoded
	query query
	body  []byte // Fiber's memory
	// signature is the header that signs the body of a signed route.
	signature string
	// ifMatch and ifNoneMatch are the headers of those names of a conditional route.
	ifMatch, ifNoneMatch string
	// slot is the request's slot; a handler that waits for something else leaves it.
	slot admission.Slot
}

// response is what a handler answers. The wrapper encodes it.
type response struct {
	status int
	// body is encoded as JSON, unless it is a document, an appender or an
	// *export. Nil sends none.
	body any
	// next is the cursor of the list's next page; it becomes a Link header.
	next string
	// replayed marks the answer of an earlier request, expired one whose receipt has
	// expired.
	replayed, expired bool
	// retryAfter is in seconds; 0 sends no header.
	retryAfter int
}

// answerOK is the answer 200 with a body.
func answerOK(body any) response { return response{status: http.StatusOK, body: body} }

// answerCreated is the answer 201 with a body.
func answerCreated(body any) response { return response{status: http.StatusCreated, body: body} }

// noContent is the answer 204.
func noContent() response { return response{status: http.StatusNoContent} }

// appender is a body that encodes itself without reflection.
type appender interface {
	appendJSON(dst []byte) []byte
}

// page is the body of a list that is not a plain array.
type page[T any] struct {
	Data       []T     `json:"data"`
	NextCursor *string `json:"next_cursor"` // null: nothing follows
}

func list[T any](items []T, next string) response {
	body := page[T]{Data: items}
	if next != "" {
		body.NextCursor = &next
	}
	return response{status: http.StatusOK, body: body, next: next}
}

// query holds the query parameters of a request. A handler takes those that it knows. The
// rest is unknown and refused: a misspelt filter must not silently select everything.
type query map[string]string

// parseQuery reads a raw query string, in which no name may occur twice.
func parseQuery(s string) (query, error) {
	if s == "" {
		return nil, nil
	}
	values, err := url.ParseQuery(s)
	if err != nil {
		return nil, invalid("query", "is not a well-formed query string")
	}
	q := make(query, len(values))
	for name, vs := range values {
		if len(vs) > 1 {
			return nil, invalid(name, "is given %d times", len(vs))
		}
		q[name] = vs[0]
	}
	return q, nil
}

// take returns the parameter and removes it.
func (q query) take(name string) (value string, ok bool) {
	value, ok = q[name]
	delete(q, name)
	return value, ok
}

// done refuses what was not taken.
func (q query) done() error {
	for name := range q {
		return invalid(printable(name), "is not a query parameter of this endpoint")
	}
	return nil
}

const defaultLimit = 50

// page takes limit and cursor.
func (q query) page() (storage.Page, error) {
	p := storage.Page{Limit: defaultLimit}
	if s, ok := q.take("limit"); ok {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > storage.MaxPage {
			return storage.Page{}, invalid("limit", "must be an integer from 1 to %d", storage.MaxPage)
		}
		p.Limit = n
	}
	if s, ok := q.take("cursor"); ok {
		if s == "" || len(s) > condition.MaxText {
			return storage.Page{}, storage.ErrBadCursor
		}
		p.After = s
	}
	return p, nil
}

func (q query) text(name string) (string, error) {
	s, ok := q.take(name)
	if !ok {
		return "", nil
	}
	if err := checkName(s, condition.MaxLabel); err != nil {
		return "", invalid(name, "%v", err)
	}
	return s, nil
}

// timestamp takes an RFC 3339 time; the zero time if it is absent.
func (q query) timestamp(name string) (time.Time, error) {
	s, ok := q.take(name)
	if !ok {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{},
			invalid(name, "must be an RFC 3339 time such as 2026-11-21T10:00:00Z; a + in it is written %%2B")
	}
	return t, nil
}

// onlyPage takes limit and cursor and refuses every parameter that is left.
func (r *request) onlyPage() (storage.Page, error) {
	p, err := r.query.page()
	if err != nil {
		return storage.Page{}, err
	}
	return p, r.query.done()
}

// pageOf reads a page of what an organization has, named in errors, and refuses every
// parameter that is left.
func pageOf[T any](
	r *request, what string, read func(ctx context.Context, org string, p storage.Page) ([]T, string, error),
) (items []T, next string, err error) {
	page, err := r.onlyPage()
	if err != nil {
		return nil, "", err
	}
	if items, next, err = read(r.ctx, r.who.org, page); err != nil {
		return nil, "", fmt.Errorf("listing %s: %w", what, err)
	}
	return items, next, nil
}

// listOf makes the handler of a list of what an organization has, named in errors; show
// returns what is shown of each.
func listOf[T, S any](
	what string, read func(ctx context.Context, org string, p storage.Page) ([]T, string, error),
	show func(*request, T) S,
) handler {
	return func(r *request) (response, error) {
		found, next, err := pageOf(r, what, read)
		if err != nil {
			return response{}, err
		}
		items := make([]S, len(found))
		for i, v := range found {
			items[i] = show(r, v)
		}
		return list(items, next), nil
	}
}

// getOf makes the handler that reads what the path names, a resource of the organization.
func getOf[T, S any](
	resource string, read func(ctx context.Context, org, id string) (T, error), show func(*request, T) S,
) handler {
	return func(r *request) (response, error) {
		if err := r.query.done(); err != nil {
			return response{}, err
		}
		v, err := read(r.ctx, r.who.org, r.param)
		if err != nil {
			return response{}, about(resource, err)
		}
		return answerOK(show(r, v)), nil
	}
}

// whole shows a document as it is stored.
func whole[T any](_ *request, v T) T { return v }

// stamp is the request's time as documents keep it.
func (r *request) stamp() time.Time { return r.now.UTC().Truncate(time.Millisecond) }

// printable returns the part of a caller's text that can be echoed.
func printable(s string) string {
	s = strings.ToValidUTF8(s, "�")
	if len(s) > condition.MaxName {
		s = strings.ToValidUTF8(s[:condition.MaxName], "") + "…"
	}
	return s
}
