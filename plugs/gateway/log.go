//nolint:staticcheck // log messages are deprecated in revision 2026-07-28, and clients have them
package gateway

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const logLevelKey = mcp.MetaKeyLogLevel

// setLevel has the server behind log from a level on, if it logs at all.
func (g *Gateway) setLevel(ctx context.Context, req mcp.Request) error {
	if has := g.capabilities(); has == nil || has.Logging == nil {
		return fail(jsonrpc.CodeMethodNotFound, "the server behind has no log messages")
	}
	p, ok := req.GetParams().(*mcp.SetLoggingLevelParams)
	if !ok || p == nil {
		return fail(jsonrpc.CodeInvalidParams, "level is missing")
	}
	return g.logFrom(ctx, string(p.Level))
}

func (g *Gateway) behindIsNew() bool {
	about := g.behind.InitializeResult()
	return about != nil && about.ProtocolVersion >= newProtocol
}

// logFrom has the server behind log from a level on. All clients share it: the last one's counts.
func (g *Gateway) logFrom(ctx context.Context, level string) error {
	p := &g.passing
	p.mu.Lock()
	same := p.level == level
	p.level = level
	p.mu.Unlock()
	if same || g.behindIsNew() {
		return nil // it learns the level with each request
	}
	return g.behind.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: mcp.LoggingLevel(level)})
}

// heard are the options of the client of the server behind by which its messages come here.
func (g *Gateway) heard(o *mcp.ClientOptions) *mcp.ClientOptions {
	o.ProgressNotificationHandler = func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
		g.progress(r.Params)
	}
	o.LoggingMessageHandler = func(_ context.Context, r *mcp.LoggingMessageRequest) { g.log(r.Params) }
	return o
}

// log tells clients what the server behind logs, if they have asked for messages of this level.
func (g *Gateway) log(p *mcp.LoggingMessageParams) {
	said := *p
	said.Meta = nil
	if front := g.front.Load(); front != nil {
		for client := range front.Sessions() {
			_ = client.Log(context.Background(), &said)
		}
	}
	told := make(map[*mcp.ServerSession]bool)
	g.passing.mu.Lock()
	var wanting []asked
	for _, a := range g.passing.asked {
		if a.logs && !told[a.client] {
			told[a.client] = true
			wanting = append(wanting, a)
		}
	}
	g.passing.mu.Unlock()
	for _, a := range wanting {
		_ = a.client.Log(a.ctx, &said)
	}
}
