package main

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/api"
	"writ.example/writ/decision"
	"writ.example/writ/decision/core"
)

// coreFlags name the core that makes decisions. Without a URL, this process makes them.
type coreFlags struct {
	URL     string        `name:"evaluation-core-url" env:"WRIT_EVALUATION_CORE_URL,EVALUATION_CORE_URL" placeholder:"URL" help:"Document of an OPA that decides in place of the built-in engine, such as http://127.0.0.1:8181/v1/data/writ/core/result."`
	Token   string        `name:"evaluation-core-token" env:"WRIT_EVALUATION_CORE_TOKEN,EVALUATION_CORE_TOKEN" placeholder:"TOKEN" help:"Bearer that the core wants. Prefer the variable: a flag shows in the list of processes."`
	Timeout time.Duration `name:"evaluation-core-timeout" env:"WRIT_EVALUATION_CORE_TIMEOUT,EVALUATION_CORE_TIMEOUT" default:"1s" help:"How long the core may take for a decision."`
	Rules   bool          `name:"core-rules" env:"WRIT_CORE_RULES,CORE_RULES" help:"Send the organization's rules to the core with every decision, beside their digest."`
}

// check refuses flags that do not fit together. Its error quotes neither the URL nor the token.
func (f coreFlags) check() error {
	if f.URL == "" {
		if f.Token != "" {
			return errors.New("--evaluation-core-token: there is no --evaluation-core-url to send it to")
		}
		if f.Rules {
			return errors.New("--core-rules: there is no --evaluation-core-url to send them to")
		}
		return nil
	}
	if most := api.DefaultLimits().Handle; f.Timeout <= 0 || f.Timeout >= most {
		return fmt.Errorf("--evaluation-core-timeout: want a positive duration below %v, which a request may take",
			most)
	}
	if _, err := core.New(core.Config{URL: f.URL, Token: f.Token}); err != nil {
		return fmt.Errorf("--evaluation-core-url, --evaluation-core-token: %w", err)
	}
	return nil
}

// open returns the core, or nil if the built-in engine decides.
func (f coreFlags) open(metrics prometheus.Registerer, log *slog.Logger) (decision.Core, error) {
	if f.URL == "" {
		return nil, nil //nolint:nilnil // the built-in engine is no error
	}
	c, err := core.New(core.Config{
		URL: f.URL, Token: f.Token, Rules: f.Rules, Timeout: f.Timeout, Metrics: metrics, Log: log,
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}
