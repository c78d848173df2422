package workspace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/authoring/document"
	"writ.example/writ/engine"
)

// PushOptions says what a push may do in addition to adding and changing documents.
type PushOptions struct {
	// Prune deletes rules, lists and libraries that only the server has. It does not delete policies, because
	// the server deletes none.
	Prune bool
	// Force overwrites documents that were changed on the server since they were pulled.
	Force bool
	Now   func() time.Time
}

// Steps returns the changes that a push makes on the server, in order: lists, libraries, rules,
// policies, then deletions. A library comes after those that it imports. Deletions come last, so that
// a rule that forbids stays as long as possible. A library is deleted after what imports it. If
// documents were changed on the server since they were pulled, Steps returns an error that names
// them. If rules use a missing list, the error is a *[document.Error] that names these rules.
func (p *Plan) Steps(o PushOptions) (steps []Change, err error) {
	if err := p.unknownLists(o); err != nil {
		return nil, err
	}
	var lists, libraries, policies, deleted []Change
	var behind []error
	for _, c := range p.Changes {
		switch {
		case c.State == Stale && !o.Force:
		case c.State == Diverged && !o.Force:
			behind = append(behind,
				fmt.Errorf(
					"%s was changed on the server since it was pulled: pull first, or overwrite that with --force",
					c.Title(),
				))
		case c.State == Missing && (c.Kind == document.Policy || !o.Prune):
		case c.State == Missing:
			deleted = append(deleted, c)
		case c.Kind == document.Policy:
			c.NextVersion = max(c.NextVersion, c.Version+1)
			policies = append(policies, c)
		case c.Kind == document.List:
			lists = append(lists, c)
		case c.Kind == document.Library:
			libraries = append(libraries, c)
		default:
			steps = append(steps, c)
		}
	}
	sortByImports(libraries, p.w.compiled)
	p.server.sortDeleted(deleted)
	return slices.Concat(lists, libraries, steps, policies, deleted), errors.Join(behind...)
}

// Push makes the steps and calls done after each step. Then it adds to the files the members that
// the server has set. If a symbolic link keeps it from writing them, it pushes nothing. It returns
// the names of the changed files. Each step is atomic. After a failure the earlier steps remain, and
// a new plan has the remaining steps.
func (p *Plan) Push(
	ctx context.Context, call Call, steps []Change, o PushOptions, done func(Change),
) (written []string, err error) {
	pushed := p.same
	files := slices.Collect(maps.Keys(facts(pushed)))
	for _, c := range steps {
		switch {
		case c.local == nil:
		case c.Kind == document.Library:
			files = append(files, c.local.record())
		default:
			files = append(files, c.local.doc.Name())
		}
	}
	if err := p.w.checkWritable(files); err != nil {
		return nil, err
	}
	for _, c := range steps {
		if err = c.push(ctx, call, o.Now); err != nil {
			err = fmt.Errorf("%s: %w", c.Title(), err)
			break
		}
		done(c)
		if c.local != nil {
			pushed = append(pushed, c)
		}
	}
	written, failed := p.w.rewrite(facts(pushed), nil, libraryFacts(pushed))
	return written, errors.Join(err, failed)
}

// push makes one step and stores the server's new document in c.
func (c *Change) push(ctx context.Context, call Call, now func() time.Time) error {
	switch {
	case c.Kind == document.List:
		return c.pushList(ctx, call)
	case c.Kind == document.Library:
		return c.pushLibrary(ctx, call)
	case c.State == Missing:
		_, err := call(ctx, c.request(http.MethodDelete, nil, http.StatusNoContent), nil)
		return err
	case c.Kind == document.Policy:
		next := *c.local.policy
		if next.Version != c.NextVersion {
			next.Version, next.UpdatedAt = c.NextVersion, now().UTC().Truncate(time.Second)
		}
		c.policy = &next
		_, err := call(ctx, Request{
			Method: http.MethodPost, Path: "/v1/policies/register", Body: map[string]any{"policy": &next},
			Want: http.StatusCreated,
		}, nil)
		return err
	case c.State == Added:
		return c.create(ctx, call)
	}
	return c.change(ctx, call)
}

// pushList stores the file's list on the server. If no file has the list, it deletes the list
// there.
func (c *Change) pushList(ctx context.Context, call Call) error {
	r := Request{Path: listPath(c.Name)}
	if c.list != nil {
		r.IfMatch = string(encode(c.list.UpdatedAt))
	}
	if c.local != nil {
		r.Body = listContent(c.local.list)
		c.list = new(engine.List)
	}
	return c.put(ctx, call, r, c.list)
}

