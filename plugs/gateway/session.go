package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"writ.example/writ/internal/toolcall"
	writ "writ.example/writ/sdk/go"
)

// sessions are the writ sessions of connections. Over HTTP, requests of revisions without connections share
// one, and another one once it has expired.
type sessions struct {
	open  func(context.Context) (string, error)
	close func(context.Context, string) error
	renew time.Duration // how long the shared one lasts, over HTTP

	mu   sync.Mutex
	byID map[string]opened
}

type opened struct {
	id string
	at time.Time
}

// of returns the writ session of a connection.
func (s *sessions) of(ctx context.Context, of mcp.Session) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is, ok := s.byID[of.ID()]
	if ok && (of.ID() != "" || s.renew == 0 || time.Since(is.at) < s.renew) {
		return is.id, nil
	}
	at := time.Now() // it expires later than it seems to
	id, err := s.open(ctx)
	if err != nil || id == "" {
		return "", err
	}
	if s.byID == nil {
		s.byID = make(map[string]opened)
	}
	s.byID[of.ID()] = opened{id, at}
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
	for _, is := range s.byID {
		err = errors.Join(err, s.close(ctx, is.id))
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
		call, err := toolcall.OfServer(g.config.Server, name, nil)
		if err != nil {
			return "", fmt.Errorf("--session-tools: %s: %w", name, err)
		}
		action := call.ActionType()
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
