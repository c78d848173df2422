// Package gateway stands between an agent's MCP client and an MCP server, and decides what the agent
// asks the server for.
//
// The gateway asks writ about tools/call, resources/read, prompts/get and completion/complete. It
// passes the lists on, answers what concerns the connection itself and refuses every other method. The
// server behind it sees what was allowed, in the gateway's own words: the _meta of a request stays behind,
// and the capabilities of the client do, so that server cannot ask the client for anything. What it says of its
// progress and what it logs reaches clients that asked for it, and a request that is cancelled here is cancelled
// there.
//
// Every error refuses. A call of a tool that is denied or held is a result with isError, for the model
// to read. Everything else that is refused is an error of JSON-RPC:
//
//	-32001  denied or held, where there are no results with isError
//	-32600  the message is no JSON, or has a member twice
//	-32601  a method that the gateway does not know
//	-32602  arguments that the tool's schema or the mapping does not take
//	-32603  there is no decision
package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"writ.example/writ/plugs/plug"
)

// Config has the settings of a gateway.
type Config struct {
	plug.Settings
	Server  string // the name of the server behind, in actions and resources
	Wait    bool   // a held call waits for its verdict
	Pin     string // a file with the descriptions of the tools, if it is not empty
	Version string // of writ

	// ApprovalURL is where a person approves a held call, before the approval's id. Clients that can show
	// addresses are told.
	ApprovalURL string
	Log         io.Writer

	Record  bool // what was decided is recorded when it was done
	AuthZEN bool // the mappings that the server behind declares for its tools count

	TrustClientWords bool // the user's words in a call's _meta count

	SessionTools []string // the tools that a session may call, if it is not empty
}

// Gateway decides the calls of one MCP server.
type Gateway struct {
	config   Config
	plug     *plug.Plug
	behind   *mcp.ClientSession
	front    atomic.Pointer[mcp.Server] // nil until the server behind is known
	sessions sessions
	sources  sources
	passing  passing

	mu    sync.Mutex
	tools tools
}

var serverName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// Open connects to the server behind and reads its tools. The caller closes the gateway.
func Open(ctx context.Context, c Config, behind mcp.Transport) (*Gateway, error) {
	if !serverName.MatchString(c.Server) {
		return nil, errors.New("--server: want a name of letters, digits, - and _, such as fs")
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	p, err := c.Open("mcp", "mcp")
	if err != nil {
		return nil, err
	}
	if c.TrustClientWords && p.Mapping.Sources == nil {
		return nil, errors.New("--trust-client-words wants sources in --mapping")
	}
	g := &Gateway{config: c, plug: p}
	if g.behind, err = g.connect(ctx, behind); err != nil {
		return nil, fmt.Errorf("the server behind: %w", err)
	}
	g.front.Store(g.server())
	g.sources.mapping, g.sources.words = p.Mapping.Sources, c.TrustClientWords
	g.sessions.open, g.sessions.close = g.openSession, p.Client.CloseSession
	if err := g.readTools(ctx); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// Close ends the connection to the server behind, and the writ sessions.
func (g *Gateway) Close() error {
	return errors.Join(g.sessions.end(), g.behind.Close())
}

// connect connects to the server behind. As the client declares no capability, the server
// must not ask it for anything.
func (g *Gateway) connect(ctx context.Context, behind mcp.Transport) (*mcp.ClientSession, error) {
	client := mcp.NewClient(g.self(), g.heard(&mcp.ClientOptions{
		Capabilities:               &mcp.ClientCapabilities{},
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { g.toolsChanged() },
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { g.promptsChanged() },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { g.resourcesChanged() },
	}))
	return client.Connect(ctx, behind, nil)
}

func (g *Gateway) self() *mcp.Implementation {
	return &mcp.Implementation{Name: "writ", Version: g.config.Version}
}

// capabilities returns the capabilities of the server behind, or nil if it has not said them.
func (g *Gateway) capabilities() *mcp.ServerCapabilities {
	if about := g.behind.InitializeResult(); about != nil {
		return about.Capabilities
	}
	return nil
}

// server returns the server that the clients see. It has the capabilities of the server behind, as far as
// they pass.
func (g *Gateway) server() *mcp.Server {
	var has mcp.ServerCapabilities
	if behind := g.capabilities(); behind != nil {
		has = *behind
	}
	var instructions string
	if about := g.behind.InitializeResult(); about != nil {
		instructions = about.Instructions
	}
	shown := &mcp.ServerCapabilities{Tools: has.Tools, Prompts: has.Prompts, Completions: has.Completions}
	shown.Logging = has.Logging //nolint:staticcheck // clients have it
	if has.Resources != nil {
		shown.Resources = &mcp.ResourceCapabilities{ListChanged: has.Resources.ListChanged}
	}
	s := mcp.NewServer(g.self(), &mcp.ServerOptions{
		Capabilities: shown, Instructions: instructions, Logger: slog.New(slog.DiscardHandler),
	})
	s.AddReceivingMiddleware(g.handle)
	return s
}

// Serve serves the one client of a transport, until it leaves or the server behind does.
func (g *Gateway) Serve(ctx context.Context, client mcp.Transport) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { cancel(ended(g.behind.Wait())) }()
	err := g.front.Load().Run(ctx, client)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// ended is the cause when the server behind has ended.
func ended(err error) error {
	return fmt.Errorf("the server behind has ended: %w", errors.Join(err, io.ErrUnexpectedEOF))
}

func (g *Gateway) say(format string, args ...any) {
	fmt.Fprintln(g.config.Log, "writ mcp: "+plug.OneLine(fmt.Sprintf(format, args...)))
}
