package manual

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"golang.org/x/net/html"

	"writ.example/writ/docs"
	"writ.example/writ/internal/must"
)

// elements returns the start tags of a page.
func elements(t testing.TB, page []byte) (all []html.Token) {
	t.Helper()
	z := html.NewTokenizer(strings.NewReader(string(page)))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return all
		case html.StartTagToken, html.SelfClosingTagToken:
			all = append(all, z.Token())
		}
	}
}

func attribute(e html.Token, key string) string {
	for _, a := range e.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// TestPages_LinksLeadSomewhere follows each link of each page to a page, a section or a picture.
func TestPages_LinksLeadSomewhere(t *testing.T) {
	m := must.Get(Load())(t)
	ids := map[string]bool{"/": true, "/openapi": true, "/v1/docs": true, "/console": true, "/openapi.yaml": true}
	at := func(name string) string {
		if name == index {
			return "/docs"
		}
		return "/docs/" + name
	}
	for name, page := range m.pages {
		ids[at(name)] = true
		for _, e := range elements(t, page) {
			if id := attribute(e, "id"); id != "" {
				if ids[at(name)+"#"+id] {
					t.Errorf("%s has two elements with the id %s", name, id)
				}
				ids[at(name)+"#"+id] = true
			}
		}
	}
	links := 0
	for name, page := range m.pages {
		for _, e := range elements(t, page) {
			href := attribute(e, "href")
			switch {
			case e.Data == "img":
				if _, err := fs.Stat(docs.Files, "pictures/"+path.Base(attribute(e, "src"))); err != nil || attribute(e, "alt") == "" {
					t.Errorf("%s shows a picture that is not there, or without a text: %v", name, e)
				}
			case e.Data != "a" || strings.HasPrefix(href, "https://"):
			case strings.HasPrefix(href, "#"):
				href = at(name) + href
				fallthrough
			default:
				if links++; !ids[href] {
					t.Errorf("%s links to %s, which is not there", name, href)
				}
			}
		}
	}
	if links < 300 || len(m.pages) < 40 {
		t.Errorf("followed %d links of %d pages, want all", links, len(m.pages))
	}
}

// TestPages_HaveNothingThatThePolicyRefuses checks that no page has a script or a style of its own.
func TestPages_HaveNothingThatThePolicyRefuses(t *testing.T) {
	m := must.Get(Load())(t)
	for name, page := range m.pages {
		heads := 0
		for _, e := range elements(t, page) {
			if e.Data == "h1" {
				heads++
			}
			if slices.Contains([]string{"script", "style", "iframe", "object"}, e.Data) {
				t.Errorf("%s has %v", name, e)
			}
			for _, a := range e.Attr {
				if a.Key == "style" || strings.HasPrefix(a.Key, "on") || strings.HasPrefix(a.Val, "javascript:") {
					t.Errorf("%s has %v", name, e)
				}
			}
		}
		if heads != 1 {
			t.Errorf("%s has %d titles", name, heads)
		}
	}
}

// TestRender renders a page with each kind of link, raw HTML, and headings of the same name.
func TestRender(t *testing.T) {
	m := must.Get(load(fstest.MapFS{
		"README.md": {Data: []byte("# All\n\n[b](b.md)\n")},
		"b.md": {Data: []byte("# B `x`\n\n[all](README.md) [here](#a-part) [there](b.md#a-part-1) [code](../cmd/writ) [bad](javascript:alert(1))\n" +
			"<script>alert(1)</script>\n\n## A part\n\none *two*\nthree\n\n## A part\n\n| a | |\n|--:|---|\n| `<b>` | x |\n\n```sh\nls <x>\n```\n")},
	}))(t)
	page := string(m.Page("b"))
	for _, want := range []string{
		`<title>B x · writ docs</title>`, `<a href="/docs">all</a>`, `<a href="#a-part">here</a>`, `<a href="/docs/b#a-part-1">there</a>`,
		`code (cmd/writ)`, `<a href="">bad</a>`, `<h2 id="a-part">`, `<h2 id="a-part-1">`, `<td></td>`, `<code>&lt;b&gt;</code>`, "ls &lt;x&gt;",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s:\n%s", want, page)
		}
	}
	if strings.Contains(page, "<script") || strings.Contains(page, "javascript:") {
		t.Errorf("the page has a script:\n%s", page)
	}
	want := []section{{Path: "/docs/b", Page: "B x", Heading: "B x"}, {Path: "/docs/b#a-part", Page: "B x", Heading: "A part"},
		{Path: "/docs/b#a-part-1", Page: "B x", Heading: "A part"}}
	got := m.sections[1:]
	for i := range want {
		if i >= len(got) || got[i].Path != want[i].Path || got[i].Page != want[i].Page || got[i].Heading != want[i].Heading {
			t.Fatalf("the sections are %+v, want %+v", got, want)
		}
	}
	if got[1].text != "one two three " || !strings.Contains(got[2].text, "<b>") || !strings.Contains(got[2].text, "ls <x>") {
		t.Errorf("the texts are %q and %q", got[1].text, got[2].text)
	}
	if _, err := load(fstest.MapFS{"a.md": {Data: []byte("no title\n")}}); err == nil {
		t.Error("a page without a title was loaded")
	}
}

// TestSearch looks for words that people type.
func TestSearch(t *testing.T) {
	m := must.Get(Load())(t)
	for query, want := range map[string]string{
		"RATE limits": "/docs/capacity#rate-limits", "accept-rollback": "/docs/backup#after-damage", "decimal_compare": "/docs/cel-and-rego",
		"time zone": "/docs/configuration#time-zones", "hysteresis_is_nowhere tls": "/docs/configuration#tls",
	} {
		hits := m.find(strings.Fields(strings.ToLower(query))).Hits
		if i := slices.IndexFunc(hits, func(h hit) bool { return h.Path == want }); i < 0 || i > 4 {
			t.Errorf("%q finds %s at place %d of %d", query, want, i, len(hits))
		}
	}
	if f := m.find([]string{"qwertzuiop"}); len(f.Hits) != 0 {
		t.Errorf("found %v", f)
	}
	if f := m.find([]string{"the"}); len(f.Hits) != maxHits || f.More == 0 {
		t.Errorf("a frequent word finds %d and %d more, want %d and more", len(f.Hits), f.More, maxHits)
	}
}

// FuzzSearch searches for any text. For every query, the answer has elements of the layout alone.
func FuzzSearch(f *testing.F) {
	m := must.Get(Load())(f)
	for _, seed := range []string{"rate limits", `<script>alert(1)</script>`, `" onfocus=alert(1) "`, "İ", "\u202e", "{{.}}", "\x00"} {
		f.Add(seed)
	}
	known := []string{"html", "head", "meta", "title", "link", "body", "a", "header", "nav", "form", "label", "input", "button",
		"main", "h1", "h2", "p", "ol", "li", "mark", "footer"}
	f.Fuzz(func(t *testing.T, query string) {
		if len(query) > MaxQuery || !utf8.ValidString(query) {
			t.Skip()
		}
		page, err := m.Search(query)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range elements(t, page) {
			for _, a := range e.Attr {
				if strings.HasPrefix(a.Key, "on") || a.Key == "style" {
					t.Errorf("%q makes %v", query, e)
				}
			}
			if !slices.Contains(known, e.Data) {
				t.Errorf("%q makes %v", query, e)
			}
		}
	})
}
