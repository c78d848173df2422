package api

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"writ.example/writ/api/manual"
	"writ.example/writ/authoring/document"
	"writ.example/writ/authoring/document/schema"
	"writ.example/writ/docs"
	"writ.example/writ/storage"
)

// web holds the pages and their files. web/README.md says where they come from.
//
//go:embed web/*.html web/*.css web/*.js web/*.svg web/*.ico
var web embed.FS

// descriptionYAML is the OpenAPI document.
//
//go:embed openapi.yaml
var descriptionYAML []byte

// The Content-Security-Policies of the pages. All scripts are our own files, and the pages exchange data with no other
// server. The viewers set style attributes and make style elements while they render. The contents of these styles
// cannot be known beforehand. The viewers also draw icons from data URLs. Under these policies no style can run a
// script or send data.
const (
	strictPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	viewerPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
		"connect-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

// favicon is the path of the icon. Browsers request it at the root for a document that names no
// icon, such as openapi.yaml.
const favicon = "favicon.ico"

// site has the answers that people and tools get without a credential.
type site struct {
	landing, viewer, reference fixed
	yaml, json                 fixed                          // the OpenAPI document
	assets                     map[string]fixed               // the files of the pages, by path
	schemas                    map[string]fixed               // what `writ schema` prints, by kind
	manual                     func() (*manual.Manual, error) // the pages of docs/, rendered at the first request
}

// loadSite returns the site. It is the same for every server.
var loadSite = sync.OnceValues(func() (*site, error) {
	s := site{assets: make(map[string]fixed), schemas: make(map[string]fixed), manual: sync.OnceValues(manual.Load)}
	described, err := document.Parse("openapi.yaml", descriptionYAML)
	if err != nil {
		return nil, fmt.Errorf("reading the description of the interface: %w", err)
	}
	s.yaml, s.json = newFixed("application/yaml", descriptionYAML), newFixed(typeJSON, described[0].JSON())
	for page, to := range map[string]*fixed{"landing.html": &s.landing, "openapi.html": &s.viewer,
		"docs.html": &s.reference} {
		if *to, err = webFile(page); err != nil {
			return nil, err
		}
		to.policy = viewerPolicy
	}
	s.landing.policy = strictPolicy
	files, err := web.ReadDir("web")
	if err != nil {
		return nil, fmt.Errorf("listing the files of the pages: %w", err)
	}
	for _, f := range files {
		if strings.HasSuffix(f.Name(), ".html") {
			continue
		}
		path := "/assets/" + f.Name()
		if f.Name() == favicon {
			path = "/" + favicon
		}
		if s.assets[path], err = webFile(f.Name()); err != nil {
			return nil, err
		}
	}
	pictures, err := docs.Files.ReadDir("pictures")
	if err != nil {
		return nil, fmt.Errorf("listing the pictures of docs: %w", err)
	}
	for _, f := range pictures {
		data, err := docs.Files.ReadFile("pictures/" + f.Name())
		if err != nil {
			return nil, fmt.Errorf("reading a picture of docs: %w", err)
		}
		s.assets["/assets/"+f.Name()] = newFixed("image/jpeg", data)
	}
	for _, kind := range schema.Kinds {
		text, err := schema.JSON(kind)
		if err != nil {
			return nil, fmt.Errorf("making the schemas: %w", err)
		}
		s.schemas[kind] = newFixed("application/schema+json", text)
	}
	for kind, contentType := range map[string]string{
		"rego-capabilities": typeJSON, // a file of OPA, no JSON Schema
		"rego-input":        "application/schema+json",
	} {
		text, err := schema.Rego(kind, false)
		if err != nil {
			return nil, fmt.Errorf("making the files for OPA: %w", err)
		}
		s.schemas[kind] = newFixed(contentType, text)
	}
	return &s, nil
})

// schema returns what `writ schema` prints of a kind. Its path never changes, because files of users refer to it.
func (s *Server) schema(r *request) error {
	d, ok := s.site.schemas[r.param]
	if !ok {
		return storage.ErrNotFound
	}
	return r.ok(d)
}

// manualIndex returns the index of the pages of docs/, or the sections that have the words of ?q=.
func (s *Server) manualIndex(r *request) error {
	q, asked := r.query.take("q")
	if len(q) > manual.MaxQuery || !utf8.ValidString(q) {
		r.query.refuse(invalid("q", "must be text of at most %d bytes in UTF-8", manual.MaxQuery))
	}
	if err := r.query.done(); err != nil {
		return err
	}
	m, err := s.site.manual()
	if err != nil {
		return err
	}
	if !asked || strings.TrimSpace(q) == "" {
		return manualPage(r, m.Index())
	}
	page, err := m.Search(q)
	if err != nil {
		return err
	}
	return manualPage(r, page)
}

// manualPage returns a page of docs/.
func (s *Server) manualPage(r *request) error {
	if err := r.query.done(); err != nil {
		return err
	}
	m, err := s.site.manual()
	if err != nil {
		return err
	}
	page := m.Page(r.param)
	if page == nil {
		return storage.ErrNotFound
	}
	return manualPage(r, page)
}

func manualPage(r *request, page []byte) error {
	d := newFixed("text/html; charset=utf-8", page)
	d.policy = manual.Policy
	return r.ok(d)
}

func webFile(name string) (fixed, error) {
	types := map[string]string{
		".html": "text/html; charset=utf-8",
		".css":  "text/css; charset=utf-8",
		".js":   "text/javascript; charset=utf-8",
		".svg":  "image/svg+xml",
		".ico":  "image/x-icon",
	}
	text, err := web.ReadFile("web/" + name)
	if err != nil {
		return fixed{}, fmt.Errorf("reading the page file %s: %w", name, err)
	}
	return newFixed(types[path.Ext(name)], text), nil
}

// fixed is a body that stays the same as long as the process runs. It is a page, a file of a page or the description of
// the interface.
type fixed struct {
	contentType string
	bytes       []byte
	etag        string
	policy      string // the page's Content-Security-Policy; if it is empty, the one of every response stays
}

func newFixed(contentType string, data []byte) fixed {
	sum := sha256.Sum256(data)
	return fixed{contentType: contentType, bytes: data, etag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) +
		`"`}
}

// writeFixed sends d, or 304 if the client already has d. It returns the status. Caches may keep d but must ask each
// time whether it has changed, so a new release shows at once. A cache replaces its stored headers with the headers of
// a 304 (RFC 9111, section 3.2). So a 200 and a 304 have the same headers.
func writeFixed(fc *fasthttp.RequestCtx, d fixed) int {
	h := &fc.Response.Header
	h.Set(fiber.HeaderETag, d.etag)
	h.Set(fiber.HeaderCacheControl, "public, no-cache")
	if d.policy != "" {
		h.Set(fiber.HeaderContentSecurityPolicy, d.policy)
	}
	if hasETag(fc.Request.Header.Peek(fiber.HeaderIfNoneMatch), d.etag) {
		return http.StatusNotModified
	}
	h.SetContentType(d.contentType)
	fc.Response.SetBodyRaw(d.bytes)
	return http.StatusOK
}

func hasETag(header []byte, etag string) bool {
	for tag := range bytes.SplitSeq(header, []byte(",")) {
		t := strings.TrimPrefix(string(bytes.TrimSpace(tag)), "W/")
		if t == etag || t == "*" {
			return true
		}
	}
	return false
}
