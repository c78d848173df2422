package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/authoring/suite"
	"writ.example/writ/storage"
)

type suiteFromHistoryCmd struct {
	N           int `default:"50" help:"How many decisions to take, of those that differ in action, resource or codes."`
	serverFlags `embed:""`
}

func (c *suiteFromHistoryCmd) Help() string {
	return `Prints suites for writ test: one for each policy of the organization of WRIT_API_KEY,
with its last decisions that differ in action, resource or codes.

  writ suite-from-history --n 100 --url http://localhost:3820 > history_test.yaml
  writ test history_test.yaml`
}

func (c *suiteFromHistoryCmd) Validate() error {
	if c.N < 1 {
		return fmt.Errorf("--n: got %d, want 1 or more", c.N)
	}
	return nil
}

var errEnough = errors.New("there are enough")

func (c *suiteFromHistoryCmd) Run(ctx context.Context, s streams) error {
	o, err := c.organization(s)
	if err != nil {
		return err
	}
	server, err := o.fetch(ctx)
	if err != nil {
		return err
	}
	h, err := suite.NewHistory(server.Newest(), server.Rules())
	if err != nil {
		return err
	}
	err = o.Each(ctx, "/v1/authorizations", func(item jsontext.Value) error {
		r := new(storage.Record)
		if err := json.Unmarshal(item, r); err != nil {
			return fmt.Errorf("reading the history: %w", err)
		}
		if h.Take(r); h.Taken == c.N {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	if h.Taken == 0 {
		fmt.Fprintln(s.err, "writ: the history has no decision by a current policy")
		return errReportedInvalid
	}
	if h.Left > 0 {
		o.Say("%d decisions are left out: another version of their policy made them, or a case cannot repeat them",
			h.Left)
	}
	text, err := h.Format()
	if err != nil {
		return err
	}
	_, err = s.out.Write(text)
	return err
}
