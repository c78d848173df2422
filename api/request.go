package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"writ.example/writ/api/operator"
	"writ.example/writ/decision/admission"
	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/storage"
)

// request is one call as a handler sees it. Fiber owns the memory of body, which is invalid after
// the handler returns. The request owns all other memory.
type request struct {
	ctx   context.Context
	now   time.Time
	id    []byte // the request id
	who   principal
	param string // the path's parameter, percent-decoded
	query query
	body  []byte // memory of Fiber
	// signature is the header that signs the body, on a route with the trait signed.
	signature string
	// ifMatch and ifNoneMatch are the headers If-Match and If-None-Match, on a route with the trait
	// conditional.
	ifMatch, ifNoneMatch string
	// lastEventID is the header Last-Event-ID, on a route with the trait resumable.
	lastEventID string
	// unfit is the error of a request that cannot become a stream of intents, on a route with the
	// trait upgrades. lines says that the lines of the stream are those of its body.
	unfit error
	lines bool
	// slot is the request's share of the processors. A handler leaves the slot while it waits for
	// something else.
	slot admission.Slot
	// res is the answer, unless the handler returns an error.
	res response
}

// response is the answer of a handler. The wrapper encodes it.
type response struct {
	status int
	// body is encoded as JSON, unless it is a fixed body, an appender or a sender. Nil sends no body.
	body any
	// next is the cursor of the next page of a list. It becomes a Link header.
	next string
	// etag is the ETag header. An empty header is not sent.
	etag string
	// replayed says that this repeats the answer to an earlier request. expired says that the
	// receipt in a repeated answer has expired.
	replayed, expired bool
	// retryAfter is the Retry-After header, in seconds. 0 sends no header.
	retryAfter int
}

// answer sets the answer and returns nil, so that a handler can end with it.
func (r *request) answer(status int, body any) error {
	r.res.status, r.res.body = status, body
	return nil
}

func (r *request) ok(body any) error { return r.answer(http.StatusOK, body) }

func (r *request) created(body any) error { return r.answer(http.StatusCreated, body) }

// part answers with a part of a list. next is the cursor of the next part. It is empty for the last
// part.
func (r *request) part(body any, next string) error {
	r.res.next = next
	return r.ok(body)
}

// appender is a body that encodes itself without reflection.
type appender interface {
	appendJSON(dst []byte) []byte
}

// page is the body of a list that is not a plain array.
type page[T any] struct {
	Data       []T     `json:"data"`
	NextCursor *string `json:"next_cursor"` // null if this is the last page
}

func list[T any](r *request, items []T, next string) error {
	body := page[T]{Data: items}
	if next != "" {
		body.NextCursor = &next
	}
	return r.part(body, next)
}

// query holds the query parameters of a request. A handler takes the parameters that it knows.
// Every parameter that is left is refused: a misspelt filter must not silently select everything.
type query struct {
	params map[string]string
	err    error // the first mistake, which done returns
}

// parseQuery reads a raw query string. No name may occur twice.
func parseQuery(s string) (query, error) {
	values, err := url.ParseQuery(s)
	if err != nil {
		return query{}, invalid("query", "is not a well-formed query string")
	}
	params := make(map[string]string, len(values))
	for name, vs := range values {
		if len(vs) > 1 {
			return query{}, invalid(name, "is given %d times", len(vs))
		}
		params[name] = vs[0]
	}
	return query{params: params}, nil
}

// take returns a parameter and removes it from q.
func (q *query) take(name string) (value string, ok bool) {
	value, ok = q.params[name]
	delete(q.params, name)
	return value, ok
}

func (q *query) refuse(err error) { q.err = cmp.Or(q.err, err) }

// done returns the first mistake, or nil. A parameter that was not taken is a mistake.
func (q *query) done() error {
	for name := range q.params {
		q.refuse(invalid(printable(name), "is not a query parameter of this endpoint"))
	}
	return q.err
}

const defaultLimit = 50

// number takes an integer from 1 to most. It returns otherwise if there is no such parameter.
func (q *query) number(name string, otherwise, most int) int {
	text, ok := q.take(name)
	if !ok {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		q.refuse(invalid(name, "must be an integer from 1 to %d", most))
	}
	return n
}

