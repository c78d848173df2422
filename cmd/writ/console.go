package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"writ.example/writ/api/console"
	"writ.example/writ/internal/tlsfiles"
)

type consoleCmd struct {
	URL string `name:"url" required:"" placeholder:"URL" help:"Server, such as https://writ.example.com."`

	trustFlags `embed:""`

	Addr string `default:"127.0.0.1:3830" help:"Loopback address to serve the pages on."`
}

func (c *consoleCmd) Help() string {
	return `Serves the pages of /console on this host for any server, and asks that server with
the credential that you sign in with. A browser on this host reaches them at
http://localhost:3830/console. Nothing is kept: the pages end with the command, and
so do the sessions.

  writ console --url https://writ.example.com`
}

func (c *consoleCmd) Run(ctx context.Context, s streams) error {
	host, _, err := net.SplitHostPort(c.Addr)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return &usageError{"--addr: want a loopback address and a port, such as 127.0.0.1:3830"}
	}
	server, err := console.NewRemote(c.URL)
	if err != nil {
		return &usageError{"--url: " + err.Error()}
	}
	pages, err := console.New(console.Config{API: server, Now: time.Now, Secret: []byte(rand.Text())})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/console", pages)
	mux.Handle("/console/", pages)
	mux.HandleFunc("GET /.well-known/jwks.json", server.Keys)
	mux.Handle("GET /docs", http.RedirectHandler(strings.TrimRight(c.URL, "/")+"/docs", http.StatusSeeOther))
	mux.Handle("GET /{$}", http.RedirectHandler("/console", http.StatusSeeOther))
	if err := c.trusted(ctx, server); err != nil {
		return err
	}
	var listen net.ListenConfig
	ln, err := listen.Listen(ctx, "tcp", c.Addr)
	if err != nil {
		return fmt.Errorf("--addr: %w", err)
	}
	s.say("the console of %s is at http://%s/console", c.URL, ln.Addr())
	local := &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	unwatch := context.AfterFunc(ctx, func() { _ = local.Close() }) // it ends streams, too
	defer unwatch()
	if err := local.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the console: %w", err)
	}
	return nil
}

// trusted returns an error if the server's authority is not trusted. A server that does not answer may do so later.
func (c *consoleCmd) trusted(ctx context.Context, server *console.Remote) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	anybody := console.Caller{From: new(http.Request)}
	a, err := server.Do(ctx, anybody, http.MethodGet, "/.well-known/jwks.json", nil)
	switch {
	case tlsfiles.Untrusted(err):
		return err
	case err == nil:
		_ = a.Body.Close()
	}
	return nil
}