// put stores a document that has a name, or deletes it if no file has it. stored gets the server's
// new document. r has an If-Match if the server has the document.
func (c *Change) put(ctx context.Context, call Call, r Request, stored any) error {
	r.Method, r.Want = http.MethodPut, http.StatusOK
	if r.IfMatch == "" {
		r.IfNoneMatch, r.Want = "*", http.StatusCreated
	}
	if c.local == nil {
		r.Method, r.Want, stored = http.MethodDelete, http.StatusNoContent, nil
	}
	_, err := call(ctx, r, stored)
	return err
}

// request returns a request about the server's rule. The request has an If-Match: it fails if the
// rule changed since it was read.
func (c *Change) request(method string, body any, want int) Request {
	return Request{
		Method: method, Path: "/v1/rules/" + url.PathEscape(c.rule.ID), Body: body,
		IfMatch: string(encode(c.rule.UpdatedAt)), Want: want,
	}
}

// change replaces the server's rule by the file's rule.
func (c *Change) change(ctx context.Context, call Call) error {
	changed := new(engine.Rule)
	_, err := call(ctx, c.request(http.MethodPatch, ruleBody(c.local.rule), http.StatusOK), changed)
	c.rule = changed
	return err
}

// create creates a rule on the server. The server creates every rule as active. So an inactive
// rule is first created with a condition that never holds, and then changed.
func (c *Change) create(ctx context.Context, call Call) error {
	body := ruleBody(c.local.rule)
	delete(body, "isActive")
	if !c.local.rule.IsActive {
		body["condition"] = neverHolds
	}
	c.rule = new(engine.Rule)
	_, err := call(ctx, Request{Method: http.MethodPost, Path: "/v1/rules", Body: body, Want: http.StatusCreated},
		c.rule)
	if err != nil || c.local.rule.IsActive {
		return err
	}
	return c.change(ctx, call)
}

// neverHolds is a condition that is false for every intent.
const neverHolds = `{"$nor":[{}]}`

// ruleBody returns the members of a rule that an author writes.
func ruleBody(r *engine.Rule) map[string]any {
	return map[string]any{
		"name": r.Name, "description": r.Description, "condition": r.Condition, "action": r.Action,
		"priority": r.Priority, "isActive": r.IsActive,
	}
}

// facts returns the edits that add to the files the members that the server has set. If a rule's
// id or a list's times come from another server, the file keeps them.
func facts(all []Change) map[string][]document.Edit {
	edits := make(map[string][]document.Edit)
	for _, c := range all {
		l := c.local
		var members []member
		switch {
		case c.library != nil:
			continue
		case c.policy != nil && l.policy.Version < c.policy.Version:
			members = []member{{"version", encode(c.policy.Version)}, {"updated_at", encode(c.policy.UpdatedAt)}}
		case c.rule != nil && l.rule.ID == "":
			members = []member{{"id", encode(c.rule.ID)}, {"createdAt", encode(c.rule.CreatedAt)},
				{"updatedAt", encode(c.rule.UpdatedAt)}}
		case c.rule != nil && l.rule.ID == c.rule.ID && !l.rule.UpdatedAt.IsZero():
			members = []member{{"updatedAt", encode(c.rule.UpdatedAt)}}
		case c.list != nil && !l.list.UpdatedAt.Equal(c.list.UpdatedAt) &&
			(l.list.CreatedAt.IsZero() || l.list.CreatedAt.Equal(c.list.CreatedAt)):
			members = []member{{"version", encode(c.list.Version)}, {"created_at", encode(c.list.CreatedAt)},
				{"updated_at", encode(c.list.UpdatedAt)}}
		default:
			continue
		}
		edits[l.doc.Name()] = append(edits[l.doc.Name()],
			document.Edit{Index: l.index, JSON: with(l.doc.Written(), members)})
	}
	return edits
}

type member struct {
	name  string
	value jsontext.Value
}

// with returns an object in which the given members are set.
func with(object jsontext.Value, members []member) jsontext.Value {
	all := decode[map[string]jsontext.Value](object)
	for _, m := range members {
		all[m.name] = m.value
	}
	return encode(all)
}

// atEnd is the index of a document that is not yet in its file.
const atEnd = math.MaxInt
