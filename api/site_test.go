package api

import (
	"bytes"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"writ.example/writ/authoring/document/schema"
)

func TestSchemas_AreServed(t *testing.T) {
	h := start(t)
	h.do("GET", "/schemas/role.schema.json", "", nil).wantProblem(http.StatusNotFound, codeNotFound)
	served := func(kind, contentType string, want []byte, err error) {
		t.Helper()
		must(t, err)
		r := h.do("GET", "/schemas/"+kind+".schema.json", "", nil).wantStatus(http.StatusOK)
		if !bytes.Equal(r.body, want) || r.header.Get("Content-Type") != contentType || r.header.Get("ETag") == "" {
			t.Errorf("GET the schema of %s = %d bytes, headers %v, want %d bytes of %s that can be cached", kind, len(r.body), r.header, len(want), contentType)
		}
	}
	for _, kind := range schema.Kinds {
		want, err := schema.JSON(kind)
		served(kind, "application/schema+json", want, err)
	}
	for _, kind := range schema.RegoKinds {
		want, err := schema.Rego(kind, false)
		contentType := "application/schema+json"
		if kind == "rego-capabilities" {
			contentType = "application/json"
		}
		served(kind, contentType, want, err)
	}
}

func TestSite_PagesLoadNothingFromElsewhereAndRunNoInlineScript(t *testing.T) {
	h := start(t)
	files := regexp.MustCompile(`(?:src|href)="([^"]*)"`)
	inline := regexp.MustCompile(`(?i)<script(?:\s[^>]*)?>[^<]|\son\w+=|\sstyle=|<style|javascript:`)
	for _, path := range []string{"/", "/openapi", "/v1/docs"} {
		r := h.do("GET", path, "", nil).wantStatus(http.StatusOK)
		page := string(r.body)
		if found := inline.FindString(page); found != "" {
			t.Errorf("GET %s has %q, which its policy refuses", path, found)
		}
		linked := files.FindAllStringSubmatch(page, -1)
		if len(linked) < 4 {
			t.Errorf("GET %s links %q, want its files and the other pages", path, linked)
		}
		for _, link := range linked {
			if !strings.HasPrefix(link[1], "/") || strings.HasPrefix(link[1], "//") {
				t.Errorf("GET %s links %s, want paths of this server only", path, link[1])
				continue
			}
			h.do("GET", link[1], "", nil).wantStatus(http.StatusOK)
		}
	}
}

func TestSite_PoliciesAllowScriptsOfOurFilesOnly(t *testing.T) {
	h := start(t)
	for _, path := range []string{"/", "/openapi", "/v1/docs"} {
		directives := make(map[string]string)
		policy := h.do("GET", path, "", nil).header.Get("Content-Security-Policy")
		for d := range strings.SplitSeq(policy, ";") {
			name, sources, _ := strings.Cut(strings.TrimSpace(d), " ")
			directives[name] = sources
		}
		for name, want := range map[string]string{
			"default-src": "'none'", "script-src": "'self'", "base-uri": "'none'", "form-action": "'none'", "frame-ancestors": "'none'",
		} {
			if got := directives[name]; got != want {
				t.Errorf("GET %s: %s %s, want %s", path, name, got, want)
			}
		}
		if strings.Contains(policy, "http") || strings.Contains(policy, "*") || strings.Contains(policy, "unsafe-eval") {
			t.Errorf("GET %s: policy %s, want no other server and no eval", path, policy)
		}
	}
	if landing := h.do("GET", "/", "", nil).header.Get("Content-Security-Policy"); strings.Contains(landing, "unsafe") {
		t.Errorf("GET /: policy %s, want nothing unsafe", landing)
	}
}

// TestSite_A304HasTheHeadersOfIts200 checks that a 304 has the same headers as the 200. A cache
// replaces its stored headers with the headers of the 304 (RFC 9111, section 3.2). With a different
// Content-Security-Policy, the browser would block the page's own files after a reload.
func TestSite_A304HasTheHeadersOfIts200(t *testing.T) {
	h := start(t)
	for _, rt := range append(h.server.routes(), h.server.assetRoutes()...) {
		first := h.do("GET", strings.Replace(rt.path, ":"+rt.param, "x", 1), "", nil)
		etag := first.header.Get("ETag")
		if rt.method != http.MethodGet || etag == "" {
			continue
		}
		same := map[string]*reply{
			"304":            h.do("GET", rt.path, "", nil, "If-None-Match", etag).wantStatus(http.StatusNotModified),
			"304 to weak":    h.do("GET", rt.path, "", nil, "If-None-Match", "W/"+etag).wantStatus(http.StatusNotModified),
			"304 to any":     h.do("GET", rt.path, "", nil, "If-None-Match", "*").wantStatus(http.StatusNotModified),
			"304 to HEAD":    h.do("HEAD", rt.path, "", nil, "If-None-Match", etag).wantStatus(http.StatusNotModified),
			"HEAD":           h.do("HEAD", rt.path, "", nil).wantStatus(http.StatusOK),
			"200 to a range": h.do("GET", rt.path, "", nil, "Range", "bytes=0-9").wantStatus(http.StatusOK),
			"200 to another": h.do("GET", rt.path, "", nil, "If-None-Match", `"other"`).wantStatus(http.StatusOK),
		}
		for what, r := range same {
			for name := range first.header {
				if name == "Date" || name == "X-Request-Id" || name == "Ratelimit" || r.status == http.StatusNotModified && strings.HasPrefix(name, "Content-") && name != "Content-Security-Policy" {
					continue
				}
				if got, want := r.header.Get(name), first.header.Get(name); got != want {
					t.Errorf("%s of %s: %s %q, want %q as the first 200 had", what, rt.path, name, got, want)
				}
			}
		}
	}
}

func TestSite_BrowsersFindAnIconAtTheRoot(t *testing.T) {
	r := start(t).do("GET", "/favicon.ico", "", nil).wantStatus(http.StatusOK)
	if got := http.DetectContentType(r.body); got != "image/x-icon" || r.header.Get("Content-Type") != got {
		t.Errorf("GET /favicon.ico is %s, sent as %s, want image/x-icon", got, r.header.Get("Content-Type"))
	}
}

func TestSite_FilesAreTypedAndSmallEnoughToEmbed(t *testing.T) {
	h := start(t)
	total := 0
	for path, d := range h.server.site.assets {
		r := h.do("GET", path, "", nil).wantStatus(http.StatusOK)
		if got := r.header.Get("Content-Type"); got != d.contentType || got == "" {
			t.Errorf("GET %s Content-Type = %q, want %q", path, got, d.contentType)
		}
		total += len(r.body)
		if strings.Contains(string(r.body), "https://cdn.") {
			t.Errorf("GET %s names a CDN, which the policy refuses and the browser's console reports", path)
		}
	}
	if len(h.server.site.assets) < 8 || total > 4<<20 {
		t.Errorf("%d files of %d bytes, want all, at most 4 MiB", len(h.server.site.assets), total)
	}
}

func TestSite_LandingShowsARequestThatWorks(t *testing.T) {
	h := start(t)
	h.register("demo", obj{
		"policy_id": "0c0ffee0-0000-4000-8000-000000000001", "agent_id": "billing-agent",
		"allowed_action_types": []string{"payment.refund"},
	})
	text := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(string(h.do("GET", "/", "", nil).body), "")
	_, body, found := strings.Cut(text, "-d '")
	body, _, closed := strings.Cut(body, "'")
	if !found || !closed {
		t.Fatalf("the landing page shows no request: %s", text)
	}
	wantDecision(t, h.evaluate("demo", body), "allow")
}
