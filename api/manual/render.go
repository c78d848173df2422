package manual

import (
	"bytes"
	"fmt"
	"html/template"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// markdown reads the pages as GitHub does. It leaves raw HTML out.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignNone))),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
)

// scrolling lets a keyboard scroll a table that is wider than the screen.
var scrolling = strings.NewReplacer(
	"<table>", `<div class="wide" role="group" aria-label="Table" tabindex="0"><table>`, "</table>", "</table></div>",
	"<th></th>", "<td></td>", "<pre>", `<pre tabindex="0">`,
)

// rendered is a page of the manual.
type rendered struct {
	name     string
	html     template.HTML
	sections []section // the first has the page's title as its heading
}

// render renders the page called name. names are the files of all pages.
func render(name string, source []byte, names []string) (*rendered, error) {
	p := &rendered{name: name}
	headings := parser.WithContext(parser.NewContext(parser.WithIDs(make(ids))))
	doc := markdown.Parser().Parse(text.NewReader(source), headings)
	at := "/docs/" + name
	if name == index {
		at = "/docs"
	}
	if err := relink(doc, names); err != nil {
		return nil, err
	}
	title := ""
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		h, ok := n.(*ast.Heading)
		if ok && title == "" {
			title = plain(n, source)
		}
		switch id, _ := n.AttributeString("id"); {
		case title == "":
			return nil, fmt.Errorf("the page %s begins without a title", name)
		case ok && h.Level == 1:
			p.sections = append(p.sections, section{Path: at, Page: title, Heading: title})
		case ok:
			p.sections = append(p.sections, section{
				Path: at + "#" + string(id.([]byte)), Page: title, Heading: plain(n, source),
			})
		default:
			p.sections[len(p.sections)-1].text += plain(n, source) + " "
		}
	}
	if title == "" {
		return nil, fmt.Errorf("the page %s is empty", name)
	}
	for i := range p.sections {
		s := &p.sections[i]
		s.folded = strings.ToLower(s.Page + " " + s.Heading + " " + s.text)
	}
	var b bytes.Buffer
	if err := markdown.Renderer().Render(&b, source, doc); err != nil {
		return nil, fmt.Errorf("rendering: %w", err)
	}
	p.html = template.HTML(scrolling.Replace(b.String())) //nolint:gosec // goldmark escapes, and the pages are ours
	return p, nil
}

// relink points the links between pages to their paths on the server. A link to another file of the repository becomes
// its text and the name of the file.
func relink(doc ast.Node, names []string) error {
	var outside []*ast.Link
	err := ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Image:
			n.Destination = []byte("/assets/" + path.Base(string(n.Destination)))
		case *ast.Link:
			file, section, _ := strings.Cut(string(n.Destination), "#")
			switch {
			case file == "" || strings.Contains(file, ":"):
			case file == index+".md":
				n.Destination = []byte("/docs" + anchor(section))
			case slices.Contains(names, file):
				n.Destination = []byte("/docs/" + strings.TrimSuffix(file, ".md") + anchor(section))
			default:
				outside = append(outside, n)
			}
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return fmt.Errorf("following the links: %w", err)
	}
	for _, n := range outside {
		file, _, _ := strings.Cut(string(n.Destination), "#")
		parent := n.Parent()
		for c := n.FirstChild(); c != nil; c = n.FirstChild() {
			parent.InsertBefore(parent, n, c) // this removes c from n
		}
		parent.ReplaceChild(parent, n, ast.NewString([]byte(" ("+path.Join("docs", file)+")")))
	}
	return nil
}

func anchor(section string) string {
	if section == "" {
		return ""
	}
	return "#" + section
}

// plain returns the text of a block, without its markup.
func plain(block ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(block, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function returns no error
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(n.Value(source))
				if n.SoftLineBreak() || n.HardLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.String:
			if entering {
				b.Write(n.Value)
			}
		case *ast.FencedCodeBlock:
			if entering {
				b.Write(n.Lines().Value(source))
			}
		case *ast.HTMLBlock:
			return ast.WalkSkipChildren, nil
		default:
			if !entering && n.Type() == ast.TypeBlock {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(b.String()), " ")
}

// ids makes the ids of headings as GitHub does.
type ids map[string]int

var unnamed = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// Generate implements [parser.IDs].
func (used ids) Generate(value []byte, _ ast.NodeKind) []byte {
	id := strings.ReplaceAll(unnamed.ReplaceAllString(strings.ToLower(string(value)), ""), " ", "-")
	n := used[id]
	used[id]++
	if n > 0 {
		id += "-" + strconv.Itoa(n)
	}
	return []byte(id)
}

// Put implements [parser.IDs].
func (used ids) Put(value []byte) { used[string(value)]++ }
