package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"writ.example/writ/api/operator"
	"writ.example/writ/storage/datadir"
)

// tokenCmd groups the verbs that mint credentials without a server.
type tokenCmd struct {
	Operator tokenOperatorCmd `cmd:"" help:"Print an operator token, which may do everything within one organization."`
}

type tokenOperatorCmd struct {
	Org  string      `required:"" help:"Organization the token acts for."`
	Sub  string      `default:"operator" help:"Who the token is for; goes into its sub claim."`
	Data datadir.Dir `default:"./data" help:"Data directory of the server; its operator-secret signs the token."`

	OperatorSecret string `placeholder:"FILE" help:"The server's --operator-secret, if it has one."`

	TTL time.Duration `name:"ttl" default:"12h" help:"How long the token is valid."`

	Console bool   `help:"Print a link that signs a browser in to the console. Its token is valid for an hour at most."`
	URL     string `name:"url" default:"http://localhost:3820" placeholder:"URL" help:"Server of the link."`
}

func (c *tokenOperatorCmd) Help() string {
	return `The token alone goes to standard output:

  TOKEN=$(writ token operator --org acme)
  curl -H "Authorization: Bearer $TOKEN" localhost:3820/v1/policies

--console prints a link instead. Opened in a browser, it asks once more, and signs in
to the console of the server at --url.

Servers that verify operators by a JWKS take tokens of that issuer instead.`
}

func (c *tokenOperatorCmd) Run(_ context.Context, s streams) error {
	if c.TTL <= 0 {
		return &usageError{"--ttl: want a positive duration, such as 12h"}
	}
	_, absent := os.Stat(cmp.Or(c.OperatorSecret, c.Data.OperatorSecret()))
	secret, err := c.Data.Secret(c.OperatorSecret)
	if err != nil {
		return err
	}
	if c.Console {
		c.TTL = min(c.TTL, time.Hour)
	}
	token, err := operator.Sign(secret, c.Org, c.Sub, time.Now(), c.TTL)
	if err != nil {
		return err
	}
	if errors.Is(absent, fs.ErrNotExist) {
		fmt.Fprintf(s.err,
			"writ: made a new operator secret, %s: only a server started with --data %s accepts this token\n",
			c.Data.OperatorSecret(), c.Data)
	}
	if c.Console {
		token = consoleLink(c.URL, token)
	}
	fmt.Fprintln(s.out, token)
	return nil
}

// consoleLink returns a link that signs a browser in to the console of the server at url. No server is told a
// fragment, so the token is in no log of one.
func consoleLink(url, token string) string {
	return strings.TrimRight(url, "/") + "/console/login#" + token
}
