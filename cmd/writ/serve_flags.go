package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/alecthomas/kong"

	"writ.example/writ/api"
	"writ.example/writ/decision/approval"
	"writ.example/writ/engine"
)

// ackMode says when a decision is answered: before or after it is durable.
type ackMode string

// behind returns how many commits may be answered before they are durable.
func (m ackMode) behind() int {
	if m == "queued" {
		return queuedCommits
	}
	return 0
}

// rest returns the least pause of the ledger after a commit of several callers.
func (m ackMode) rest() time.Duration {
	if m == "queued" {
		return queuedRest
	}
	return 0
}

// defaultServe returns the command with the default of every flag. It ignores the environment.
func defaultServe() (*serveCmd, error) {
	c := &serveCmd{}
	if err := kong.ApplyDefaults(c, kong.PostBuild(withoutVariables)); err != nil {
		return nil, fmt.Errorf("reading the defaults: %w", err)
	}
	return c, nil
}

// Validate refuses flags that do not fit together. It runs before anything is opened.
func (c *serveCmd) Validate() error {
	switch {
	case c.ReceiptTTL < time.Second || c.ReceiptTTL%time.Second != 0:
		return errors.New("--receipt-ttl: want whole seconds, such as 300s or 5m")
	case c.ApprovalTTL < time.Second || c.ApprovalTTL > approval.MaxTTL:
		return fmt.Errorf("--approval-ttl: want 1s to %v, such as 1h", approval.MaxTTL)
	case c.RetentionGrace < 0:
		return errors.New("--retention-grace: want a duration such as 168h, or 0s")
	case c.IntentAge < 0 || c.IntentAge > 0 && c.IntentAge < time.Minute:
		return errors.New("--intent-age: want 1m or more, such as 24h, or 0s")
	case c.DrainTimeout <= 0:
		return errors.New("--drain-timeout: want a positive duration, such as 15s")
	case c.Webhooks.Decisions < 1 || c.Webhooks.Decisions > 10_000:
		return errors.New("--webhook-decisions: want 1 to 10000, such as 60")
	case c.QueueDeadline < 10*time.Millisecond || c.QueueDeadline > time.Minute:
		return errors.New("--queue-deadline: want 10ms to 1m, such as 250ms")
	case c.VerifyEngine > 0 && c.Core.URL != "":
		return errors.New("--verify-engine is about the built-in engine: with --evaluation-core-url another decides")
	case c.CacheMB <= 0 || c.CacheMB > engine.MaxSetting:
		return fmt.Errorf("--cache-mb: want 1 to %d", engine.MaxSetting)
	case c.OperatorAlg == "HS256" && c.OperatorJWKS != "":
		return errors.New("--operator-jwks is for RS256, ES256 and EdDSA: say which with --operator-alg")
	case c.OperatorAlg != "HS256" && c.OperatorJWKS == "":
		return fmt.Errorf("--operator-alg %s needs the keys: give --operator-jwks", c.OperatorAlg)
	}
	if err := (api.Hosted{APIURL: c.APIURL, PortalURL: c.PortalURL}).Validate(); err != nil {
		return fmt.Errorf("--api-url, --portal-url: %w", err)
	}
	return errors.Join(c.checkStore(), c.CallerLimits.check(), c.Core.check(), c.ExtAuthz.check(), c.TLS.check(),
		c.Billing.check(c.PortalURL), c.Kafka.check(c.DecisionLog.kind))
}

// quietLogger returns a logger that writes only warnings and errors.
func quietLogger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
