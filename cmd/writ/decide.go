package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"writ.example/writ/cmd/remote"
	"writ.example/writ/internal/tlsfiles"
	writ "writ.example/writ/sdk/go"
)

// The exit codes of writ decide, beside exitOK for an allow.
const (
	exitDenied    = 1
	exitHeld      = 3
	exitUndecided = 4
)

type decideCmd struct {
	serverFlags `embed:""`
	Intent      string        `env:"-" required:"" placeholder:"FILE" help:"ActionIntent to decide; - is standard input."`
	SessionID   string        `env:"-" name:"session-id" placeholder:"ID" help:"Session that the intent is proposed in."`
	ApprovalID  string        `env:"-" name:"approval-id" placeholder:"ID" help:"Approval to redeem: the decision that held this intent."`
	Wait        time.Duration `env:"-" help:"How long to wait for the verdict about a held intent, such as 10m. Default: not at all."`
	Timeout     time.Duration `default:"5s" help:"How long a decision may take, but for --wait."`
	VerifyKeys  string        `placeholder:"FILE" help:"JWKS with which the receipt is verified."`
	JSON        bool          `name:"json" help:"Print the evaluation result, which writ verify takes."`
}

func (c *decideCmd) Help() string {
	return `Sends one intent to the server, prints the decision and its reasons, and exits with

  0  allow, in force: the action may run
  1  deny
  2  a usage error, or a file that is not valid
  3  held for an approval
  4  not decided: no server, no answer in time, no receipt that holds; the action must not run

With --verify-keys an answer without a receipt of one of the keys is not decided. An
intent is decided once: the same file again gets the same answer, and after an
approval --approval-id gets the next one. writ eval decides offline.

  writ decide --intent refund.json --wait 10m && ./refund`
}

func (c *decideCmd) Run(ctx context.Context, s streams) error {
	client, in, err := c.open(s)
	if err != nil {
		return &codeError{exitUsage, err}
	}
	d, err := c.decide(ctx, s, client, in)
	var denied *writ.Denied
	var held *writ.Held
	code := exitOK
	switch {
	case errors.As(err, &denied):
		code, d = exitDenied, denied.Decision
	case errors.As(err, &held):
		code, d = exitHeld, held.Decision
	case err != nil:
		text := strings.TrimPrefix(tlsfiles.Advise(err).Error(), "writ: ")
		return &codeError{exitUndecided, fmt.Errorf("not decided: %s", text)}
	}
	if d.Replayed {
		fmt.Fprintln(s.err, "writ: this intent was decided before, and this is that decision: "+
			"a new intent_id is decided anew")
	}
	if c.JSON {
		err = remote.JSON(s.out, remote.ResultOf(d))
	} else {
		err = remote.PrintDecided(s.out, d)
	}
	switch {
	case err != nil:
		return &codeError{exitUndecided, err}
	case code != exitOK:
		return &codeError{code, errReported}
	}
	return nil
}

// open reads the settings and the intent.
func (c *decideCmd) open(s streams) (client *writ.Client, in writ.Intent, err error) {
	if c.Timeout <= 0 || c.Wait < 0 {
		return nil, in, errors.New("--timeout and --wait: want durations such as 5s and 10m")
	}
	p, err := c.profile()
	if err != nil {
		return nil, in, err
	}
	intent, err := readIntent(s, c.Intent)
	if err != nil {
		return nil, in, err
	}
	in = remote.Intent(intent, c.SessionID)
	config := writ.Config{URL: p.URL, APIKey: p.Key, Timeout: c.Timeout}
	if c.VerifyKeys != "" {
		if config.Keys, err = os.ReadFile(c.VerifyKeys); err != nil {
			return nil, in, fmt.Errorf("--verify-keys: %w", err)
		}
	}
	client, err = writ.New(config)
	return client, in, err
}

// decide returns the allow, or an error of [writ.Client.Require].
func (c *decideCmd) decide(ctx context.Context, s streams, client *writ.Client, in writ.Intent) (writ.Decision, error) {
	defer newProgress(s.err).wait("waiting for a decision")()
	held := &writ.Held{Decision: writ.Decision{ID: c.ApprovalID, Outcome: writ.ApprovalRequired, Intent: in}}
	if c.ApprovalID == "" {
		d, err := client.Require(ctx, in)
		if c.Wait == 0 || !errors.As(err, &held) {
			return d, err
		}
		fmt.Fprintf(s.err, "writ: held, approval %s: waiting for a verdict, %v at most\n", held.Decision.ID, c.Wait)
	}
	d, err := client.Wait(ctx, held, c.Wait)
	if errors.Is(err, writ.ErrPending) {
		err = held
	}
	return d, err
}
