package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"writ.example/writ/plugs/gateway"
)

type mcpCmd struct {
	Run mcpRunCmd `cmd:"" default:"withargs" help:"Decide what an agent asks an MCP server for."`
	Pin mcpPinCmd `cmd:"" help:"Show how the tools of an MCP server differ from the pinned ones, and pin them anew."`
}

// mcpServer is the MCP server behind.
type mcpServer struct {
	Server  string   `env:"-" required:"" placeholder:"NAME" help:"What the server is called in actions and resources, such as fs."`
	Pin     string   `env:"-" placeholder:"FILE" help:"Pinned descriptions of the tools. They are written on first use. A tool that is new or has changed since is held."`
	Command []string `arg:"" optional:"" help:"The server: its program and arguments, behind --."`

	Upstream           string `env:"-" placeholder:"URL" help:"The server, instead of a program: its address for streamable HTTP."`
	UpstreamBearerFile string `env:"-" placeholder:"FILE" help:"File with the credential that --upstream gets. Clients' credentials are not passed on."`
}

func (b mcpServer) transport(s streams) (mcp.Transport, error) {
	switch {
	case (len(b.Command) == 0) == (b.Upstream == ""):
		return nil, &usageError{"want either a server's program and arguments behind --, or --upstream with its URL"}
	case len(b.Command) > 0:
		return gateway.Command(b.Command, s.err), nil
	}
	bearer, err := secretIn("--upstream-bearer-file", b.UpstreamBearerFile)
	if err != nil {
		return nil, err
	}
	return gateway.Upstream(b.Upstream, bearer)
}

// secretIn returns the secret in a file, or nothing without one.
func secretIn(flag, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	data, err := os.ReadFile(name)
	secret := strings.TrimSpace(string(data))
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %w", flag, err)
	case secret == "" || strings.ContainsFunc(secret, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", fmt.Errorf("%s: %s: want one word of printable ASCII", flag, name)
	}
	return secret, nil
}

func (b mcpServer) config(s streams) gateway.Config {
	return gateway.Config{Server: b.Server, Pin: b.Pin, Version: readBuilt().version, Log: s.err}
}

type mcpRunCmd struct {
	plugFlags        `embed:""`
	mcpServer        `embed:""`
	Held             string        `default:"deny" enum:"deny,wait" help:"What becomes of a held call: deny refuses it until it is approved and made again, wait waits for the verdict."`
	ApprovalURL      string        `name:"approval-url" env:"-" placeholder:"URL" help:"Where a person approves a held call, before the approval's id, such as https://console.example/approvals/. Clients that can show addresses show it."`
	Record           bool          `env:"-" help:"Record what became of each call that was allowed. The key needs actions:record, too."`
	AuthZEN          bool          `name:"authzen-mapping" env:"-" help:"Let x-authzen-mapping of a tool, which the server declares, say what its calls are. Wants --pin, so that it does not change. A tool in --mapping is what that says."`
	TrustClientWords bool          `env:"-" help:"Take the user's words from writ/user in the _meta of calls, where the mapping has sources. Any client can fill it."`
	SessionTTL       time.Duration `name:"session-ttl" placeholder:"1h" help:"Open a writ session of this length for each connection, and close it at its end."`
	SessionTools     []string      `placeholder:"TOOL,…" help:"The tools that such a session may call."`

	Listen     string   `env:"-" placeholder:"ADDR" help:"Serve clients over streamable HTTP at this address, such as 127.0.0.1:3822, instead of one at standard input and output."`
	Host       []string `env:"-" placeholder:"NAME,…" help:"Names by which clients call the gateway, beside that in --listen."`
	BearerFile string   `env:"-" placeholder:"FILE" help:"File with the credential that clients of --listen must send. Beyond loopback they need one."`
}

func (c *mcpRunCmd) Help() string {
	return `Stands between an agent's MCP client and an MCP server. Each call of a tool, each read of a
resource and each prompt is decided before the server sees it. What is denied, held or not
decided does not reach the server.

  writ mcp --server fs -- npx -y @modelcontextprotocol/server-filesystem /srv
  writ mcp --server crm --upstream https://crm.example/mcp --listen 127.0.0.1:3822`
}

func (c *mcpRunCmd) Run(ctx context.Context, s streams) error {
	behind, err := c.transport(s)
	if err != nil {
		return err
	}
	if len(c.SessionTools) > 0 && c.SessionTTL == 0 {
		return &usageError{"--session-tools wants --session-ttl, such as 1h"}
	}
	if c.AuthZEN && c.Pin == "" {
		return &usageError{"--authzen-mapping wants --pin: a server that changes what its tools are is noticed by it"}
	}
	config := c.config(s)
	config.Record, config.AuthZEN = c.Record, c.AuthZEN
	config.Settings, config.Wait = c.settings(), c.Held == "wait"
	config.ApprovalURL, config.TrustClientWords = c.ApprovalURL, c.TrustClientWords
	config.SessionTTL, config.SessionTools = c.SessionTTL, c.SessionTools
	bearer, err := secretIn("--bearer-file", c.BearerFile)
	if err != nil {
		return err
	}
	front := gateway.Front{Listen: c.Listen, Hosts: c.Host, Bearer: bearer}
	if c.Listen != "" {
		if err := front.Check(); err != nil {
			return &usageError{err.Error()}
		}
	}
	g, err := gateway.Open(ctx, config, behind)
	if err != nil {
		return err
	}
	if c.Listen != "" {
		return errors.Join(g.ListenAndServe(ctx, front), g.Close())
	}
	return errors.Join(g.Serve(ctx, gateway.Stdio(s.in, s.out)), g.Close())
}

type mcpPinCmd struct {
	mcpServer  `embed:""`
	trustFlags `embed:""`
	Yes        bool `env:"-" help:"Pin the tools as they are now."`
}

func (c *mcpPinCmd) Help() string {
	return `Asks the server for its tools and shows how they differ from those in --pin. With --yes they
are pinned as they are now. Exits with 1 if they differ and nothing was written.`
}

func (c *mcpPinCmd) Run(ctx context.Context, s streams) error {
	if c.Pin == "" {
		return &usageError{"--pin is missing: want the file of pinned tools"}
	}
	behind, err := c.transport(s)
	if err != nil {
		return err
	}
	change, err := gateway.ComparePin(ctx, c.config(s), behind)
	if err != nil {
		return err
	}
	text := change.Diff()
	fmt.Fprintf(s.out, "%s", text)
	switch {
	case len(text) == 0:
		s.say("the tools are those that are pinned")
		return nil
	case !c.Yes:
		return errors.New("the tools differ from those that are pinned: --yes pins them as they are now")
	}
	if err := change.Write(); err != nil {
		return err
	}
	s.say("wrote %s", c.Pin)
	return nil
}
