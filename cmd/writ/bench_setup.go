package main

import (
	"context"
	"net"
	"net/url"
	"os"
	"strings"

	"writ.example/writ/bench"
)

func (c *benchRunCmd) connect(ctx context.Context, work bench.Work) (*bench.Subject, error) {
	base, err := url.Parse(c.URL)
	if err != nil || base.Scheme != "http" || base.Host == "" || base.User != nil {
		return nil, &usageError{"URL: want an address such as http://localhost:3820"}
	}
	bearer := func(string) (string, error) { return c.APIKey, nil }
	switch {
	case c.Data != "":
		if bearer, err = bench.OperatorTokens(c.Data.OperatorSecret()); err != nil {
			return nil, err
		}
	case c.APIKey == "":
		return nil, &usageError{"want a credential in WRIT_API_KEY (or --api-key KEY), or --data DIR"}
	case c.Orgs > 1:
		return nil, &usageError{"--orgs: a credential is one organization's; give --data DIR for more"}
	}
	if c.PID == 0 && c.Admin == "" && !local(base.Hostname()) {
		c.MaxOther = 0
	}
	return bench.Connect(ctx, base, work, bearer, c.PID, c.Admin)
}

// local reports whether the name of a host shows that it is this machine.
func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// prepare returns the benchmark that the flags describe. It parses the values of --load.
func (c *benchRunCmd) prepare(s streams) (*bench.Bench, error) {
	b := &bench.Bench{
		Conns: c.Conns, OpenConns: c.OpenConns, Duration: c.Duration, Warmup: c.Warmup, Patience: c.Patience,
		Say: s.say,
	}
	b.Header = bench.Here(strings.Join(append([]string{"writ"}, os.Args[1:]...), " "), readBuilt().revision)
	work, err := c.work(s)
	if err != nil {
		return nil, err
	}
	b.Header.Work, b.Header.Rounds, b.Header.MaxOther = work, c.Rounds, c.MaxOther
	for i, text := range c.Load {
		l, err := bench.ParseLoad(text)
		if err != nil {
			return nil, &usageError{"--load: " + err.Error()}
		}
		if l.Share > 0 && (i == 0 || b.Loads[0] != bench.Load{}) {
			return nil, &usageError{"--load: a share is one of the closed loop's rate: begin with closed"}
		}
		b.Loads = append(b.Loads, l)
	}
	return b, nil
}