// page takes the parameters limit and cursor.
func (q *query) page() storage.Page {
	p := storage.Page{Limit: q.number("limit", defaultLimit, storage.MaxPage)}
	s, ok := q.take("cursor")
	if p.After = s; ok && (s == "" || len(s) > condition.MaxText) {
		q.refuse(storage.ErrBadCursor)
	}
	return p
}

func (q *query) text(name string) string {
	s, ok := q.take(name)
	if !ok {
		return ""
	}
	if err := operator.CheckName(s, condition.MaxLabel); err != nil {
		q.refuse(invalid(name, "%v", err))
	}
	return s
}

// timestamp takes an RFC 3339 time. It returns the zero time if there is no such parameter.
func (q *query) timestamp(name string) (t time.Time) {
	if s, ok := q.take(name); ok {
		var err error
		if t, err = time.Parse(time.RFC3339, s); err != nil {
			q.refuse(invalid(name, "must be an RFC 3339 time such as 2026-11-21T10:00:00Z; a + in it is written %%2B"))
		}
	}
	return t
}

// seconds takes a duration in whole seconds, up to most.
func (q *query) seconds(name string, most int) time.Duration {
	text, ok := q.take(name)
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		q.refuse(invalid(name, "must be a number of seconds from 0 to %d", most))
	}
	return time.Duration(n) * time.Second
}

// onlyPage takes limit and cursor. It refuses every other parameter.
func (r *request) onlyPage() (storage.Page, error) {
	p := r.query.page()
	return p, r.query.done()
}

// pageOf reads a page of an organization's resources. It refuses every other query parameter. what
// names the resources in errors.
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

// listOf returns the handler for a list of an organization's resources. what names the resources in
// errors. show converts a resource to the form of the answer.
func listOf[T, S any](
	what string, read func(ctx context.Context, org string, p storage.Page) ([]T, string, error),
	show func(*request, T) S,
) handler {
	return func(r *request) error {
		found, next, err := pageOf(r, what, read)
		if err != nil {
			return err
		}
		items := make([]S, len(found))
		for i, v := range found {
			items[i] = show(r, v)
		}
		return list(r, items, next)
	}
}

// getOf returns the handler that reads one resource of the organization by the id in the path.
func getOf[T, S any](
	resource string, read func(ctx context.Context, org, id string) (T, error), show func(*request, T) S,
) handler {
	return func(r *request) error {
		if err := r.query.done(); err != nil {
			return err
		}
		r.slot.Pause()
		v, err := read(r.ctx, r.who.org, r.param)
		r.slot.Resume()
		if err != nil {
			return about(resource, err)
		}
		return r.ok(show(r, v))
	}
}

// documentOf returns the handler that reads one document of the organization. Its entity tag is what
// If-Match of a change compares: see [entityTag].
func documentOf[T any](
	resource string, read func(ctx context.Context, org, id string) (*T, error), changed func(*T) time.Time,
) handler {
	return getOf(resource, read, func(r *request, v *T) *T {
		r.res.etag = entityTag(changed(v))
		return v
	})
}

func changedRule(v *engine.Rule) time.Time       { return v.UpdatedAt }
func changedList(v *engine.List) time.Time       { return v.UpdatedAt }
func changedLibrary(v *engine.Library) time.Time { return v.UpdatedAt }
func changedAgent(v *engine.Agent) time.Time     { return v.UpdatedAt }

// plan returns the plan of the request's organization.
func (s *Server) plan(r *request) (engine.Plan, error) {
	return s.decisions.Plans.Of(r.ctx, &r.slot, r.who.org)
}

// asStored shows a document as it is stored.
func asStored[T any](_ *request, v T) T { return v }

// stamp returns the time of the request in the precision and zone of stored documents.
func (r *request) stamp() time.Time { return r.now.UTC().Truncate(time.Millisecond) }

// printable returns the part of a caller's text that is safe to repeat in an answer.
func printable(s string) string {
	s = strings.ToValidUTF8(s, "�")
	if len(s) > condition.MaxName {
		s = strings.ToValidUTF8(s[:condition.MaxName], "") + "…"
	}
	return s
}
