package main

import (
	"context"
	"fmt"
	"time"

	"writ.example/writ/cmd/remote"
)

// apiKeyCmd groups the verbs about API keys. The verb keys is about the keys that sign.
type apiKeyCmd struct {
	List   apiKeyListCmd   `cmd:"" help:"Print the API keys that are not revoked."`
	Create apiKeyCreateCmd `cmd:"" help:"Make an API key, and print it."`
	Revoke apiKeyRevokeCmd `cmd:"" help:"Revoke an API key, and those that were made with it."`
}

type apiKeyListCmd struct {
	serverFlags `embed:""`
	JSON        bool `name:"json" help:"Print a JSON object a key, as the API has it."`
}

func (c *apiKeyListCmd) Help() string { return "Wants the scope tokens:read. Secrets are not in it." }

func (c *apiKeyListCmd) Run(ctx context.Context, s streams) error {
	o, err := c.organization(s)
	if err != nil {
		return err
	}
	items, err := remote.Keys(ctx, o.Call)
	if err != nil {
		return err
	}
	return printAll(s.out, items, c.JSON, remote.PrintKeys)
}

type apiKeyCreateCmd struct {
	serverFlags `embed:""`
	Scope       []string      `env:"-" help:"What the key may do, such as history:read. Repeated, or separated by commas. Default: policy:evaluate."`
	Agent       string        `env:"-" placeholder:"ID" help:"Bind the key to these agents: an id or a glob."`
	Policy      string        `env:"-" placeholder:"ID" help:"The policy that the key means where a request names none."`
	Expires     time.Duration `env:"-" help:"How long the key is good, such as 720h. Default: as long as the key that makes it, or without an end if an operator does."`
	JSON        bool          `name:"json" help:"Print a JSON object with the key and its id."`
	Name        string        `arg:"" help:"A name for people."`
}

func (c *apiKeyCreateCmd) Help() string {
	return `The key alone goes to standard output, and its id to standard error. The server does not
show the key again. Wants the scope tokens:write, and each scope that the key gets.

  AGENT=$(writ api-key create gateway --scope policy:evaluate,actions:record)`
}

func (c *apiKeyCreateCmd) Run(ctx context.Context, s streams) error {
	o, err := c.organization(s)
	if err != nil {
		return err
	}
	k := remote.NewKey{Name: c.Name, Scopes: c.Scope, AgentID: c.Agent, PolicyID: c.Policy}
	switch {
	case c.Expires < 0:
		return &usageError{"--expires: want a duration such as 720h"}
	case c.Expires > 0:
		k.ExpiresAt = time.Now().UTC().Add(c.Expires).Truncate(time.Second)
	}
	secret, id, err := remote.CreateKey(ctx, o.Call, k)
	if err != nil {
		return err
	}
	if c.JSON {
		return remote.JSON(s.out, object{"token": secret, "id": id})
	}
	fmt.Fprintf(s.err, "writ: made the key %s\n", id)
	fmt.Fprintln(s.out, secret)
	return nil
}

type apiKeyRevokeCmd struct {
	serverFlags `embed:""`
	JSON        bool   `name:"json" help:"Print a JSON object with the id."`
	ID          string `arg:"" name:"key-id" help:"The key's id, or a key that leaked: its id alone is sent."`
}

func (c *apiKeyRevokeCmd) Help() string {
	return "It is in force when the verb exits with 0, for good. Wants the scope tokens:write."
}

func (c *apiKeyRevokeCmd) Run(ctx context.Context, s streams) error {
	o, err := c.organization(s)
	if err != nil {
		return err
	}
	id := remote.KeyID(c.ID)
	if err := remote.RevokeKey(ctx, o.Call, id); err != nil {
		return err
	}
	if c.JSON {
		return remote.JSON(s.out, object{"id": id, "revoked": true})
	}
	s.say("revoked the key %s, and those that were made with it", id)
	return nil
}
