package main

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"golang.org/x/net/http/httpguts"

	"writ.example/writ/bench"
)

func (c *benchRunCmd) connect(ctx context.Context, work bench.Work) (*bench.Subject, error) {
	base, err := url.Parse(c.URL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.User != nil {
		return nil, &usageError{"URL: want an address such as https://writ.example.com or http://localhost:3820"}
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
	b.Header = bench.Here(commandLine(os.Args[1:]), readBuilt().revision)
	if live := newProgress(s.err); live.shown {
		b.Live = live.line
	}
	work, err := c.work(s)
	if err != nil {
		return nil, err
	}
	if work.Header, err = c.headers(); err != nil {
		return nil, err
	}
	b.Header.Work, b.Header.Rounds, b.Header.MaxOther = work, c.Rounds, c.MaxOther
	if b.Loads, err = bench.ParseLoads(c.Load); err != nil {
		return nil, &usageError{"--load: " + err.Error()}
	}
	return b, nil
}

// commandLine returns the command for the raw data, without the values of flags that may be secrets.
func commandLine(args []string) string {
	all := []string{"writ"}
	hide := false
	for _, arg := range args {
		name, _, given := strings.Cut(arg, "=")
		secret := name == "--api-key" || name == "--header" || name == "-H"
		switch {
		case hide:
			arg = "…"
		case secret && given:
			arg = name + "=…"
		}
		hide = secret && !given
		all = append(all, arg)
	}
	return strings.Join(all, " ")
}

// headers returns the header that --header describes.
func (c *benchRunCmd) headers() (http.Header, error) {
	all := make(http.Header)
	for _, text := range c.Header {
		name, value, ok := strings.Cut(text, ":")
		value = strings.TrimSpace(value)
		if !ok || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, &usageError{"--header: want a name and a value, such as 'X-Team: payments'"}
		}
		switch name = http.CanonicalHeaderKey(name); name {
		case "Authorization", "Connection", "Content-Length", "Content-Type", "Host", "Transfer-Encoding", "Upgrade":
			return nil, &usageError{"--header: " + name + " is set by writ bench"}
		}
		all.Add(name, value)
	}
	return all, nil
}
