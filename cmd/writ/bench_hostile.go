package main

import (
	"context"
	"net/url"
	"os"
	"time"

	"writ.example/writ/bench"
)

type benchHostileCmd struct {
	Only     []string      `placeholder:"ATTACK,..." help:"Attacks to run. Default: all, and then all at once."`
	Conns    int           `default:"16" help:"Connections of each attack."`
	Rate     float64       `default:"200" help:"Requests a second of the victim."`
	Rounds   int           `default:"3" help:"How often each attack is measured."`
	Alone    time.Duration `default:"3s" help:"How long the victim is measured alone before each attack."`
	Duration time.Duration `default:"4s" help:"How long an attack lasts."`
	History  int           `default:"50000" help:"Decisions in the history that is searched and exported."`

	Attack string   `hidden:"" help:"Be the process of this attack."`
	URL    *url.URL `hidden:"" help:"Server to attack."`
	Secret string   `hidden:"" help:"Its operator-secret."`
}

func (c *benchHostileCmd) Help() string {
	return `Measures what one organization's requests cost another's: the latency of a victim's
ordinary evaluations, which arrive on a schedule, alone and beside each attack of another
organization. Held is that the p99 beside it is within three times that alone or 15 ms,
whichever is more, that no request of the victim was refused, and that the server stayed
under 1 GiB. bench/README.md of the source says what each attack sends.`
}

func (c *benchHostileCmd) Run(ctx context.Context, s streams) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	h := &bench.Hostile{
		Binary: self, Only: c.Only, Conns: c.Conns, Rate: c.Rate, Rounds: c.Rounds, Alone: c.Alone,
		Duration: c.Duration, History: c.History,
		Say: s.say,
	}
	if c.Attack != "" {
		bearer, err := bench.OperatorTokens(c.Secret)
		if err != nil {
			return err
		}
		return h.Attack(ctx, c.Attack, c.URL, bearer, s.in, s.out)
	}
	held, err := h.Run(ctx)
	if err == nil && !held {
		return errReported
	}
	return err
}
