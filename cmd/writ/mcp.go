package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"writ/plugs/gateway"
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
}

func (b mcpServer) transport(s streams) (mcp.Transport, error) {
	if len(b.Command) == 0 {
		return nil, &usageError{"the server is missing: want its program and arguments behind --"}
	}
	return gateway.Command(b.Command, s.err), nil
}

func (b mcpServer) config(s streams) gateway.Config {
	return gateway.Config{Server: b.Server, Pin: b.Pin, Version: readBuilt().version, Log: s.err}
}

type mcpRunCmd struct {
	plugFlags    `embed:""`
	mcpServer    `embed:""`
	Held         string        `default:"deny" enum:"deny,wait" help:"What becomes of a held call: deny refuses it until it is approved and made again, wait waits for the verdict."`
	SessionTTL   time.Duration `name:"session-ttl" placeholder:"1h" help:"Open a writ session of this length for each connection, and close it at its end."`
	SessionTools []string      `placeholder:"TOOL,…" help:"The tools that such a session may call."`
}

func (c *mcpRunCmd) Help() string {
	return `Stands between an agent's MCP client and an MCP server. Each call of a tool, each read of a
resource and each prompt is decided before the server sees it. What is denied, held or not
decided does not reach the server.

  writ mcp --server fs -- npx -y @modelcontextprotocol/server-filesystem /srv`
}

func (c *mcpRunCmd) Run(ctx context.Context, s streams) error {
	behind, err := c.transport(s)
	if err != nil {
		return err
	}
	if len(c.SessionTools) > 0 && c.SessionTTL == 0 {
		return &usageError{"--session-tools wants --session-ttl, such as 1h"}
	}
	config := c.config(s)
	config.Settings, config.Wait = c.settings(), c.Held == "wait"
	config.SessionTTL, config.SessionTools = c.SessionTTL, c.SessionTools
	g, err := gateway.Open(ctx, config, behind)
	if err != nil {
		return err
	}
	return errors.Join(g.Serve(ctx, gateway.Stdio(s.in, s.out)), g.Close())
}

type mcpPinCmd struct {
	mcpServer `embed:""`
	Yes       bool `env:"-" help:"Pin the tools as they are now."`
}

func (c *mcpPinCmd) Help() string {
	return `Asks the server for its tools and shows how they differ from those in --pin. With --yes they
are pinned as they are now. Exits with 1 if they differ and nothing was written.`
}

func (c *mcpPinCmd) Run(ctx context.Context, s streams) error {
	if c.mcpServer.Pin == "" {
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
	s.say("wrote %s", c.mcpServer.Pin)
	return nil
}
