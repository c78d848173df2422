package gateway

import (
	"encoding/json"
	"sync"

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
	byID map[string]*writ.Provenance
}

// of returns what is kept for a connection, or nil if nothing is.
func (s *sources) of(client mcp.Session) *writ.Provenance {
	if s.mapping == nil || s.shared && client.ID() == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.byID[client.ID()]
	if p == nil {
		p = s.mapping.Provenance()
		if s.byID == nil {
			s.byID = make(map[string]*writ.Provenance)
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
		for _, text := range wordsIn(req.GetParams().GetMeta()[wordsMeta]) {
			p.User(text)
		}
	}
	return plug.StateSources(p, call)
}

// wordsIn returns the texts of a text or of a list of texts.
func wordsIn(v any) (texts []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, one := range v {
			texts = append(texts, wordsIn(one)...)
		}
	}
	return texts
}

// returned keeps what the server behind returned: values that can be JSON, or texts. place is where they are from.
func (g *Gateway) returned(req mcp.Request, tool, place string, values ...any) error {
	p := g.sources.of(req.GetSession())
	if p == nil {
		return nil
	}
	for _, v := range values {
		if v == nil {
			continue
		}
		if err := p.Result(tool, v, place); err != nil {
			return g.undecided(err)
		}
	}
	return nil
}

// textsIn returns the texts of contents.
func textsIn(contents []mcp.Content) (texts []any) {
	for _, c := range contents {
		switch c := c.(type) {
		case *mcp.TextContent:
			texts = append(texts, c.Text)
		case *mcp.EmbeddedResource:
			texts = append(texts, c.Resource.Text)
		default:
			if text, err := json.Marshal(c); err == nil { // a link's name and description, for one
				texts = append(texts, json.RawMessage(text))
			}
		}
	}
	return texts
}
