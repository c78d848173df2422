package api

import (
	"embed"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync"

	"writ/document/schema"
	"writ/storage"
)

// web holds the pages and their files; web/README.md says where they are from.
//
//go:embed web/*.html web/*.css web/*.js web/*.svg web/*.ico
var web embed.FS

// The pages' Content-Security-Policies. Scripts are files of ours, and nothing
// comes from or goes to another server. The viewers set style attributes and
// make style elements as they render, with contents that cannot be known
// beforehand, and draw icons of data URLs; no style can run a script or send
// anything under these policies.
const (
	strictPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	viewerPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

// favicon is what browsers ask for at the root, for documents that name no icon
// such as openapi.yaml.
const favicon = "favicon.ico"

// site is what people and tools get without a credential.
type site struct {
	landing, viewer, reference document
	yaml, json                 document            // the OpenAPI document
	assets                     map[string]document // the files of the pages, by path
	schemas                    map[string]document // the JSON Schemas of documents, by kind
}

// loadSite returns the site, which is the same for every server.
var loadSite = sync.OnceValues(func() (*site, error) {
	s := site{assets: make(map[string]document), schemas: make(map[string]document)}
	var err error
	if s.yaml, s.json, err = openAPI(); err != nil {
		return nil, err
	}
	for page, to := range map[string]*document{"landing.html": &s.landing, "openapi.html": &s.viewer, "docs.html": &s.reference} {
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
	for _, kind := range schema.Kinds {
		text, err := schema.JSON(kind)
		if err != nil {
			return nil, fmt.Errorf("making the schemas: %w", err)
		}
		s.schemas[kind] = newDocument("application/schema+json", text)
	}
	return &s, nil
})

// schema returns the JSON Schema of a kind of document. Its path stays the same: files of
// users name it.
func (s *Server) schema(r *request) (response, error) {
	d, ok := s.site.schemas[r.param]
	if !ok {
		return response{}, storage.ErrNotFound
	}
	return response{status: http.StatusOK, body: d}, nil
}

func webFile(name string) (document, error) {
	types := map[string]string{
		".html": "text/html; charset=utf-8",
		".css":  "text/css; charset=utf-8",
		".js":   "text/javascript; charset=utf-8",
		".svg":  "image/svg+xml",
		".ico":  "image/x-icon",
	}
	text, err := web.ReadFile("web/" + name)
	if err != nil {
		return document{}, fmt.Errorf("reading the page file %s: %w", name, err)
	}
	return newDocument(types[path.Ext(name)], text), nil
}
