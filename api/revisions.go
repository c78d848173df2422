package api

import (
	"context"
	"strconv"
	"time"

	"writ.example/writ/storage"
	"writ.example/writ/storage/registry"
)

// revisionItem is a revision of a rule, a list or a library. Document is a summary if the document is
// large.
type revisionItem[T any] struct {
	Revision int64 `json:"revision"`
	// ReplacedAt is absent in the current revision. Deleted says that no other revision followed.
	ReplacedAt time.Time `json:"replaced_at,omitzero"`
	Deleted    bool      `json:"deleted,omitzero"`
	Document   T         `json:"document"`
}

// revisedOf returns the handler that reads one document of the organization, or one of its revisions.
func revisedOf[T any](
	resource string, read func(ctx context.Context, org, id string) (*T, error),
	at func(ctx context.Context, org, id string, revision int64) (*T, error), changed func(*T) time.Time,
) handler {
	return func(r *request) error {
		from := read
		if n := r.query.revision(); n > 0 {
			from = revisionOf(n, at)
		}
		return documentOf(resource, from, changed)(r)
	}
}

// revisionOf returns the function that reads a revision of a document.
func revisionOf[T any](
	n int64, at func(ctx context.Context, org, id string, revision int64) (*T, error),
) func(ctx context.Context, org, id string) (*T, error) {
	return func(ctx context.Context, org, id string) (*T, error) { return at(ctx, org, id, n) }
}

// revision takes the number of a revision. It returns 0 if there is no such parameter.
func (q *query) revision() int64 {
	text, ok := q.take("revision")
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		q.refuse(invalid("revision", "must be an integer from 1, such as the rule_revision of a row"))
	}
	return n
}

// revisionsOf returns the handler that lists the revisions of a document that are kept, newest first.
func revisionsOf[T, S any](
	resource string,
	read func(ctx context.Context, org, id string, p storage.Page) ([]registry.Revised[T], string, error),
	show func(*request, *T) S,
) handler {
	return func(r *request) error {
		page, err := r.onlyPage()
		if err != nil {
			return err
		}
		r.slot.Pause()
		found, next, err := read(r.ctx, r.who.org, r.param, page)
		r.slot.Resume()
		if err != nil {
			return about(resource, err)
		}
		items := make([]revisionItem[S], len(found))
		for i, v := range found {
			items[i] = revisionItem[S]{v.Revision, v.ReplacedAt, v.Removed, show(r, v.Document)}
		}
		return list(r, items, next)
	}
}
