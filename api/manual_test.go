package api

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"writ.example/writ/api/manual"
)

// TestManual_IsServed reads the index, each page that it links to, and a search.
func TestManual_IsServed(t *testing.T) {
	h := start(t)
	index := string(h.do("GET", "/docs", "", nil).wantStatus(http.StatusOK).body)
	for _, page := range []string{"/docs/concepts", "/docs/policies", "/docs/backup", "/docs/errors"} {
		if !strings.Contains(index, `href="`+page+`"`) {
			t.Errorf("GET /docs does not link to %s", page)
		}
		r := h.do("GET", page, "", nil).wantStatus(http.StatusOK)
		if got := r.header.Get("Content-Security-Policy"); got != manual.Policy {
			t.Errorf("GET %s: policy %s, want %s", page, got, manual.Policy)
		}
	}
	h.do("GET", "/docs/nowhere", "", nil).wantProblem(http.StatusNotFound, codeNotFound)
	h.do("GET", "/docs/README", "", nil).wantProblem(http.StatusNotFound, codeNotFound)
	if found := string(h.do("GET", "/docs?q=token+bucket", "", nil).wantStatus(http.StatusOK).body); !strings.Contains(found, `href="/docs/capacity#rate-limits"`) {
		t.Errorf("a search for a token bucket does not find it:\n%s", found)
	}
	h.do("GET", "/docs?q=+", "", nil).wantStatus(http.StatusOK)
}

// TestManual_HostileQueries searches for texts that want to be more than texts.
func TestManual_HostileQueries(t *testing.T) {
	h := start(t)
	for _, q := range []string{`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, "a\x00b", "\u202egpj.exe", `{{.}}`, `(((((`} {
		page := string(h.do("GET", "/docs?q="+url.QueryEscape(q), "", nil).wantStatus(http.StatusOK).body)
		for _, raw := range []string{"<script", "<img", "\x00", "\u202e"} {
			if strings.Contains(page, raw) {
				t.Errorf("the search for %q answers with %q in it", q, raw)
			}
		}
	}
	h.do("GET", "/docs?q="+strings.Repeat("a", manual.MaxQuery+1), "", nil).wantField("q")
	h.do("GET", "/docs?q=%ff", "", nil).wantField("q")
	h.do("GET", "/docs?q=a&q=b", "", nil).wantField("q")
	h.do("GET", "/docs?query=a", "", nil).wantField("query")
	h.do("GET", "/docs/concepts?q=a", "", nil).wantField("q")
}

// TestSite_LinksToTheManual checks that people find the pages from the others.
func TestSite_LinksToTheManual(t *testing.T) {
	h := start(t)
	for _, path := range []string{"/", "/openapi", "/v1/docs", "/console/login"} {
		if page := string(h.do("GET", path, "", nil).wantStatus(http.StatusOK).body); !strings.Contains(page, `href="/docs"`) {
			t.Errorf("GET %s does not link to /docs", path)
		}
	}
}
