package main

import (
	"context"
	"errors"
	"fmt"

	"writ.example/writ/internal/tlsfiles"
	"writ.example/writ/plugs/envoy"
)

// envoyFlags are the flags of the listener for Envoy.
type envoyFlags struct {
	Addr     string `name:"ext-authz" placeholder:"ADDR" help:"Also decide the requests of an Envoy proxy, by its ext_authz over gRPC: unix:PATH, a socket that only the server's user can open, or HOST:PORT with the three files below."`
	Cert     string `name:"ext-authz-cert" placeholder:"FILE" help:"PEM certificate of --ext-authz."`
	Key      string `name:"ext-authz-key" placeholder:"FILE" help:"PEM key of --ext-authz."`
	ClientCA string `name:"ext-authz-client-ca" placeholder:"FILE" help:"PEM certificates of the CAs whose clients may ask --ext-authz."`

	APIKeyFile string `name:"ext-authz-api-key-file" placeholder:"FILE" help:"File of the API key that decides for --ext-authz, where a route's api_key does not."`
	PolicyID   string `name:"ext-authz-policy-id" placeholder:"ID" help:"Policy of --ext-authz, where a route's policy_id does not say it. Default: the key's."`
	AgentID    string `name:"ext-authz-agent-id" placeholder:"ID" help:"Agent of --ext-authz, where a route's agent_id does not say it. Default: the key's."`
}

func (f *envoyFlags) check() error {
	if f.Addr == "" && *f != (envoyFlags{}) {
		return errors.New("the flags --ext-authz-… need --ext-authz, such as unix:/run/writ/ext-authz.sock")
	}
	return nil
}

// serveEnvoy starts the listener for Envoy. It asks the server's own API.
func (n *node) serveEnvoy(ctx context.Context, c *serveCmd) error {
	f := &c.ExtAuthz
	if f.Addr == "" {
		return nil
	}
	key, err := secretIn("--ext-authz-api-key-file", f.APIKeyFile)
	if err != nil {
		return err
	}
	settings := envoy.Settings{URL: n.url(), APIKey: key, PolicyID: f.PolicyID, AgentID: f.AgentID,
		Transport: n.server.Local(), Log: n.log}
	if files := (tlsfiles.Files{Cert: f.Cert, Key: f.Key, ClientCA: f.ClientCA}); files != (tlsfiles.Files{}) {
		if n.envoyTLS, err = tlsfiles.Load(files); err != nil {
			return fmt.Errorf("--ext-authz-cert: %w", err)
		}
	}
	s, err := envoy.Listen(ctx, f.Addr, n.envoyTLS, envoy.New(settings))
	if err != nil {
		return fmt.Errorf("--ext-authz: %w", err)
	}
	n.envoy = s
	n.work.Go(func() {
		if err := s.Serve(); err != nil {
			n.log.Error("Envoy is not served any more", "problem", err)
		}
	})
	n.log.Info("deciding for Envoy", "addr", s.Addr().String())
	return nil
}
