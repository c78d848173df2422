package console

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// maxPages bounds the pages that the console reads to show what waits, oldest first.
const maxPages = 10

// all reads pages of a list until it ends, at most [maxPages]. Some lists are plain arrays, whose next
// page is in a header.
func all[T any](v *visit, path string, q url.Values) (items []T, more bool, err error) {
	q.Set("limit", "100")
	for range maxPages {
		var text []byte
		header, err := v.exchange(http.MethodGet, with(path, q), nil, &text)
		if err != nil {
			return nil, false, err
		}
		var page list[T]
		if err := page.read(text); err != nil {
			return nil, false, fmt.Errorf("decoding the list of %s: %w", path, err)
		}
		items = append(items, page.Data...)
		next := cmp.Or(page.More(), nextCursor(header))
		if next == "" {
			return items, false, nil
		}
		q.Set("cursor", next)
	}
	return items, true, nil
}

// nextCursor returns the cursor in a Link header, which a list has that is a plain array.
func nextCursor(h http.Header) string {
	target, rel, _ := strings.Cut(strings.TrimPrefix(h.Get("Link"), "<"), ">")
	to, err := url.Parse(target)
	if err != nil || !strings.Contains(rel, `rel="next"`) {
		return ""
	}
	return to.Query().Get("cursor")
}

func (v *visit) approvals() error {
	var body struct {
		Waiting, Decided []*approvalRow
		More             bool
		Older            string
		Lacks            string
	}
	var err error
	now := v.c.cfg.Now()
	body.Waiting, body.More, err = all[*approvalRow](v, under("approvals"), url.Values{"status": {"pending"}})
	if body.Lacks, err = lacks(err); err != nil {
		return err
	}
	slices.Reverse(body.Waiting)
	for _, a := range body.Waiting {
		a.Left = a.ExpiresAt.Sub(now)
	}
	if body.Lacks == "" {
		var page list[*approvalRow]
		q := url.Values{"limit": {"50"}}
		if at := v.r.URL.Query().Get("cursor"); at != "" {
			q.Set("cursor", at)
		}
		if err := v.get(with(under("approvals"), q), &page); err != nil {
			return err
		}
		body.Decided = slices.DeleteFunc(page.Data, func(a *approvalRow) bool { return a.Status == "pending" })
		if page.More() != "" {
			body.Older = with("/console/approvals", url.Values{"cursor": {page.More()}})
		}
	}
	return v.show("approvals", "Approvals", "Approvals", body)
}

func (v *visit) approval() error {
	var body struct {
		It     *approvalRow
		Recent part[list[*row]]         // what the agent did in the last hour
		Like   part[list[*approvalRow]] // how like requests were decided
	}
	id := v.r.PathValue("id")
	if err := v.get(under("approvals", id), &body.It); err != nil {
		return err
	}
	a, now := body.It, v.c.cfg.Now()
	a.Left = a.ExpiresAt.Sub(now)
	if err := body.Recent.read(v, with(under("authorizations"), url.Values{
		"agent_id": {a.AgentID}, "from": {now.Add(-time.Hour).UTC().Format(time.RFC3339)}, "limit": {"20"},
	})); err != nil {
		return err
	}
	if err := body.Like.read(v, with(under("approvals"), url.Values{
		"agent_id": {a.AgentID}, "action_type": {a.ActionType}, "limit": {"20"},
	})); err != nil {
		return err
	}
	body.Like.It.Data = slices.DeleteFunc(body.Like.It.Data, func(o *approvalRow) bool {
		return o.ApprovalID == a.ApprovalID
	})
	return v.show("approval", "Approval: "+short(a.ActionType), "Approvals", body)
}

// judge approves, rejects or revokes. A form that stops something is taken even if its page
// was stale.
func (v *visit) judge() error {
	if err := v.form(); err != nil {
		return err
	}
	id, form := v.r.PathValue("id"), v.r.PostForm
	ruling := map[string]any{"status": form.Get("verdict")}
	if form.Get("verdict") == "approved" {
		var a approvalRow
		if err := v.get(under("approvals", id), &a); err != nil {
			return err
		}
		if err := unchanged("The request", form.Get("revision"), a.State()); err != nil {
			return err
		}
	}
	if comment := form.Get("comment"); comment != "" {
		ruling["comment"] = comment
	}
	err := v.do(http.MethodPatch, under("approvals", id), ruling, nil)
	if err := v.unsure("the verdict is recorded", err); err != nil {
		return err
	}
	return v.to(pageOf("approvals", id))
}

// State is what a form is about: the status, and the digest of exactly what is approved.
func (a *approvalRow) State() string { return a.Status + ", " + a.IntentDigest }
