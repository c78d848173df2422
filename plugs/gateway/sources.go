package gateway

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"writ.example/writ/internal/toolcall"
	"writ.example/writ/plugs/plug"
	writ "writ.example/writ/sdk/go"
)

// wordsMeta is the member of a call's _meta with the user's words: a text or several. Any client can fill it.
const wordsMeta = "writ/user"

// sources keeps, for each connection, the user's words and what the server behind returned.
type sources struct {
	mapping *plug.Sources // nil if sources are not stated
	words   bool          // the words of clients count as the user's
	shared  bool          // requests of several clients may come over the connection without an id

	mu   sync.Mutex
	byID map[string]*kept
}

// kept is what is kept of a connection.
type kept struct {
	*writ.Provenance
	unseen atomic.Bool // a result cannot be searched, such as an image

	mu   sync.Mutex
	said map[string]bool // words of the user: a client may send the same ones with each call
	room int             // for more of them, in bytes
}

// maxWords bounds the words that are told apart. [writ.Provenance] keeps no more.
const maxWords = 64 << 10

// user keeps words of the user, once.
func (k *kept) user(text string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.said[text] {
		return
	}
	if len(text) <= k.room {
		k.room -= len(text)
		k.said[text] = true
	}
	k.User(text)
}

// of returns the sources of a connection, or nil if it has none.
func (s *sources) of(client mcp.Session) *kept {
	if s.mapping == nil || s.shared && client.ID() == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.byID[client.ID()]
	if p == nil {
		p = &kept{Provenance: s.mapping.Provenance(), said: make(map[string]bool), room: maxWords}
		if s.byID == nil {
			s.byID = make(map[string]*kept)
		}
		s.byID[client.ID()] = p
		if connection, ok := client.(*mcp.ServerSession); ok && client.ID() != "" {
			go func() {
				_ = connection.Wait() // however it ends
				s.mu.Lock()
				delete(s.byID, client.ID())
				s.mu.Unlock()
			}()
		}
	}
	return p
}

// state states where the arguments of a call come from. Where nothing is kept of a connection, they are unknown.
func (s *sources) state(req mcp.Request, call *toolcall.Call) error {
	if s.mapping == nil {
		return nil
	}
	p := s.of(req.GetSession())
	if p == nil {
		return plug.StateSources(new(writ.Provenance), call, writ.SourceModel)
	}
	if s.words {
		words, err := wordsIn(req.GetParams().GetMeta()[wordsMeta])
		if err != nil {
			return err
		}
		for _, text := range words {
			p.user(text)
		}
	}
	if p.unseen.Load() {
		return plug.StateSources(p.Provenance, call, writ.SourceModel)
	}
	return plug.StateSources(p.Provenance, call)
}

// wordsIn returns the texts of a text or of a list of texts.
func wordsIn(v any) (texts []string, err error) {
	if v == nil {
		return nil, nil
	}
	all, isList := v.([]any)
	if !isList {
		all = []any{v}
	}
	for _, one := range all {
		text, ok := one.(string)
		if !ok {
			return nil, errors.New("_meta: " + wordsMeta + ": want a text or a list of texts")
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// returned keeps a result of the server behind. place is where it is from. tool is empty if it has no records.
func (g *Gateway) returned(req mcp.Request, tool, place string, structured any, contents ...mcp.Content) error {
	p := g.sources.of(req.GetSession())
	if p == nil {
		return nil
	}
	var values []any
	if structured != nil {
		values = append(values, structured)
	}
	for _, c := range contents {
		switch c := c.(type) {
		case *mcp.TextContent:
			values = append(values, c.Text)
		case *mcp.ResourceLink:
			values = append(values, []string{c.URI, c.Name, c.Title, c.Description})
		case *mcp.EmbeddedResource:
			values = append(values, p.texts(c.Resource)...)
		default:
			p.unseen.Store(true)
		}
	}
	return g.keep(p, tool, place, values)
}

// read keeps the text of a resource.
func (g *Gateway) read(req mcp.Request, place string, contents []*mcp.ResourceContents) error {
	p := g.sources.of(req.GetSession())
	if p == nil {
		return nil
	}
	return g.keep(p, "", place, p.texts(contents...))
}

// texts returns the texts of resources.
func (k *kept) texts(all ...*mcp.ResourceContents) (texts []any) {
	for _, r := range all {
		switch {
		case r == nil:
		case len(r.Blob) > 0:
			k.unseen.Store(true)
		default:
			texts = append(texts, r.URI, r.Text)
		}
	}
	return texts
}

func (g *Gateway) keep(p *kept, tool, place string, values []any) error {
	for _, v := range values {
		if err := p.Result(tool, v, place); err != nil {
			return g.undecided(err)
		}
	}
	return nil
}
