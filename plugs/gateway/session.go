package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	writ "writ/sdk/go"
)

// sessions are the writ sessions of connections. Requests of revisions without connections share one.
type sessions struct {
	open  func(context.Context) (string, error)
	close func(context.Context, string) error

	mu   sync.Mutex
	byID map[string]string
}

// of returns the writ session of a connection.
func (s *sessions) of(ctx context.Context, of mcp.Session) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id, ok := s.byID[of.ID()]; ok {
		return id, nil
	}
	id, err := s.open(ctx)
	if err != nil || id == "" {
		return "", err
	}
	if s.byID == nil {
		s.byID = make(map[string]string)
	}
	s.byID[of.ID()] = id
	if client, ok := of.(*mcp.ServerSession); ok && of.ID() != "" {
		go func() {
			_ = client.Wait() // however it ends
			s.mu.Lock()
			delete(s.byID, client.ID())
			s.mu.Unlock()
			_ = s.close(context.Background(), id) // it ends by itself, too
		}()
	}
	return id, nil
}

// end closes all sessions.
func (s *sessions) end() (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	for _, id := range s.byID {
		err = errors.Join(err, s.close(ctx, id))
	}
	s.byID = nil
	return err
}

// openSession opens a writ session, if connections have one.
func (g *Gateway) openSession(ctx context.Context) (string, error) {
	if g.config.SessionTTL == 0 {
		return "", nil
	}
	var s writ.Session
	for _, name := range g.config.SessionTools {
		action := "mcp." + g.config.Server + "." + name
		if to := g.plug.Mapping.Tools[name].Action; strings.HasPrefix(to, "$.") {
			return "", fmt.Errorf("--session-tools: %s: its action depends on the call", name)
		} else if to != "" {
			action = to
		}
		s.AllowedActionTypes = append(s.AllowedActionTypes, action)
	}
	opened, err := g.plug.Client.OpenSession(ctx, s, g.config.SessionTTL)
	return opened.ID, err
}
