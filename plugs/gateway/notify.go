package gateway

import (
	"context"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// passing are the requests at which the server behind is at work. What it says of its progress goes to the client
// of the request, and what it logs goes to all clients that want it.
type passing struct {
	mu    sync.Mutex
	last  int
	asked map[string]asked // by the progress token that the server behind knows
	level string
}

type asked struct {
	ctx    context.Context // of the request, on whose stream messages go back
	client *mcp.ServerSession
	token  any // the client's, or nil
	logs   bool
}

// pass returns the metadata with which a request goes to the server behind. The caller calls done at its end.
func (g *Gateway) pass(ctx context.Context, req mcp.Request) (meta mcp.Meta, done func()) {
	client, ok := req.GetSession().(*mcp.ServerSession)
	if !ok {
		return nil, func() {}
	}
	own := req.GetParams().GetMeta()
	a := asked{ctx: ctx, client: client, token: own["progressToken"]}
	meta = mcp.Meta{}
	if level, ok := own[logLevelKey].(string); ok {
		a.logs = true
		if err := g.logFrom(ctx, level); err != nil {
			g.say("log messages: %v", err)
		}
	}
	p := &g.passing
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	id := strconv.Itoa(p.last)
	if p.asked == nil {
		p.asked = make(map[string]asked)
	}
	p.asked[id] = a
	if a.token != nil {
		meta["progressToken"] = id
	}
	if p.level != "" && g.behindIsNew() {
		meta[logLevelKey] = p.level
	}
	return meta, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.asked, id)
	}
}

// progress tells the client of a request what the server behind says of its progress.
func (g *Gateway) progress(p *mcp.ProgressNotificationParams) {
	id, _ := p.ProgressToken.(string)
	g.passing.mu.Lock()
	a, ok := g.passing.asked[id]
	g.passing.mu.Unlock()
	if ok && a.token != nil {
		said := *p
		said.Meta, said.ProgressToken = nil, a.token
		_ = a.client.NotifyProgress(a.ctx, &said) // a client that has left needs none
	}
}
