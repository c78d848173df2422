// Package manual renders the pages of docs/ as HTML, and searches them.
//
// A page docs/NAME.md is at /docs/NAME, docs/README.md is the index at /docs, and pictures are at /assets. The pages
// need no script. Raw HTML in a page is left out, and a link that would run a script loses its target.
package manual

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"slices"
	"strings"
	"unicode"

	"writ.example/writ/docs"
	"writ.example/writ/internal/printable"
)

// Policy is the Content-Security-Policy of the pages.
const Policy = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; " +
	"frame-ancestors 'none'"

// index is the name of the page that leads to the others.
const index = "README"

//go:embed web/page.html
var web embed.FS

// Manual has every page. It does not change.
type Manual struct {
	pages    map[string][]byte // the HTML of each page, by name
	sections []section         // of all pages, in the order of their names
	layout   *template.Template
}

// section is a heading of a page and the text up to the next heading.
type section struct {
	Path, Page, Heading string
	text                string
	folded              string // Page, Heading and text in lower case
}

// Load renders the pages of docs/.
func Load() (*Manual, error) {
	return load(docs.Files)
}

func load(files fs.FS) (*Manual, error) {
	m := &Manual{pages: make(map[string][]byte)}
	var err error
	m.layout, err = template.New("").Funcs(template.FuncMap{"text": printable.Text}).ParseFS(web, "web/page.html")
	if err != nil {
		return nil, fmt.Errorf("reading the layout of the manual: %w", err)
	}
	names, err := fs.Glob(files, "*.md")
	if err != nil {
		return nil, fmt.Errorf("listing the pages of the manual: %w", err)
	}
	for _, name := range names {
		source, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("reading the manual: %w", err)
		}
		p, err := render(strings.TrimSuffix(name, ".md"), source, names)
		if err != nil {
			return nil, fmt.Errorf("rendering %s: %w", name, err)
		}
		m.sections = append(m.sections, p.sections...)
		if m.pages[p.name], err = m.fill("page", view{Title: p.sections[0].Page, Body: p.html}); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Index returns the HTML of the page that leads to the others.
func (m *Manual) Index() []byte { return m.pages[index] }

// Page returns the HTML of a page, or nil if no page has that name.
func (m *Manual) Page(name string) []byte {
	if name == index {
		return nil // its path is /docs
	}
	return m.pages[name]
}

// view is what the layout shows.
type view struct {
	Title string
	Query string
	Body  template.HTML // of a page
	found               // by a search
}

func (m *Manual) fill(name string, v view) ([]byte, error) {
	var b bytes.Buffer
	if err := m.layout.ExecuteTemplate(&b, name, v); err != nil {
		return nil, fmt.Errorf("filling a page of the manual: %w", err)
	}
	return b.Bytes(), nil
}

// Limits of a search. MaxQuery is in bytes.
const (
	MaxQuery = 200
	maxWords = 8
	maxHits  = 30
)

// found is the result of a search.
type found struct {
	Words, Matched int // of the query, and of the best sections
	More           int // sections that are not shown
	Hits           []hit
}

// hit is a section that has words of a query.
type hit struct {
	section
	Snippet []word
	score   int
}

// word is a word of a snippet. Marked words have a word of the query in them.
type word struct {
	Text   string
	Marked bool
}

// Search returns the HTML of the sections that have the most words of query. Case makes no difference. Characters that
// are not printed, such as those that turn the direction of a text, are left out.
func (m *Manual) Search(query string) ([]byte, error) {
	query = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, query)
	words := strings.Fields(strings.ToLower(query))
	words = words[:min(len(words), maxWords)]
	return m.fill("search", view{Title: "Search", Query: query, found: m.find(words)})
}

func (m *Manual) find(words []string) found {
	f := found{Words: len(words)}
	for _, s := range m.sections {
		matched, score := 0, 0
		heading, page := strings.ToLower(s.Heading), strings.ToLower(s.Page)
		for _, w := range words {
			n := strings.Count(s.folded, w)
			if n == 0 {
				continue
			}
			matched++
			score += min(n, 5)
			if strings.Contains(heading, w) {
				score += 8
			}
			if strings.Contains(page, w) {
				score += 4
			}
		}
		if matched == 0 || matched < f.Matched {
			continue
		}
		if matched > f.Matched {
			f.Matched, f.Hits = matched, nil
		}
		f.Hits = append(f.Hits, hit{section: s, score: score})
	}
	slices.SortStableFunc(f.Hits, func(a, b hit) int { return b.score - a.score })
	f.More = max(0, len(f.Hits)-maxHits)
	f.Hits = f.Hits[:len(f.Hits)-f.More]
	for i := range f.Hits {
		f.Hits[i].Snippet = snippet(f.Hits[i].text, words)
	}
	return f
}

// snippet returns the part of a text around its first word that has one of words in it.
func snippet(text string, words []string) []word {
	const before, after = 8, 24
	all := strings.Fields(text)
	has := func(s string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(strings.ToLower(s), w) })
	}
	at := max(0, slices.IndexFunc(all, has))
	var out []word
	for _, s := range all[max(0, at-before):min(len(all), at+after)] {
		out = append(out, word{s, has(s)})
	}
	return out
}
