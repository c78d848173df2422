package system

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine"
)

// TestWorkspace_OverwritesNoLaterChangeOfAList checks a list that somebody else changed after the
// plan. A push must not overwrite that change.
func TestWorkspace_OverwritesNoLaterChangeOfAList(t *testing.T) {
	const path = "/v1/lists/payees"
	for name, tc := range map[string]struct {
		before bool // whether the list existed at the time of the plan
		text   string
		args   []string
	}{
		"made":    {text: "name: payees\nvalues: [acme-gmbh]\n"},
		"changed": {before: true, text: "name: payees\nvalues: [acme-gmbh]\n"},
		"deleted": {before: true, text: "name: others\nvalues: []\n", args: []string{"--prune"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuthor(t)
			c := newClient(t, a.url, a.token)
			put := func(status int, values ...string) {
				t.Helper()
				if err := c.call(http.MethodPut, path, object{"values": values}, status, nil); err != nil {
					t.Error(err)
				}
			}
			status := http.StatusCreated
			if tc.before {
				put(http.StatusCreated, "globex-ag")
				status = http.StatusOK
			}
			a.write("lists.yaml", tc.text)
			var once sync.Once
			a.url = interposed(t, a.url, func(r *http.Request) bool { return r.URL.Path == path && r.Method != http.MethodGet }, func() {
				once.Do(func() { put(status, "umbrella") })
			})
			if _, errs := a.writ(exitFailed, append([]string{"push", "--yes"}, tc.args...)...); !strings.Contains(errs, "list_changed") {
				t.Errorf("the push prints %s", errs)
			}
			var got engine.List
			c.do(t, http.MethodGet, path, nil, http.StatusOK, &got)
			if diff := cmp.Diff([]string{"umbrella"}, got.Values); diff != "" {
				t.Errorf("the values (-want +got):\n%s", diff)
			}
		})
	}
}
