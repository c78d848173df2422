package main

import (
	"cmp"
	"context"

	"github.com/alecthomas/kong"

	"writ.example/writ/cmd/remote"
	"writ.example/writ/engine"
)

// agentCmd groups the verbs about agents and their kill switch.
type agentCmd struct {
	List     agentListCmd     `cmd:"" help:"Print the registered agents."`
	Disable  agentStatusCmd   `cmd:"" help:"Throw the kill switch of an agent: all that it asks is denied."`
	Enable   agentStatusCmd   `cmd:"" help:"Release the kill switch of an agent."`
	Register agentRegisterCmd `cmd:"" help:"Register an agent, which gives it a kill switch."`
}

type agentListCmd struct {
	serverFlags `embed:""`
	JSON        bool `name:"json" help:"Print a JSON object an agent, as the API has it."`
}

func (c *agentListCmd) Help() string { return "Wants the scope agents:read." }

func (c *agentListCmd) Run(ctx context.Context, s streams) error {
	o, err := c.organization(s)
	if err != nil {
		return err
	}
	items, err := remote.Agents(ctx, o.Call)
	if err != nil {
		return err
	}
	return printAll(s.out, items, c.JSON, remote.PrintAgents)
}

type agentStatusCmd struct {
	serverFlags `embed:""`
	JSON        bool   `name:"json" help:"Print the agent as the API has it."`
	ID          string `arg:"" name:"agent-id" help:"The agent, as its intents name it."`
}

func (c *agentStatusCmd) Help() string {
	return `It is in force on every replica when the verb exits with 0. If the server does not answer it
may be in force: do it again. Wants the scope agents:write.`
}

func (c *agentStatusCmd) Run(ctx context.Context, s streams, k *kong.Context) error {
	o, err := c.organization(s)
	if err != nil {
		return err
	}
	status := engine.AgentActive
	if k.Selected().Name == "disable" {
		status = engine.AgentDisabled
	}
	doc, err := remote.SetStatus(ctx, o.Call, c.ID, status)
	if err != nil {
		return err
	}
	return printOne(s.out, doc, c.JSON, remote.AgentChanged)
}

type agentRegisterCmd struct {
	serverFlags `embed:""`
	Name        string `env:"-" help:"A name for people. Default: the id."`
	JSON        bool   `name:"json" help:"Print the agent as the API has it."`
	ID          string `arg:"" name:"agent-id" help:"The agent, as its intents name it."`
}

func (c *agentRegisterCmd) Help() string { return "Wants the scope agents:write." }

func (c *agentRegisterCmd) Run(ctx context.Context, s streams) error {
	o, err := c.organization(s)
	if err != nil {
		return err
	}
	doc, err := remote.Register(ctx, o.Call, c.ID, cmp.Or(c.Name, c.ID))
	if err != nil {
		return err
	}
	return printOne(s.out, doc, c.JSON, remote.AgentChanged)
}
