package api

import (
	"embed"
	"fmt"
	"sync"
)

// web holds the pages and their files; web/README.md says where they are from.
//
//go:embed web
var web embed.FS

// site is what people and tools get without a credential.
type site struct {
	landing    document
	yaml, json document // the OpenAPI document
}

// loadSite returns the site, which is the same for every server.
var loadSite = sync.OnceValues(func() (*site, error) {
	var s site
	var err error
	if s.yaml, s.json, err = describe(); err != nil {
		return nil, err
	}
	if s.landing, err = htmlPage("landing.html", "default-src 'none'"); err != nil {
		return nil, err
	}
	return &s, nil
})

// htmlPage returns a page of web with its Content-Security-Policy.
func htmlPage(name, policy string) (document, error) {
	text, err := web.ReadFile("web/" + name)
	if err != nil {
		return document{}, fmt.Errorf("reading the page %s: %w", name, err)
	}
	d := newDocument("text/html; charset=utf-8", text)
	d.policy = policy
	return d, nil
}
