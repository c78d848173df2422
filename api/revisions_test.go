package api

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine"
)

// revisionPage is a page of revisions of a rule.
type revisionPage = page[revisionItem[engine.Rule]]

// TestRevisions checks that a rule, a list and a library keep the revisions under which something was
// decided, also after they were deleted.
func TestRevisions(t *testing.T) {
	h := start(t)
	h.register(acme)
	token := h.operator(acme)
	id := h.rule(acme, `{"action_type":"none"}`, `{"decision":"deny"}`)
	path := "/v1/rules/" + id
	change := func(priority int) {
		t.Helper()
		h.do("PATCH", path, token, obj{"priority": priority}).wantStatus(http.StatusOK)
	}
	change(1) // nothing was decided under the first revision
	h.evaluate(acme, intent()).wantStatus(http.StatusOK)
	change(2)
	change(3)
	h.evaluate(acme, intent()).wantStatus(http.StatusOK)
	h.do("DELETE", path, token, nil).wantStatus(http.StatusNoContent)
	h.do("GET", path, token, nil).wantStatus(http.StatusNotFound)

	var all revisionPage
	h.do("GET", path+"/revisions", token, nil).wantStatus(http.StatusOK).into(&all)
	if len(all.Data) != 2 || all.Data[0].Document.Priority != 3 || !all.Data[0].Deleted || all.Data[1].Document.Priority != 1 || all.Data[1].Deleted {
		t.Fatalf("the revisions are %+v, want those of priority 3 and 1", all.Data)
	}
	for i, want := range all.Data {
		got := read[engine.Rule](h.do("GET", path+"?revision="+strconv.FormatInt(want.Revision, 10), token, nil).wantStatus(http.StatusOK))
		if got != want.Document || want.ReplacedAt.IsZero() {
			t.Errorf("revision %d is %+v, want %+v", i, got, want)
		}
	}
	var first, second revisionPage
	h.do("GET", path+"/revisions?limit=1", token, nil).wantStatus(http.StatusOK).into(&first)
	h.do("GET", path+"/revisions?limit=1&cursor="+*first.NextCursor, token, nil).wantStatus(http.StatusOK).into(&second)
	if len(second.Data) != 1 || second.Data[0] != all.Data[1] || second.NextCursor != nil {
		t.Errorf("the second page is %+v, want %+v", second, all.Data[1])
	}
	h.do("GET", path+"?revision=1000000", token, nil).wantStatus(http.StatusNotFound)
	for _, bad := range []string{"0", "-1", "x", "1.5", ""} {
		h.do("GET", path+"?revision="+bad, token, nil).wantField("revision")
	}
	key, _ := h.key(acme, "policy:read")
	h.do("GET", path+"/revisions", key, nil).wantProblem(http.StatusForbidden, codeInsufficientScope)
	number := strconv.FormatInt(all.Data[0].Revision, 10)
	h.do("GET", path+"?revision="+number, h.operator(rival), nil).wantStatus(http.StatusNotFound)
}

// TestRevisions_ListsAndLibraries checks that lists and libraries keep their revisions as rules do.
func TestRevisions_ListsAndLibraries(t *testing.T) {
	h := start(t)
	h.register(acme)
	token := h.operator(acme)
	for path, bodies := range map[string][]obj{
		"/v1/lists/l": {{"values": []string{"a"}}, {"values": []string{"a", "b"}}},
		"/v1/libraries/l": {{"modules": obj{"a.rego": "package lib.l\n\nx := 1\n"}},
			{"modules": obj{"a.rego": "package lib.l\n\nx := 2\n", "b.rego": "package lib.l\n\ny := 2\n"}}},
	} {
		var want []any
		for i, body := range bodies {
			h.do("PUT", path, token, body).wantStatus([]int{http.StatusCreated, http.StatusOK}[i])
			h.evaluate(acme, intent()).wantStatus(http.StatusOK)
			want = append(want, read[any](h.do("GET", path, token, nil).wantStatus(http.StatusOK)))
		}
		var all page[revisionItem[namedSummary]]
		h.do("GET", path+"/revisions", token, nil).wantStatus(http.StatusOK).into(&all)
		if len(all.Data) != 2 || all.Data[0].Document.Count != 2 || !all.Data[0].ReplacedAt.IsZero() || all.Data[1].Document.Count != 1 {
			t.Fatalf("the revisions of %s are %+v, want two", path, all.Data)
		}
		h.do("DELETE", path, token, nil).wantStatus(http.StatusNoContent)
		for i, v := range all.Data {
			got := read[any](h.do("GET", path+"?revision="+strconv.FormatInt(v.Revision, 10), token, nil).wantStatus(http.StatusOK))
			if diff := cmp.Diff(want[1-i], got); diff != "" {
				t.Errorf("revision %d of %s (-then +later):\n%s", i, path, diff)
			}
		}
	}
}
